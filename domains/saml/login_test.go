package saml_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

var _ domains.KeyedDriver = saml.Driver{}

// A browser logs in at a real provider and comes back, with metadata that is fetched on both sides.
func TestBrowser(t *testing.T) {
	is := is.New(t)
	p := newIDP(t)
	p.PutPerson(t, samltest.Person{
		Name:     "jo",
		Password: "secret",
		Email:    "jo@example.com",
		Surname:  "Doe",
		Given:    "Jo",
	})
	var came url.Values
	content := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is.NoErr(r.ParseForm())
		came = r.PostForm
	}))
	t.Cleanup(content.Close)
	at := domains.Endpoints{ACS: content.URL + "/acs", Metadata: content.URL + "/metadata"}
	r := open(t, map[string]any{"metadataURL": p.URL + "/metadata"})
	document, _, err := r.Metadata(at)
	is.NoErr(err)
	p.Put(t, "/services/content", document)

	location, memory, err := r.Begin(t.Context(), at, "acme.a+b&c")
	is.NoErr(err)
	b := newBrowser(t)
	action, form := b.get(location)
	form.Set("user", "jo")
	form.Set("password", "wrong")
	action, form = b.post(action, form)
	is.Equal(action, p.URL+"/sso") // once more
	form.Set("user", "jo")
	form.Set("password", "secret")
	action, form = b.post(action, form)
	is.Equal(action, at.ACS)
	b.post(action, form)

	is.Equal(came.Get("RelayState"), "acme.a+b&c")
	answer := domains.Answer{Params: came, State: "acme.a+b&c"}
	who, err := r.Finish(t.Context(), at, memory, answer)
	is.NoErr(err)
	is.Equal(who.Identity, domains.Identity{
		ID: p.URL + "/metadata!username!jo", Username: "jo",
		GivenName: "Jo", FamilyName: "Doe", Email: "jo@example.com",
	})

	_, other, err := r.Begin(t.Context(), at, "acme.other")
	is.NoErr(err)
	_, err = r.Finish(t.Context(), at, other, answer) // a response answers one request
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

// browser follows forms, as people and scripts in pages do.
type browser struct {
	t      *testing.T
	client http.Client
}

func newBrowser(t *testing.T) *browser {
	jar, err := cookiejar.New(nil)
	is.New(t).NoErr(err)
	return &browser{t, http.Client{Jar: jar}}
}

func (b *browser) get(address string) (action string, form url.Values) {
	return b.page(b.client.Get(address))
}

func (b *browser) post(address string, form url.Values) (action string, next url.Values) {
	return b.page(b.client.PostForm(address, form))
}

// page returns the form on a page.
func (b *browser) page(res *http.Response, err error) (action string, form url.Values) {
	is := is.New(b.t)
	is.NoErr(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	is.NoErr(err)
	is.Equal(res.StatusCode, http.StatusOK)
	return samltest.Form(body)
}

// What may be signed, and how. Each is a login.
func TestSigned(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for name, sign := range map[string]func(t *testing.T, v *visit) []byte{
		"assertion": func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA256SignatureMethod)
			return text(t, v.response(a))
		},
		"response": func(t *testing.T, v *visit) []byte {
			response := v.response(v.assertion(nil))
			samltest.Ours().Sign(t, response, dsig.RSASHA256SignatureMethod)
			return text(t, response)
		},
		"both, with SHA-512": func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA512SignatureMethod)
			response := v.response(a)
			samltest.Ours().Sign(t, response, dsig.RSASHA512SignatureMethod)
			return text(t, response)
		},
		"namespaces that the response declares": func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA256SignatureMethod)
			response := v.response(a)
			response.CreateAttr("xmlns:saml", "urn:oasis:names:tc:SAML:2.0:assertion")
			a.RemoveAttr("xmlns:saml")
			return text(t, response)
		},
		"without a key": func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA256SignatureMethod)
			s := a.FindElement("./Signature")
			s.RemoveChild(s.FindElement("./KeyInfo"))
			return text(t, v.response(a))
		},
		"with the name of a key": func(t *testing.T, v *visit) []byte {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA256SignatureMethod)
			info := a.FindElement("./Signature/KeyInfo")
			info.RemoveChild(info.FindElement("./X509Data"))
			info.CreateElement("ds:KeyName").SetText("1")
			return text(t, v.response(a))
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			v := p.begin(t, r)
			who, err := v.bring(t, sign(t, v))
			is.NoErr(err)
			is.Equal(who.Username, "jo")
		})
	}
}

// While a provider changes its key, its metadata has both.
func TestTwoKeys(t *testing.T) {
	is := is.New(t)
	p := newIDP(t)
	r := p.realm(t, map[string]any{"metadataXML": p.Metadata(t, func(e *crewjam.EntityDescriptor) {
		keys := &e.IDPSSODescriptors[0].KeyDescriptors
		*keys = append([]crewjam.KeyDescriptor{samltest.Theirs().Descriptor()}, *keys...)
	})})
	for _, key := range []samltest.Signer{samltest.Ours(), samltest.Theirs()} {
		v := p.begin(t, r)
		a := v.assertion(nil)
		key.Sign(t, a, dsig.RSASHA256SignatureMethod)
		_, err := v.finish(t, v.response(a))
		is.NoErr(err)
	}
}
