package saml_test

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// at is where the domain is at this service.
var at = domains.Endpoints{
	ACS:      "https://content.example/api/login/sso/acs",
	Metadata: "https://content.example/api/login/sso/metadata",
	SLO:      "https://content.example/api/login/sso/slo?tenant=acme",
}

// idp is a real identity provider at which a test opens domains.
type idp struct{ *samltest.Provider }

func newIDP(t testing.TB) *idp {
	t.Helper()
	return &idp{samltest.New(t)}
}

// realm opens a domain at the provider, and makes it known there. more are members of the
// configuration.
func (p *idp) realm(t testing.TB, more map[string]any) login {
	t.Helper()
	config := map[string]any{"metadataXML": p.Metadata(t, nil)}
	for name, value := range more {
		config[name] = value
	}
	r := open(t, config)
	document, contentType, err := r.Metadata(at)
	is.New(t).NoErr(err)
	is.New(t).Equal(contentType, "application/samlmetadata+xml")
	p.Put(t, "/services/content", document)
	return r
}

// login is what a realm of this driver can do.
type login interface {
	domains.RedirectLogin
	domains.Metadata
}

func open(t testing.TB, config map[string]any) login {
	t.Helper()
	text, err := json.Marshal(config)
	is.New(t).NoErr(err)
	r, err := saml.Driver{}.Open(text)
	is.New(t).NoErr(err)
	return r.(login)
}

// visit is one login that has begun, with the request as the provider got it.
type visit struct {
	realm   login
	memory  []byte
	request *crewjam.IdpAuthnRequest
}

// begin sends jo to the provider, who makes the assertion that it would sign.
func (p *idp) begin(t testing.TB, r login) *visit {
	t.Helper()
	location, memory, err := r.Begin(t.Context(), at, "acme.state")
	is.New(t).NoErr(err)
	return p.visit(t, r, location, memory, nil)
}

// visit is jo's with the request in an address. service is the metadata of this service, nil if the
// provider has it already.
func (p *idp) visit(t testing.TB, r login, location string, memory, service []byte) *visit {
	t.Helper()
	is, at := is.New(t), &p.IDP
	if service != nil {
		var e crewjam.EntityDescriptor
		is.NoErr(xml.Unmarshal(service, &e))
		alone := p.IDP
		at, alone.ServiceProviderProvider = &alone, only{&e}
	}
	request, err := crewjam.NewIdpAuthnRequest(at, httptest.NewRequest(http.MethodGet, location, nil))
	is.NoErr(err)
	is.NoErr(request.Validate())
	is.Equal(request.RelayState, "acme.state")
	is.NoErr(crewjam.DefaultAssertionMaker{}.MakeAssertion(request, &crewjam.Session{
		NameID: "jo@example.com", UserName: "jo", UserEmail: "jo@example.com",
		UserSurname: "Doe", UserGivenName: "Jo", CreateTime: time.Now(),
	}))
	return &visit{r, memory, request}
}

// only is a provider's list of services with one of them.
type only struct{ service *crewjam.EntityDescriptor }

func (o only) GetServiceProvider(*http.Request, string) (*crewjam.EntityDescriptor, error) {
	return o.service, nil
}

// assertion is what the provider says, changed before it is signed.
func (v *visit) assertion(change func(*crewjam.Assertion)) *etree.Element {
	if change != nil {
		change(v.request.Assertion)
	}
	return v.request.Assertion.Element()
}

// response puts elements into an answer to the request.
func (v *visit) response(inside ...*etree.Element) *etree.Element {
	r := crewjam.Response{
		ID: "id-response", Version: "2.0",
		IssueInstant: time.Now().UTC(), InResponseTo: v.request.Request.ID, Destination: at.ACS,
		Issuer: &crewjam.Issuer{Value: v.request.IDP.Metadata().EntityID},
		Status: crewjam.Status{StatusCode: crewjam.StatusCode{Value: crewjam.StatusSuccess}},
	}
	el := r.Element()
	for _, child := range inside {
		el.AddChild(child)
	}
	return el
}

// finish brings a response back.
func (v *visit) finish(t testing.TB, response *etree.Element) (domains.Identity, error) {
	t.Helper()
	return v.bring(t, text(t, response))
}

// bring brings the bytes of a response back.
func (v *visit) bring(t testing.TB, document []byte) (domains.Identity, error) {
	t.Helper()
	who, err := v.sign(t, document)
	return who.Identity, err
}

// sign brings the bytes of a response back, and returns all that is known of who has signed in.
func (v *visit) sign(t testing.TB, document []byte) (domains.SignedIn, error) {
	t.Helper()
	form := url.Values{"SAMLResponse": {base64.StdEncoding.EncodeToString(document)}, "RelayState": {"acme.state"}}
	return v.realm.Finish(t.Context(), at, v.memory, domains.Answer{Params: form, State: "acme.state"})
}

// text writes an element without giving it to a new parent.
func text(t testing.TB, el *etree.Element) []byte {
	t.Helper()
	tree := etree.NewDocument()
	tree.SetRoot(el.Copy())
	document, err := tree.WriteToBytes()
	is.New(t).NoErr(err)
	return document
}

// parsed reads an element again, so that it is what a receiver sees.
func parsed(t testing.TB, document []byte) *etree.Element {
	t.Helper()
	tree := etree.NewDocument()
	is.New(t).NoErr(tree.ReadFromBytes(document))
	return tree.Root()
}

// verifyQuery checks the signature in the query of an address with the key of samltest.Theirs.
func verifyQuery(t testing.TB, location string) {
	t.Helper()
	is := is.New(t)
	_, query, _ := strings.Cut(location, "?")
	over, signature, found := strings.Cut(query, "&Signature=")
	is.True(found)
	signature, err := url.QueryUnescape(signature)
	is.NoErr(err)
	raw, err := base64.StdEncoding.DecodeString(signature)
	is.NoErr(err)
	is.NoErr(samltest.Theirs().Cert.CheckSignature(x509.SHA256WithRSA, []byte(over), raw))
}

func certificates(s samltest.Signer) []*x509.Certificate { return []*x509.Certificate{s.Cert} }
