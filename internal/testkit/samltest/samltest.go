// Package samltest runs SAML identity providers for tests, over HTTP on this machine, with
// crewjam's implementation. It also has keys to sign messages that such a provider would not send.
package samltest

import (
	"bytes"
	"encoding/xml"
	"html"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/crewjam/saml/samlidp"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"
	"golang.org/x/crypto/bcrypt"
)

// Provider is a real identity provider. It signs assertions with the key of Ours.
type Provider struct {
	*samlidp.Server
	URL string
}

// New starts a provider that ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	is := is.New(t)
	p := &Provider{}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.ServeHTTP(w, r) }))
	t.Cleanup(web.Close)
	u, err := url.Parse(web.URL)
	is.NoErr(err)
	p.URL = web.URL
	p.Server, err = samlidp.New(samlidp.Options{
		URL: *u, Key: Ours().Key,
		Certificate: Ours().Cert, Store: &samlidp.MemoryStore{}, Logger: log.New(io.Discard, "", 0),
	})
	is.NoErr(err)
	p.IDP.SignatureMethod = dsig.RSASHA256SignatureMethod
	p.IDP.LoginURL = p.IDP.SSOURL // so that a login continues to the service
	return p
}

// Put stores something at the provider: the metadata of a service below /services/.
func (p *Provider) Put(t testing.TB, path string, body []byte) {
	t.Helper()
	is := is.New(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, p.URL+path, bytes.NewReader(body))
	is.NoErr(err)
	res, err := http.DefaultClient.Do(req)
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	is.Equal(res.StatusCode, http.StatusNoContent)
}

// Person is a person who can log in at the provider.
type Person struct {
	Name     string
	Password string
	Email    string
	Surname  string
	Given    string
}

// PutPerson adds or changes a person at the provider. Sessions there keep the previous values.
// Passwords are hashed with the least cost, because that of the provider takes seconds with the
// race detector, for each login.
func (p *Provider) PutPerson(t testing.TB, who Person) {
	t.Helper()
	hashed, err := bcrypt.GenerateFromPassword([]byte(who.Password), bcrypt.MinCost)
	is.New(t).NoErr(err)
	is.New(t).NoErr(p.Store.Put("/users/"+who.Name, samlidp.User{
		Name: who.Name, HashedPassword: hashed, Email: who.Email, Surname: who.Surname, GivenName: who.Given,
	}))
}

// Metadata returns the metadata of the provider, changed by change.
func (p *Provider) Metadata(t testing.TB, change func(*crewjam.EntityDescriptor)) string {
	t.Helper()
	e := p.IDP.Metadata()
	if change != nil {
		change(e)
	}
	text, err := xml.Marshal(e)
	is.New(t).NoErr(err)
	return string(text)
}

var (
	formAction = regexp.MustCompile(`action="([^"]*)"`)
	formInput  = regexp.MustCompile(`name="([^"]*)"[^>]* value="([^"]*)"`)
)

// Form returns the form of a page of the provider: its action, "" for a page without a form, and
// its fields.
func Form(page []byte) (action string, fields url.Values) {
	if m := formAction.FindSubmatch(page); m != nil {
		action = html.UnescapeString(string(m[1]))
	}
	fields = url.Values{}
	for _, m := range formInput.FindAllSubmatch(page, -1) {
		fields.Set(string(m[1]), html.UnescapeString(string(m[2])))
	}
	return action, fields
}
