package saml

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	crewjam "github.com/crewjam/saml"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// realm is one configured domain.
type realm struct {
	source      source
	keys        domains.Keys
	entityID    string // what the provider calls this service, "" for the address of its metadata
	attributes  attributes
	wantsGroups bool // a rule for logging in is about groups
	signs       bool // requests, also where the provider does not want it
	unasked     bool // takes answers that nobody here has asked for
	trustEmail  bool // the provider vouches for e-mail addresses
	denied      bool // connections to the address of the metadata
}

// Check implements domains.Realm.
func (r *realm) Check() error {
	if r.denied {
		return domains.DeniedAddress("metadataURL")
	}
	return nil
}

// service is the entity id of this service.
func (r *realm) service(at domains.Endpoints) string {
	if r.entityID != "" {
		return r.entityID
	}
	return at.Metadata
}

// Begin implements domains.RedirectLogin, for providers that take requests by HTTP-Redirect.
func (r *realm) Begin(
	ctx context.Context, at domains.Endpoints, state string,
) (location string, memory []byte, err error) {
	location, form, memory, err := r.BeginForm(ctx, at, state)
	if err == nil && form != nil {
		return "", nil, errs.New(errs.Upstream, "The provider takes requests by HTTP-POST alone.")
	}
	return location, memory, err
}

// BeginForm returns the provider's address with a request to log somebody in; the request's id is
// what Finish must know. SAML has room for a state of 80 bytes.
func (r *realm) BeginForm(
	ctx context.Context, at domains.Endpoints, state string,
) (location string, form url.Values, memory []byte, err error) {
	p, err := r.source.provider(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	key, err := r.signer(p)
	if err != nil {
		return "", nil, nil, err
	}
	create := true
	request := crewjam.AuthnRequest{
		ID:                          newID(),
		IssueInstant:                time.Now().UTC(),
		Version:                     version,
		Destination:                 p.login.location,
		AssertionConsumerServiceURL: at.ACS,
		ProtocolBinding:             crewjam.HTTPPostBinding,
		Issuer:                      &crewjam.Issuer{Value: r.service(at)},
		NameIDPolicy:                &crewjam.NameIDPolicy{AllowCreate: &create}, // of any format
	}
	location, form, err = message{"SAMLRequest", request.Element(), state, key}.to(p.login)
	return location, form, []byte(request.ID), err
}

// signer returns the key that signs requests to a provider; nil if they go unsigned. Errors:
// errs.Upstream.
func (r *realm) signer(p *provider) (*domains.KeyPair, error) {
	if !r.signs && !p.signed {
		return nil, nil
	}
	if r.keys.Current == nil {
		return nil, errs.New(
			errs.Upstream,
			"The provider wants requests signed (WantAuthnRequestsSigned), and this domain has no key yet: save "+
				"it, or roll its keys.",
		)
	}
	return r.keys.Current, nil
}

// version is SAML's, in requests, responses and assertions.
const version = "2.0"

// newID makes an id of a request that nobody can guess. XML's ids begin with a letter.
func newID() string {
	var b [20]byte
	_, _ = rand.Read(b[:]) // never returns an error
	return "id-" + hex.EncodeToString(b[:])
}

// Finish checks the provider's response. Errors: errs.Unauthenticated with the reason as its cause;
// errs.Upstream.
func (r *realm) Finish(
	ctx context.Context, at domains.Endpoints, memory []byte, answer domains.Answer,
) (domains.SignedIn, error) {
	who, _, err := r.finish(ctx, answer, expected{service: r.service(at), acs: at.ACS, request: string(memory)})
	return who, err
}

// Accept implements domains.UnaskedLogin: it checks a response to no request, for a login that has
// begun at the provider.
func (r *realm) Accept(
	ctx context.Context, at domains.Endpoints, answer domains.Answer,
) (who domains.SignedIn, id string, until time.Time, err error) {
	if !r.unasked {
		return who, "", until, errs.Wrap(errs.Unauthenticated,
			errors.New("an answer that nobody asked for. Log-ins begin at this service, at "+
				strings.Replace(
					at.ACS, "/acs", "/sso", 1,
				)+": make that the address of the tile or bookmark that people use, or set idpInitiated"),
			"Unable to log in")
	}
	who, a, err := r.finish(ctx, answer, expected{service: r.service(at), acs: at.ACS, unasked: true})
	if err != nil {
		return domains.SignedIn{}, "", until, err
	}
	return who, a.Issuer.Value + "!" + a.ID, time.Now().Add(maxUnasked + skew), nil
}

// finish returns the person that a response is about, and the assertion.
func (r *realm) finish(
	ctx context.Context, answer domains.Answer, e expected,
) (who domains.SignedIn, a assertion, err error) {
	o := newOpener(r.keys)
	err = o.slowly(ctx, func() error {
		return r.withProvider(ctx, func(p *provider) error {
			who, a, err = r.identify(p, e, answer.Params["SAMLResponse"], o)
			return err
		})
	})
	if err != nil {
		return domains.SignedIn{}, assertion{}, refusal(err)
	}
	return who, a, nil
}

// withProvider calls fn with the provider, and again with newer metadata if no key fits what came
// from it. Errors: those of fn and errs.Upstream.
func (r *realm) withProvider(ctx context.Context, fn func(*provider) error) error {
	p, err := r.source.provider(ctx)
	if err != nil {
		return err
	}
	if err = fn(p); !errors.Is(err, errKey) {
		return err
	}
	newer, failed := r.source.renewed(ctx, p)
	if failed != nil || newer == p {
		return cmp.Or(failed, err)
	}
	return fn(newer)
}

// refusal returns the error for a message that is not good, and others of the provider as they are.
func refusal(err error) error {
	if err == nil || errs.CodeOf(err) == errs.Upstream || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return errs.Wrap(errs.Unauthenticated, err, "Unable to log in")
}

// identify returns the person that a response is about, and the assertion.
func (r *realm) identify(p *provider, e expected, responses []string, o *opener) (domains.SignedIn, assertion, error) {
	document, err := decodeParameter("SAMLResponse", responses)
	if err != nil {
		return domains.SignedIn{}, assertion{}, err
	}
	e.provider, e.now = p.entityID, time.Now()
	a, err := p.read(document, e, o)
	if err != nil {
		return domains.SignedIn{}, assertion{}, err
	}
	who, err := r.identity(p, a)
	if err == nil {
		who.Session, err = r.session(p, e.service, a)
	}
	return who, a, err
}

// decodeParameter returns the document in a parameter of a form.
func decodeParameter(name string, values []string) ([]byte, error) {
	if len(values) != 1 || len(values[0]) > 2*maxDocument {
		return nil, fmt.Errorf("there is not one %s of a sensible size", name)
	}
	document, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(values[0]), ""))
	if err != nil {
		return nil, fmt.Errorf("the %s is not in base64: %w", name, err)
	}
	return document, nil
}

// Discover implements domains.Discoverer.
func (r *realm) Discover(ctx context.Context) error {
	_, err := r.source.discover(ctx)
	return err
}
