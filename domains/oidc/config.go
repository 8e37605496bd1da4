package oidc

import (
	"encoding/json"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/certs"
)

// config is a domain's configuration.
type config struct {
	issuer, clientID, clientSecret string
	scopes                         []string
	claims                         map[string]string // attribute to claim, "" for one that is not asked for
	trusted                        certs.Trusted
	// needed are the claims that rules of package domains look at: without them nobody can tell
	// whether a person may log in.
	needed []string
}

// attributes are the members of claims with their defaults.
var attributes = []struct{ name, claim string }{
	{"username", "preferred_username"},
	{"email", "email"},
	{"displayName", "name"},
	{"timezone", "zoneinfo"},
	{"givenName", "given_name"},
	{"familyName", "family_name"},
}

// asked are the members of claims without a default.
var asked = []string{"groups", "id"}

const (
	maxIssuer = 1024 // bytes
	maxText   = 1024 // bytes
	maxScopes = 50
)

// object is a JSON object whose members are found by their exact names.
type object map[string]json.RawMessage

// read reads a configuration. Errors: errs.Invalid naming the member.
func read(raw json.RawMessage) (config, error) {
	var o, claims object
	var ca string
	if err := json.Unmarshal(raw, &o); err != nil || o == nil {
		return config{}, errs.New(errs.Invalid, "config must be a JSON object")
	}
	c := config{claims: map[string]string{}}
	for _, err := range []error{
		o.read("issuer", "a string", "issuer", &c.issuer),
		o.read("clientID", "a string", "clientID", &c.clientID),
		o.read("clientSecret", "a string", "clientSecret", &c.clientSecret),
		o.read("scopes", "an array of strings", "scopes", &c.scopes),
		o.read("claims", "an object", "claims", &claims),
		o.read("caCert", "a string", "caCert", &ca),
	} {
		if err != nil {
			return config{}, err
		}
	}
	if c.scopes == nil {
		c.scopes = []string{"openid", "profile", "email"}
	}
	for _, a := range attributes {
		claim := a.claim
		if err := claims.read(a.name, "a string", "claims."+a.name, &claim); err != nil {
			return config{}, err
		}
		c.claims[a.name] = claim
	}
	for _, name := range asked {
		claim := ""
		if err := claims.read(name, "a string", "claims."+name, &claim); err != nil {
			return config{}, err
		}
		c.claims[name] = claim
	}
	var err error
	if c.trusted, err = certs.Read("caCert", ca); err != nil {
		return config{}, err
	}
	c.needed = o.needed(c.claims)
	return c, c.check()
}

// needed returns the claims that the rules of package domains in a configuration look at, which
// that package has checked.
func (o object) needed(claims map[string]string) []string {
	var by string
	var allow struct {
		Domains json.RawMessage            `json:"domains"`
		Claims  map[string]json.RawMessage `json:"claims"`
	}
	_, _ = json.Unmarshal(o["accountsBy"], &by), json.Unmarshal(o["allow"], &allow)
	needed := []string{claims["username"], claims["groups"], claims["id"]}
	if by == "email" || allow.Domains != nil {
		needed = append(needed, claims["email"])
	}
	needed = slices.AppendSeq(needed, maps.Keys(allow.Claims))
	return slices.DeleteFunc(needed, func(name string) bool { return name == "" })
}

// read reads a member into a variable, which keeps its value if there is no such member.
func (o object) read(name, kind, called string, into any) error {
	raw, there := o[name]
	if !there || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return errs.New(errs.Invalid, "%s must be %s", called, kind)
	}
	return nil
}

// check checks the members, and adds openid to the scopes.
func (c *config) check() error {
	switch {
	case !isIssuer(c.issuer):
		return errs.New(errs.Invalid, "issuer must be an https address without user, query and fragment, such as "+
			"https://login.example.com (http is for localhost alone)")
	case c.clientID == "" || len(c.clientID) > maxText:
		return errs.New(errs.Invalid, "clientID must be what the provider calls this service, 1 to %d bytes", maxText)
	case len(c.clientSecret) > maxText:
		return errs.New(errs.Invalid, "clientSecret must have at most %d bytes", maxText)
	case len(c.scopes) > maxScopes || slices.ContainsFunc(c.scopes, func(s string) bool { return !isScope(s) }):
		return errs.New(
			errs.Invalid, "scopes must be at most %d scopes without spaces and quotes, such as openid",
			maxScopes,
		)
	case c.claims["username"] == "":
		return errs.New(errs.Invalid, "claims.username must be the name of a claim, such as preferred_username")
	}
	for _, name := range slices.Sorted(maps.Keys(c.claims)) {
		if len(c.claims[name]) > maxText {
			return errs.New(errs.Invalid, "claims.%s must have at most %d bytes", name, maxText)
		}
	}
	if !slices.Contains(c.scopes, "openid") {
		c.scopes = append([]string{"openid"}, c.scopes...)
	}
	return nil
}

func isIssuer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && len(s) <= maxIssuer && !strings.ContainsAny(s, "?#") && u.User == nil && isSafe(u, true)
}

// Redirects implements domains.SecretSender. The issuer's discovery document says where the secret
// is sent.
func (r *realm) Redirects(before domains.Realm) string {
	ports := map[string]string{"https": "443", "http": "80"}
	was, ok := before.(*realm)
	switch {
	case !ok || domains.SameServer(was.issuer, ports) != domains.SameServer(r.issuer, ports):
		return "issuer"
	case was.trusted.Lacks(r.trusted):
		return "caCert" // whoever has its key could read the secret on the way
	}
	return ""
}

// isPlain reports whether an issuer is called without TLS, which is allowed on this machine alone.
func isPlain(issuer string) bool { return strings.HasPrefix(strings.ToLower(issuer), "http:") }

// isSafe reports whether requests to an address can be neither read nor changed on the way: https
// or, if plain allows it, http on this machine.
func isSafe(u *url.URL, plain bool) bool {
	return u.Hostname() != "" && (u.Scheme == "https" || plain && u.Scheme == "http" && isLoopback(u.Hostname()))
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// isScope is the scope-token of RFC 6749, of at most 255 bytes.
func isScope(s string) bool {
	bad := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, bad)
}
