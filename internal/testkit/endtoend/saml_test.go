package endtoend_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// samlJo is a person at the SAML provider.
var samlJo = samltest.Person{Name: "jo", Password: "secret", Email: "jo@example.com", Surname: "Doe", Given: "Jo"}

// entry creates a domain of a tenant for a provider, and registers it there.
func (c *caller) entry(t testing.TB, p *samltest.Provider, tenant string) string {
	t.Helper()
	id := c.domain(t, "Entry", "SAML", map[string]any{"metadataURL": p.URL + "/metadata"})
	a := (&caller{c.w, ""}).must(t, "GET", "/api/login/"+id+"/metadata?tenant="+tenant, "")
	is.New(t).Equal(a.header.Get("Content-Type"), "application/samlmetadata+xml")
	p.Put(t, "/services/"+tenant, []byte(a.body))
	return id
}

// inTheClear registers a domain's service at its provider without the key for encryption.
func (c *caller) inTheClear(t testing.TB, p *samltest.Provider, tenant, id string) {
	t.Helper()
	a := (&caller{c.w, ""}).must(t, "GET", "/api/login/"+id+"/metadata?tenant="+tenant, "")
	p.Put(t, "/services/"+tenant, encryptionKey.ReplaceAll([]byte(a.body), nil))
}

var encryptionKey = regexp.MustCompile(`(?s)<KeyDescriptor [^>]*use="encryption">.*?</KeyDescriptor>`)

// atProvider goes to the provider, logs in there, and returns the form that the provider's page
// would submit.
func (c *client) atProvider(t testing.TB, begin string, who samltest.Person) (action string, form url.Values) {
	t.Helper()
	action, form = samltest.Form([]byte(c.get(t, begin).body))
	if form.Has("user") { // the browser is not logged in there yet
		form.Set("user", who.Name)
		form.Set("password", who.Password)
		action, form = samltest.Form([]byte(c.post(t, action, form).body))
	}
	if form.Get("SAMLResponse") == "" {
		t.Fatalf("the provider does not let %s in at %s: %s %v", who.Name, c.at, action, form)
	}
	return action, form
}

// TestSAML: a browser returns from the provider with a form, which comes from another site, and
// gets a session.
func TestSAML(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w, jo := is.New(t), samltest.New(t), newWorld(t, open), newClient(t)
		p.PutPerson(t, samlJo)
		id := w.admin.entry(t, p, "acme")
		begin := w.sso("acme", id, "/api/session")
		action, form := jo.atProvider(t, begin, samlJo)
		is.Equal(action, w.url+"/api/login/entry/acs?tenant=acme")
		is.Equal(jo.at.Hostname(), "127.0.0.1") // which is not localhost

		newClient(t).post(t, action, form).stranger(t) // without the cookie
		stranger := newClient(t)
		stranger.atProvider(t, begin, samlJo)
		stranger.post(t, action, form).stranger(t) // with the cookie of another login
		is.Equal(stranger.who(t, w), "")
		is.Equal(read[struct{ User string }](t, jo.post(t, action, form)).User, "jo")
		is.Equal(jo.at.String(), w.url+"/api/session")
		jo.post(t, action, form).stranger(t) // only once
		is.Equal(w.admin.user(t, "jo"), user{
			Username: "jo", Domain: id,
			Email: "jo@example.com", SourceID: p.URL + "/metadata!username!jo", Enabled: true,
		})

		// No other route accepts a form of another site, with or without the session's cookie.
		jo.at, _ = url.Parse(p.URL)
		for _, path := range []string{"/api/login/local", "/api/logout", "/api/tokens"} {
			jo.post(
				t, w.url+path, url.Values{"username": {"admin"}, "password": {password}},
			).refused(t, http.StatusForbidden)
			jo.at, _ = url.Parse(p.URL)
		}
		is.Equal(jo.who(t, w), "jo")

		// A new address at the provider changes the user. Without a page to return to, the answer
		// is the token.
		moved := samlJo
		moved.Email, moved.Surname = "jo@example.net", "Ray"
		p.PutPerson(t, moved)
		again := newClient(t)
		action, form = again.atProvider(t, w.sso("acme", id, ""), moved)
		is.Equal((&caller{w, read[struct{ Token string }](t, again.post(t, action, form)).Token}).who(t), "jo")
		is.Equal(w.admin.user(t, "jo").Email, "jo@example.net")
		is.Equal(len(w.admin.users(t, id)), 1)

		w.admin.must(t, "PUT", "/api/users/jo", `{"enabled": false}`)
		is.Equal(jo.who(t, w), "")
		action, form = again.atProvider(t, begin, moved)
		again.post(t, action, form).stranger(t)
	})
}

// calls is a provider with other names of people: a persistent id, and the current name.
type calls struct{ id, name, email string }

func (c *calls) MakeAssertion(r *crewjam.IdpAuthnRequest, s *crewjam.Session) error {
	called := *s
	called.NameID, called.NameIDFormat, called.UserName, called.UserEmail =
		c.id, string(crewjam.PersistentNameIDFormat), c.name, c.email
	return crewjam.DefaultAssertionMaker{}.MakeAssertion(r, &called)
}

// TestSAMLNames: a persistent id identifies the person; a name and an address do not.
func TestSAMLNames(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w := is.New(t), samltest.New(t), newWorld(t, open)
		called := &calls{"x7", "jo", "jo@example.com"}
		p.IDP.AssertionMaker = called
		p.PutPerson(t, samlJo)
		w.admin.must(
			t, "POST", "/api/users",
			`{"username": "boss", "email": "boss@example.com", "superuser": true, "password": "`+password+`"}`,
		)
		id := w.admin.entry(t, p, "acme")
		was := w.admin.users(t, "local")
		jo := newClient(t)
		enter := func(as calls) answer {
			t.Helper()
			*called = as
			action, form := jo.atProvider(t, w.sso("acme", id, "/api/session"), samlJo)
			return jo.post(t, action, form)
		}
		name := func(a answer) string {
			t.Helper()
			return read[struct{ User string }](t, a).User
		}
		is.Equal(name(enter(calls{"x7", "jo", "jo@example.com"})), "jo")
		source := w.admin.user(t, "jo").SourceID
		is.Equal(name(enter(calls{"x7", "joanna", "boss@example.com"})), "joanna")
		is.Equal(w.admin.user(t, "joanna").SourceID, source)
		is.Equal(name(enter(calls{"x7", "boss", "boss@example.com"})), "joanna") // who cannot get that name
		enter(calls{"x8", "boss", "boss@example.com"}).stranger(t)
		enter(calls{"x8", "joanna", "joanna@example.com"}).stranger(t)
		// a name that is free again, and another person
		is.Equal(name(enter(calls{"x8", "jo", "boss@example.com"})), "jo")
		is.True(w.admin.user(t, "jo").SourceID != source)
		is.Equal(w.admin.users(t, "local"), was)
	})
}

// TestSAMLAttacks: an answer is valid only as the provider signed it, for the login and the tenant
// that requested it.
func TestSAMLAttacks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w, jo := is.New(t), samltest.New(t), newWorld(t, open), newClient(t)
		p.PutPerson(t, samlJo)
		id := w.admin.entry(t, p, "acme")
		eve := w.in(t, "evil", "local", "admin", password)
		is.Equal(eve.entry(t, p, "evil"), id)
		w.admin.inTheClear(t, p, "acme", id) // so that the answer can be changed
		eve.inTheClear(t, p, "evil", id)
		other := w.admin.domain(t, "Other", "SAML", map[string]any{"metadataURL": p.URL + "/metadata"})
		begin := w.sso("acme", id, "/api/session")
		refused := func(change func(action string, form url.Values) string) {
			t.Helper()
			action, form := jo.atProvider(t, begin, samlJo)
			jo.post(t, change(action, form), form).stranger(t)
			is.Equal(jo.who(t, w), "")
		}

		spoil := func(old, with string) func(string, url.Values) string {
			return func(action string, form url.Values) string {
				document, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
				is.NoErr(err)
				spoilt := strings.ReplaceAll(string(document), old, with)
				is.True(spoilt != string(document))
				form.Set("SAMLResponse", base64.StdEncoding.EncodeToString([]byte(spoilt)))
				return action
			}
		}
		refused(spoil(">jo<", ">admin<"))
		refused(spoil("jo@example.com", "boss@example.com"))
		refused(spoil("tenant=acme", "tenant=evil"))
		refused(func(action string, form url.Values) string { form.Del("SAMLResponse"); return action })
		refused(func(action string, form url.Values) string { form.Set("RelayState", "made-up"); return action })
		refused(func(action string, form url.Values) string { return strings.Replace(action, id, other, 1) })
		for _, name := range []string{"response", "state"} {
			var theirs url.Values // of another login of the same person
			_, theirs = newClient(t).atProvider(t, begin, samlJo)
			refused(func(action string, form url.Values) string {
				if name == "response" {
					form.Set("SAMLResponse", theirs.Get("SAMLResponse"))
				} else {
					form.Set("RelayState", theirs.Get("RelayState"))
				}
				return action
			})
		}

		// Each tenant has another address: an answer that was signed for one is not valid for the
		// other.
		to, ours := jo.atProvider(t, begin, samlJo)
		action, theirs := jo.atProvider(t, w.sso("evil", id, "/api/session"), samlJo)
		is.Equal(strings.Replace(to, "tenant=acme", "tenant=evil", 1), action)
		for _, at := range []string{to, action} {
			jo.post(t, at, url.Values{
				"RelayState":   theirs["RelayState"],
				"SAMLResponse": ours["SAMLResponse"],
			}).stranger(t)
		}
		jo.post(t, action, ours).stranger(t)
		is.Equal(len(w.admin.users(t, id))+len(eve.users(t, id)), 0)
		is.Equal(read[struct{ Tenant string }](t, jo.post(t, to, ours)).Tenant, "acme")
	})
}
