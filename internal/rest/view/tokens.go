// Package view makes what the page of an app needs to run in a browser without harm: tokens that
// let it read what is its own, the entry page with its base and context, and the headers that close
// everything else to it.
//
// It knows neither requests nor apps. httpapi imports it.
package view

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Lifetime is the longest that a token lives.
const Lifetime = 12 * time.Hour

// Idle is how long a token lives without a use.
const Idle = time.Hour

// Scope is the kind of viewer that a token is for.
type Scope string

// The scopes.
const (
	Viewer Scope = "viewer" // a user of the tenant, with the rights of Credential
	// somebody with the link to the share page; Credential is the id of the token in the link, User
	// is ""
	Visitor Scope = "visitor"
	Hosted  Scope = "hosted" // a user whom the host program has authenticated; Credential is ""
)

// Claims are what a token states. Tenant, App, Under, Scope and Expires are required, and the
// fields that Scope names.
//
// A token ends before Expires when it is not used for Idle, when the session or token that
// Credential names does, or when what the app runs and may call is no longer what Under stands for:
// the caller of Check asks for the last two with every request. Expires is Lifetime after a token
// was made.
type Claims struct {
	Tenant     string
	App        string // id
	Credential string // names the session or token that the view was opened with, and is no secret: pages can read it
	User       string // the user who views the app
	Role       string // the role of the manifest that a viewer has chosen to be; "" for the viewer's own roles
	Under      string // a digest of what the app ran and might call when the token was issued
	Scope      Scope
	Expires    time.Time // whole seconds
}

// For reports whether the claims are for an app of a tenant.
func (c Claims) For(tenant, app string) bool {
	return c.Tenant != "" && c.App != "" && c.Tenant == tenant && c.App == app
}

// complete reports whether the claims have what is required.
func (c Claims) complete() bool {
	if c.Tenant == "" || c.App == "" || c.Under == "" || c.Expires.IsZero() {
		return false
	}
	switch c.Scope {
	case Viewer:
		return c.Credential != "" && c.User != ""
	case Visitor:
		return c.Credential != "" && c.User == ""
	case Hosted:
		return c.Credential == "" && c.User != ""
	}
	return false
}

// Tokens makes and checks tokens: URL path segments of "~", the claims, "." and their HMAC-SHA-256.
// Who has a token can read its claims, and can change none.
type Tokens struct {
	key     []byte
	genuine *genuine
	uses    *uses
}

// genuine keeps the claims of tokens that have been found genuine: the page of an app sends its
// token with each of its files.
type genuine struct {
	mu  sync.RWMutex
	all map[string]Claims
}

// maxGenuine is how many tokens are kept.
const maxGenuine = 2000

func (g *genuine) get(token string) (Claims, bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	c, ok := g.all[token]
	return c, ok
}

func (g *genuine) put(token string, c Claims) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil || len(g.all) >= maxGenuine {
		g.all = map[string]Claims{}
	}
	g.all[token] = c
}

// uses knows when tokens were used last, by their HMACs. It is that of one process: a token that
// this one does not know counts as used when it was made.
type uses struct {
	mu sync.Mutex
	at map[string]time.Time
}

const (
	maxUses   = 100_000     // how many tokens uses knows
	useEvery  = time.Minute // how exact it is
	usesShare = 10          // which part of them it forgets when all are in use
)

// note reports whether a genuine token that was made at a time was used within Idle, and notes this
// use then.
func (u *uses) note(token string, made, now time.Time) bool {
	mac := token[strings.LastIndexByte(token, '.')+1:]
	u.mu.Lock()
	defer u.mu.Unlock()
	last, known := u.at[mac]
	if !known {
		last = made
	}
	switch since := now.Sub(last); {
	case since >= Idle:
		return false // it stays known: a clock that is set back does not bring it back
	case known && since < useEvery:
		return true
	}
	if !known && len(u.at) >= maxUses {
		u.forget(now)
	}
	if u.at == nil {
		u.at = map[string]time.Time{}
	}
	u.at[strings.Clone(mac)] = now
	return true
}

// forget makes room: it forgets tokens that were not used for long, and others if there are none.
func (u *uses) forget(now time.Time) {
	for mac, last := range u.at {
		if now.Sub(last) >= Idle {
			delete(u.at, mac)
		}
	}
	for mac := range u.at {
		if len(u.at) <= maxUses-maxUses/usesShare {
			return
		}
		delete(u.at, mac)
	}
}

// minKey is how many bytes a key has at least.
const minKey = 32

// NewTokens returns the tokens under a key of at least 32 bytes, which is for nothing else. Errors:
// errs.Internal for a shorter one.
func NewTokens(key []byte) (*Tokens, error) {
	if len(key) < minKey {
		return nil, errs.New(errs.Internal, "The key of view tokens has %d bytes and needs %d.", len(key), minKey)
	}
	return &Tokens{key: append([]byte(nil), key...), genuine: &genuine{}, uses: &uses{}}, nil
}

// Format implements fmt.Formatter: every verb prints the type alone.
func (t Tokens) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("view.Tokens")) }

// payload is the claims as a token has them.
type payload struct {
	Tenant     string `json:"t"`
	App        string `json:"a"`
	Credential string `json:"c,omitempty"`
	User       string `json:"u,omitempty"`
	Role       string `json:"r,omitempty"`
	Under      string `json:"d"`
	Scope      Scope  `json:"s"`
	Expires    int64  `json:"e"` // Unix time in seconds
}

var encoding = base64.RawURLEncoding.Strict()

// maxToken is how many bytes a token has at most.
const maxToken = 4096

// Make returns a token. Check refuses it when the claims are not complete or it expires after more
// than Lifetime.
func (t *Tokens) Make(c Claims) string {
	p := payload{
		Tenant:     c.Tenant,
		App:        c.App,
		Credential: c.Credential,
		User:       c.User,
		Role:       c.Role,
		Under:      c.Under,
		Scope:      c.Scope,
	}
	if !c.Expires.IsZero() {
		p.Expires = c.Expires.Unix()
	}
	raw, _ := json.Marshal(p) // cannot fail
	text := encoding.EncodeToString(raw)
	return "~" + text + "." + t.sum(text)
}

// Check returns the claims of a token that was made with the same key, has not expired, and was
// used within Idle by requests to this process or is younger than that. It is a use. The caller
// compares tenant and app (Claims.For) and Under, and checks that Credential is still valid.
// Errors: errs.Unauthenticated, with the claims of a token that has ended.
func (t *Tokens) Check(token string, now time.Time) (Claims, error) {
	c, ok := t.genuine.get(token)
	if !ok {
		var err error
		if c, err = t.read(token); err != nil {
			return Claims{}, err
		}
		t.genuine.put(token, c)
	}
	switch {
	case c.Expires.After(now.Add(Lifetime)):
		return Claims{}, notValid()
	case !now.Before(c.Expires):
		return c, errs.New(errs.Unauthenticated, "The view of the app has expired: open the app again.")
	case !t.uses.note(token, c.Expires.Add(-Lifetime), now):
		return c, errs.New(errs.Unauthenticated, "The view of the app was not used for an hour: open the app again.")
	}
	return c, nil
}

func notValid() error {
	return errs.New(errs.Unauthenticated, "The link to the app's files is not valid: open the app again.")
}

// read returns the claims of a token that was made with the same key. They are complete.
func (t *Tokens) read(token string) (Claims, error) {
	refused := notValid()
	body, ok := strings.CutPrefix(token, "~")
	text, mac, two := strings.Cut(body, ".")
	if !ok || !two || len(token) > maxToken {
		return Claims{}, refused
	}
	if !hmac.Equal([]byte(mac), []byte(t.sum(text))) { // the text, as the decoder of base64 passes over line ends
		return Claims{}, refused
	}
	raw, err := encoding.DecodeString(text)
	if err != nil {
		return Claims{}, refused
	}
	var p payload
	if err := json.Unmarshal(raw, &p); err != nil {
		return Claims{}, refused
	}
	c := Claims{
		Tenant:     p.Tenant,
		App:        p.App,
		Credential: p.Credential,
		User:       p.User,
		Role:       p.Role,
		Under:      p.Under,
		Scope:      p.Scope,
	}
	if p.Expires != 0 {
		c.Expires = time.Unix(p.Expires, 0).UTC()
	}
	if !c.complete() {
		return Claims{}, refused
	}
	return c, nil
}

// sum returns the HMAC of the encoded claims, for this use of the key, in base64.
func (t *Tokens) sum(text string) string {
	h := hmac.New(sha256.New, t.key)
	h.Write([]byte("tenantcontent app view 1\x00"))
	h.Write([]byte(text))
	return encoding.EncodeToString(h.Sum(nil))
}
