package endtoend_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// postTo posts a form to a node as a separate browser.
func (w *world) postTo(t testing.TB, address string, form url.Values, header ...string) answer {
	t.Helper()
	is := is.New(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	is.NoErr(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://idp.example")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := w.way.RoundTrip(r)
	is.NoErr(err)
	return received(t, res)
}

// TestSAMLUnasked: a login that begins at the provider is accepted if the domain allows it, once on
// all nodes, in a separate page.
func TestSAMLUnasked(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, db, key := is.New(t), samltest.New(t), open(t), tenantcontent.NewSecretKey()
		p.PutPerson(t, samlJo)
		w := serve(t, db, key, nil)
		// another node of the same service
		node := serve(t, db, key, nil, func(c *tenantcontent.Config) { c.BaseURL = w.url })
		id := w.admin.entry(t, p, "acme")
		service := w.url + "/api/login/" + id + "/metadata?tenant=acme"
		p.Put(
			t, "/shortcuts/tile",
			[]byte(`{"name": "tile", "service_provider": "`+service+`", "relay_state": "/api/session"}`),
		)
		jo := newClient(t)
		jo.atProvider(t, w.sso("acme", id, ""), samlJo) // the browser is logged in there from now on
		tile := func() (string, url.Values) { return jo.atProvider(t, p.URL+"/login/tile", samlJo) }

		action, form := tile()
		is.Equal(action, w.url+"/api/login/entry/acs?tenant=acme")
		w.postTo(t, action, form).stranger(t) // not allowed
		w.admin.reconfigure(t, id, "SAML", map[string]any{"metadataURL": p.URL + "/metadata", "idpInitiated": true})

		w.postTo(t, action, form, "Sec-Fetch-Dest", "iframe").stranger(t)
		is.True(strings.Contains(w.log.String(), "came to a frame"))
		w.postTo(t, strings.Replace(action, "acme", "evil", 1), form).stranger(t)
		a := node.postTo(t, action, form, "Sec-Fetch-Dest", "document")
		is.Equal(a.status, http.StatusSeeOther)
		is.Equal(a.header.Get("Location"), w.url+"/api/session")
		for _, replayed := range []*world{w, node, w} {
			replayed.postTo(t, action, form).stranger(t)
		}
		action, form = tile()
		form.Set("RelayState", "https://evil.example/")
		a = w.postTo(t, action, form)
		is.Equal(a.status, http.StatusOK) // and nowhere else
		is.True(read[struct{ Token string }](t, a).Token != "")

		// An answer to a login that was begun here is not valid without its browser, whatever its
		// state is.
		begun := w.sso("acme", id, "/api/session")
		action, form = jo.atProvider(t, begun, samlJo)
		for _, state := range []string{"", "/api/session", form.Get("RelayState")} {
			form.Set("RelayState", state)
			w.postTo(t, action, form).stranger(t)
		}
	})
}

// TestSAMLKeys: the provider encrypts for the domain's key, and logins work while the key is
// changed.
func TestSAMLKeys(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, w := is.New(t), samltest.New(t), newWorld(t, open)
		p.PutPerson(t, samlJo)
		id := w.admin.entry(t, p, "acme")
		enter := func() {
			t.Helper()
			jo := newClient(t)
			action, form := jo.atProvider(t, w.sso("acme", id, "/api/session"), samlJo)
			document, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
			is.NoErr(err)
			is.True(strings.Contains(string(document), "EncryptedAssertion"))
			is.Equal(read[struct{ User string }](t, jo.post(t, action, form)).User, "jo")
		}
		type key struct{ Use, Fingerprint, Certificate string }
		keys := func(method, path string) []key {
			t.Helper()
			a := w.admin.must(t, method, "/api/domains/"+id+path, "")
			is.True(!strings.Contains(a.body, "PRIVATE"))
			return read[struct{ Keys []key }](t, a).Keys
		}
		enter()
		first := keys("GET", "/keys")
		is.Equal(len(first), 1)
		is.True(strings.HasPrefix(first[0].Certificate, "-----BEGIN CERTIFICATE-----"))
		is.Equal(len(keys("POST", "/keys/_roll")), 2)
		enter()
		rolled := keys("POST", "/keys/_roll")
		is.Equal([]string{rolled[0].Use, rolled[1].Use}, []string{"current", "previous"})
		is.Equal(rolled[1].Fingerprint, first[0].Fingerprint)
		enter() // the provider has not read the metadata again
		(&caller{w, ""}).do(t, "GET", "/api/domains/"+id+"/keys", "").refused(t, http.StatusUnauthorized)
	})
}
