package webhooks

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// A key is a JSON Web Token, signed with the secret of its app by HS256: its header names the
// tenant in kid, and its payload the row of the token in key.
type claims struct {
	Key string `json:"key"`
	jwt.RegisteredClaims
}

// gate checks keys.
type gate struct {
	parser *jwt.Parser
	nobody []byte // signs what no app has signed, so that a refusal takes the same work
}

// maxKey is how many bytes a key has at most.
const maxKey = 1024

func newGate() gate {
	nobody := make([]byte, 32)
	_, _ = rand.Read(nobody) // never returns an error
	return gate{
		jwt.NewParser(jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding()),
		nobody,
	}
}

// known is the cached result of looking a target up. Requests share it, so what it points to must
// not be changed.
type known struct {
	target Target
	there  bool
}

// refused returns the error for every call that is not let in.
func refused(cause error) error {
	return errs.Wrap(errs.Unauthenticated, cause, "The token is missing or not valid.")
}

// Keys returns what makes the keys of the tokens of an app, which are valid until the secret is
// rotated. The caller may change the app. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a
// draft.
func (s *Service) Keys(
	ctx context.Context, app string,
) (func(token string, createdAt time.Time) (string, error), error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	secret, err := s.o.Apps.WebhookSecret(ctx, app)
	if err != nil {
		return nil, err
	}
	return func(token string, createdAt time.Time) (string, error) {
		t := jwt.NewWithClaims(jwt.SigningMethodHS256, claims{
			Key:              token,
			RegisteredClaims: jwt.RegisteredClaims{IssuedAt: jwt.NewNumericDate(createdAt)},
		})
		t.Header["kid"] = a.Tenant
		return t.SignedString(secret)
	}, nil
}

// Caller is somebody whose key was accepted.
type Caller struct {
	tenant string
	target Target
	owner  Owner
}

// Tenant returns the tenant that the key names.
func (c Caller) Tenant() string { return c.tenant }

// App returns the id of the app that is called.
func (c Caller) App() string { return c.target.App }

// Admit checks the key of a call of an app, by its id or natural id, and the address that it came
// from. It returns the same errs.Unauthenticated for every reason: a key that is missing,
// malformed, of another app, revoked or signed with an old secret; an app that is not there,
// deleted or a draft; an owner who is disabled or gone. For a key with a wrong signature it looks
// the app up, at most once a second, and does nothing else.
func (u Unchecked) Admit(ctx context.Context, app, key string, from netip.Addr) (Caller, error) {
	s := u.s
	if key == "" || len(key) > maxKey || strings.ContainsAny(key, "\r\n") { // which base64 leaves out
		return Caller{}, refused(nil)
	}
	var found claims
	var tenant string
	var at known
	var failed error
	_, err := s.gate.parser.ParseWithClaims(key, &found, func(t *jwt.Token) (any, error) {
		tenant, _ = t.Header["kid"].(string)
		if !plain(tenant) || !plain(found.Key) {
			return nil, errors.New("the key names no tenant or token")
		}
		at, failed = s.target(ctx, tenant, app)
		if failed != nil {
			return nil, failed
		}
		if !at.there {
			return s.gate.nobody, nil
		}
		return at.target.Secret, nil
	})
	if failed != nil {
		return Caller{}, failed
	}
	if err != nil || !at.there {
		return Caller{}, refused(err)
	}
	tokens := sessions.TokensOf{Type: sessions.Webhook, EntityID: at.target.App}
	if err := s.o.UseToken(ctx, tenant, tokens, found.Key, from); err != nil {
		return Caller{}, hide(err)
	}
	owner, err := s.o.Owner(ctx, tenant, at.target.Owner)
	if err != nil {
		return Caller{}, hide(err)
	}
	return Caller{tenant, at.target, owner}, nil
}

// target returns the app with an id or natural id.
func (s *Service) target(ctx context.Context, tenant, id string) (known, error) {
	return s.targets.Get(ctx, tenant, id, func() (known, error) {
		t, err := s.o.Target(ctx, tenant, id)
		switch errs.CodeOf(err) {
		case "":
			return known{t, true}, nil
		case errs.NotFound, errs.Invalid:
			return known{}, nil
		}
		return known{}, err
	})
}

// hide returns the common refusal for what is refused, and other errors as they are.
func hide(err error) error {
	switch errs.CodeOf(err) {
	case errs.Unauthenticated, errs.NotFound, errs.Forbidden, errs.Invalid:
		return refused(err)
	}
	return err
}

// plain reports whether a text has only characters of tenant ids and UUIDs.
func plain(text string) bool {
	if text == "" || len(text) > 128 {
		return false
	}
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
