package saml_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// leaving is a realm that takes part in logouts.
type leaving interface {
	login
	domains.FormLogout
	domains.LogoutReceiver
}

const (
	slo     = "https://idp.example/slo"
	sloBack = "https://idp.example/slo-back?x=1"
)

// leaver opens a domain at the provider with a key and endpoints of logouts there, for the
// bindings.
func (p *idp) leaver(t testing.TB, keys domains.Keys, bindings ...string) leaving {
	t.Helper()
	metadata := p.Metadata(t, func(e *crewjam.EntityDescriptor) {
		d := &e.IDPSSODescriptors[0]
		d.SingleLogoutServices = nil
		for _, b := range bindings {
			d.SingleLogoutServices = append(
				d.SingleLogoutServices, crewjam.Endpoint{Binding: b, Location: slo, ResponseLocation: sloBack},
			)
		}
	})
	return p.keyed(t, keys, map[string]any{"metadataXML": metadata}).(leaving)
}

var theirKeys = func() domains.Keys { return domains.Keys{Current: ours(samltest.Theirs())} }

// entered logs jo in, and returns the session at the provider.
func (p *idp) entered(t testing.TB, r login, change func(*crewjam.Assertion)) domains.ProviderSession {
	t.Helper()
	v := p.begin(t, r)
	who, err := v.sign(t, text(t, v.signedResponse(t, change)))
	is.New(t).NoErr(err)
	return who.Session
}

// ofSession returns a function that sets the NameID and the SessionIndex of an assertion.
func ofSession(id crewjam.NameID, session string) func(*crewjam.Assertion) {
	return func(a *crewjam.Assertion) {
		a.Subject.NameID = &id
		a.AuthnStatements[0].SessionIndex = session
	}
}

var jo = crewjam.NameID{
	Format:          string(crewjam.TransientNameIDFormat),
	NameQualifier:   "q",
	SPNameQualifier: at.Metadata,
	Value:           "_jo",
}

// logoutRequest is one of the provider for jo's session s-1.
func (p *idp) logoutRequest(change func(*crewjam.LogoutRequest)) *etree.Element {
	id := jo
	r := crewjam.LogoutRequest{
		ID: "id-out", Version: "2.0",
		IssueInstant: time.Now().UTC(), Destination: at.SLO, Issuer: &crewjam.Issuer{Value: p.IDP.Metadata().EntityID},
		NameID: &id, SessionIndex: &crewjam.SessionIndex{Value: "s-1"},
	}
	if change != nil {
		change(&r)
	}
	return r.Element()
}

// byQuery is a message as a browser brings it by HTTP-Redirect.
func byQuery(t testing.TB, query string) domains.Answer {
	t.Helper()
	query = "tenant=acme&" + query
	params, err := url.ParseQuery(query)
	is.New(t).NoErr(err)
	return domains.Answer{Params: params, Query: query}
}

// byForm is a message as a browser brings it by HTTP-POST.
func byForm(t testing.TB, parameter string, el *etree.Element) domains.Answer {
	t.Helper()
	return domains.Answer{
		Params: url.Values{parameter: {base64.StdEncoding.EncodeToString(text(t, el))}, "RelayState": {"their state"}},
	}
}

// TestLogoutBegins: the provider gets a signed request with the NameID and the session as it named
// them.
func TestLogoutBegins(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	r := p.leaver(t, theirKeys(), crewjam.HTTPPostBinding, crewjam.HTTPRedirectBinding)
	session := p.entered(t, r, ofSession(jo, "s-1"))
	is.Equal(session.ID, "s-1")
	location, form, memory, err := r.BeginFormLogout(t.Context(), at, session.Memory, "a-state")
	is.NoErr(err)
	is.True(form == nil && strings.HasPrefix(location, slo+"?SAMLRequest="))
	verifyQuery(t, location)
	u, err := url.Parse(location)
	is.NoErr(err)
	is.Equal(u.Query().Get("RelayState"), "a-state")
	el := samltest.Message(t, u.Query(), "SAMLRequest")
	is.Equal(el.Tag, "LogoutRequest")
	is.Equal(el.SelectAttrValue("ID", ""), string(memory))
	is.Equal(el.SelectAttrValue("Destination", ""), slo)
	is.Equal(el.FindElement("./Issuer").Text(), at.Metadata)
	id := el.FindElement("./NameID")
	is.Equal(crewjam.NameID{
		Format:          id.SelectAttrValue("Format", ""),
		NameQualifier:   id.SelectAttrValue("NameQualifier", ""),
		SPNameQualifier: id.SelectAttrValue("SPNameQualifier", ""),
		Value:           id.Text(),
	}, jo)
	is.Equal(el.FindElement("./SessionIndex").Text(), "s-1")

	// By a form, signed in the XML.
	posting := p.leaver(t, theirKeys(), crewjam.HTTPPostBinding)
	location, form, _, err = posting.BeginFormLogout(t.Context(), at, session.Memory, "a-state")
	is.NoErr(err)
	is.Equal(location, slo)
	is.Equal(form.Get("RelayState"), "a-state")
	document, err := base64.StdEncoding.DecodeString(form.Get("SAMLRequest"))
	is.NoErr(err)
	_, err = dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{
		Roots: certificates(samltest.Theirs()),
	}).Validate(parsed(t, document))
	is.NoErr(err)
	_, _, err = posting.BeginLogout(t.Context(), at, session.Memory, "a-state")
	is.Equal(errs.CodeOf(err), errs.Upstream)

	// Where there is nothing to send, the session ends here alone.
	none := p.leaver(t, theirKeys())
	keyless := p.leaver(t, domains.Keys{}, crewjam.HTTPRedirectBinding)
	soap := p.leaver(t, theirKeys(), "urn:oasis:names:tc:SAML:2.0:bindings:SOAP")
	nobody := p.entered(t, r, func(a *crewjam.Assertion) { a.Subject.NameID = nil })
	is.Equal(nobody, domains.ProviderSession{})
	long := p.entered(t, r, ofSession(crewjam.NameID{Value: strings.Repeat("x", 3000)}, "s-1"))
	is.Equal(long, domains.ProviderSession{})
	other := []byte(strings.Replace(string(session.Memory), p.URL, "https://other.example", 1))
	for _, c := range []struct {
		realm   leaving
		session []byte
	}{
		{none, session.Memory}, {keyless, session.Memory}, {soap, session.Memory}, {r, nobody.Memory},
		{r, other}, {r, []byte("{}")},
	} {
		location, form, _, err := c.realm.BeginFormLogout(t.Context(), at, c.session, "a-state")
		is.NoErr(err)
		is.True(location == "" && form == nil)
	}

	// The metadata names the endpoint where messages about logouts can be answered.
	for realm, want := range map[leaving]int{r: 2, none: 2, keyless: 0} {
		document, _, err := realm.Metadata(at)
		is.NoErr(err)
		is.Equal(strings.Count(string(document), `Location="`+at.SLO+`"></SingleLogoutService>`), want)
	}
}

// TestLogoutRequests: a signed request of the provider names the sessions that end, and gets a
// signed answer.
func TestLogoutRequests(t *testing.T) {
	p := newIDP(t)
	r := p.leaver(t, theirKeys(), crewjam.HTTPRedirectBinding)
	session := p.entered(t, r, ofSession(jo, "s-1"))
	signed := func(t *testing.T, el *etree.Element) domains.Answer {
		return byQuery(t, samltest.Ours().SignQuery(t, samltest.Query(t, "SAMLRequest", el, "their state"), sha256))
	}
	for name, c := range map[string]struct {
		notice   func(t *testing.T) domains.Answer
		sessions []string
	}{
		"by query": {func(t *testing.T) domains.Answer { return signed(t, p.logoutRequest(nil)) }, []string{"s-1"}},
		"by SHA-512": {func(t *testing.T) domains.Answer {
			return byQuery(
				t,
				samltest.Ours().SignQuery(
					t, samltest.Query(t, "SAMLRequest", p.logoutRequest(nil), "their state"),
					dsig.RSASHA512SignatureMethod,
				),
			)
		}, []string{"s-1"}},
		"with lower-case escapes": {func(t *testing.T) domains.Answer {
			query := samltest.Query(t, "SAMLRequest", p.logoutRequest(nil), "their state")
			return byQuery(
				t,
				samltest.Ours().SignQuery(
					t, strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3D", "%3d").Replace(query), sha256,
				),
			)
		}, []string{"s-1"}},
		"by form": {func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			samltest.Ours().Sign(t, el, sha256)
			return byForm(t, "SAMLRequest", el)
		}, []string{"s-1"}},
		"all sessions": {func(t *testing.T) domains.Answer {
			return signed(t, p.logoutRequest(func(r *crewjam.LogoutRequest) { r.SessionIndex = nil }))
		}, nil},
		"several sessions": {func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			el.CreateElement("samlp:SessionIndex").SetText("s-2")
			return signed(t, el)
		}, []string{"s-1", "s-2"}},
		"of a clock two minutes ahead": {func(t *testing.T) domains.Answer {
			return signed(t, p.logoutRequest(func(r *crewjam.LogoutRequest) {
				r.IssueInstant = r.IssueInstant.Add(2 * time.Minute)
			}))
		}, []string{"s-1"}},
		"of a clock two minutes behind": {func(t *testing.T) domains.Answer {
			return signed(t, p.logoutRequest(func(r *crewjam.LogoutRequest) {
				ends := r.IssueInstant.Add(-2 * time.Minute)
				r.IssueInstant, r.NotOnOrAfter = ends, &ends
			}))
		}, []string{"s-1"}},
		"without the qualifiers that go without saying": {func(t *testing.T) domains.Answer {
			return signed(t, p.logoutRequest(func(r *crewjam.LogoutRequest) { r.NameID.SPNameQualifier = "" }))
		}, []string{"s-1"}},
		"with an encrypted NameID": {func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			encryptName(t, el, "aes256-gcm")
			return signed(t, el)
		}, []string{"s-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			n, err := r.ReceiveLogout(t.Context(), at, c.notice(t))
			is.NoErr(err)
			is.Equal(n.Subject, session.Subject)
			is.Equal(n.Sessions, c.sessions)
			is.Equal(n.ID, p.IDP.Metadata().EntityID+" id-out")
			is.True(n.Until.After(time.Now()) && n.Until.Before(time.Now().Add(12*time.Minute)))
			is.True(n.Form == nil && strings.HasPrefix(n.Location, sloBack+"&SAMLResponse="))
			verifyQuery(t, strings.Replace(n.Location, "?x=1&", "?", 1))
			u, err := url.Parse(n.Location)
			is.NoErr(err)
			is.Equal(u.Query().Get("RelayState"), "their state")
			el := samltest.Message(t, u.Query(), "SAMLResponse")
			is.Equal(el.SelectAttrValue("InResponseTo", ""), "id-out")
			is.Equal(el.SelectAttrValue("Destination", ""), sloBack)
			is.Equal(el.FindElement("./Status/StatusCode").SelectAttrValue("Value", ""), crewjam.StatusSuccess)
		})
	}

	is := is.New(t)
	notice := signed(t, p.logoutRequest(nil))
	n, err := p.leaver(t, theirKeys(), crewjam.HTTPPostBinding).ReceiveLogout(t.Context(), at, notice)
	is.NoErr(err)
	is.Equal(n.Location, sloBack)
	is.Equal(n.Form.Get("RelayState"), "their state")
	is.True(n.Form.Get("SAMLResponse") != "")
	for _, silent := range []leaving{
		p.leaver(t, theirKeys()), p.leaver(t, domains.Keys{}, crewjam.HTTPRedirectBinding),
	} {
		n, err := silent.ReceiveLogout(t.Context(), at, notice) // nobody waits for an answer
		is.NoErr(err)
		is.Equal(n.Subject, session.Subject)
		is.Equal(n.Location, "")
	}
	n, err = r.ReceiveLogout(t.Context(), at, signed(t, p.logoutRequest(func(r *crewjam.LogoutRequest) {
		r.NameID.SPNameQualifier = "https://other.example"
	})))
	is.NoErr(err)
	is.True(n.Subject != session.Subject) // somebody of another service
}

// TestLongLogoutMessages: whoever sends long messages does not have them checked.
func TestLongLogoutMessages(t *testing.T) {
	is, p := is.New(t), newIDP(t)
	r := p.leaver(t, theirKeys(), crewjam.HTTPRedirectBinding)
	el := p.logoutRequest(func(r *crewjam.LogoutRequest) { r.SessionIndex = nil })
	for i := range 100 {
		el.CreateElement("samlp:SessionIndex").SetText(fmt.Sprintf("%01024d", i))
	}
	samltest.Ours().Sign(t, el, sha256)
	n, err := r.ReceiveLogout(t.Context(), at, byForm(t, "SAMLRequest", el))
	is.NoErr(err)
	is.Equal(len(n.Sessions), 100)
	el.CreateElement("samlp:Extensions").SetText(strings.Repeat("x", 32<<10))
	for _, notice := range []domains.Answer{
		byForm(t, "SAMLRequest", el),
		byQuery(t, samltest.Ours().SignQuery(t, samltest.Query(t, "SAMLRequest", el, ""), sha256)),
	} {
		_, err := r.ReceiveLogout(t.Context(), at, notice)
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		is.True(strings.Contains(err.Error(), "more than 131072"))
	}
}

// encryptName encrypts the NameID of a message or subject for the domain's key, or what path finds
// instead.
func encryptName(t testing.TB, in *etree.Element, content string, path ...string) {
	t.Helper()
	id := in.FindElement(append(path, "./NameID")[0])
	encrypted := samltest.Encrypt(t, samltest.Theirs().Cert, text(t, id), samltest.Encryption{Content: content})
	encrypted.Tag = "EncryptedID"
	n := strconv.Itoa(len(in.ChildElements()))
	// not that of the assertion
	encrypted.FindElement("./EncryptedData/KeyInfo/EncryptedKey").CreateAttr("Id", in.Tag+n)
	in.InsertChildAt(id.Index(), encrypted)
	in.RemoveChild(id)
}

func TestRefusedLogoutRequests(t *testing.T) {
	p := newIDP(t)
	r := p.leaver(t, theirKeys(), crewjam.HTTPRedirectBinding)
	sign := func(t *testing.T, el *etree.Element, s samltest.Signer, method string) domains.Answer {
		return byQuery(t, s.SignQuery(t, samltest.Query(t, "SAMLRequest", el, "their state"), method))
	}
	edited := func(change func(*crewjam.LogoutRequest)) func(*testing.T) domains.Answer {
		return func(t *testing.T) domains.Answer { return sign(t, p.logoutRequest(change), samltest.Ours(), sha256) }
	}
	query := func(change func(query string) string) func(*testing.T) domains.Answer {
		return func(t *testing.T) domains.Answer {
			return byQuery(
				t,
				change(samltest.Ours().SignQuery(
					t, samltest.Query(t, "SAMLRequest", p.logoutRequest(nil), "their state"), sha256,
				)),
			)
		}
	}
	form := func(change func(t *testing.T, el *etree.Element)) func(*testing.T) domains.Answer {
		return func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			change(t, el)
			return byForm(t, "SAMLRequest", el)
		}
	}
	ago := func(d time.Duration) *time.Time { then := time.Now().UTC().Add(-d); return &then }
	for name, c := range map[string]struct {
		why    string
		notice func(*testing.T) domains.Answer
	}{
		"unsigned by query": {"not signed", func(t *testing.T) domains.Answer {
			return byQuery(t, samltest.Query(t, "SAMLRequest", p.logoutRequest(nil), "s"))
		}},
		"unsigned by form": {"not signed", form(func(*testing.T, *etree.Element) {})},
		"signed in the XML of a query": {"not signed", func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			samltest.Ours().Sign(t, el, sha256)
			return byQuery(t, samltest.Query(t, "SAMLRequest", el, ""))
		}},
		"of a stranger by query": {"no key", func(t *testing.T) domains.Answer {
			return sign(t, p.logoutRequest(nil), samltest.Theirs(), sha256)
		}},
		"of a stranger by form": {"no key", form(func(t *testing.T, el *etree.Element) {
			samltest.Theirs().Sign(t, el, sha256)
		})},
		"SHA-1 by query": {"rsa-sha1", func(t *testing.T) domains.Answer {
			return sign(t, p.logoutRequest(nil), samltest.Ours(), dsig.RSASHA1SignatureMethod)
		}},
		"SHA-1 by form": {"SHA-1", form(func(t *testing.T, el *etree.Element) {
			samltest.Ours().Sign(t, el, dsig.RSASHA1SignatureMethod)
		})},
		"no algorithm": {"signed with", query(func(q string) string {
			return strings.Replace(q, "&SigAlg=", "&sigalg=", 1)
		})},
		"HMAC": {"hmac", query(func(q string) string {
			return strings.Replace(q, "rsa-sha256", "hmac-sha256", 1)
		})},
		"changed RelayState": {"no key", query(func(q string) string {
			return strings.Replace(q, "their", "other", 1)
		})},
		"without RelayState": {"no key", query(func(q string) string {
			return strings.Replace(q, "&RelayState=their+state", "", 1)
		})},
		"a second RelayState": {"twice", query(func(q string) string { return q + "&RelayState=x" })},
		"a second request":    {"twice", query(func(q string) string { return "SAMLRequest=x&" + q })},
		"a hidden request":    {"a parameter", query(func(q string) string { return "SAML%52equest=x&" + q })},
		"spelled otherwise": {"no key", query(func(q string) string {
			return strings.Replace(q, "+state", "%20state", 1)
		})},
		"no base64": {"base64", query(func(q string) string {
			return q[:strings.Index(q, "&Signature=")] + "&Signature=%25"
		})},
		"changed in the form": {"no key", form(func(t *testing.T, el *etree.Element) {
			samltest.Ours().Sign(t, el, sha256)
			el.FindElement("./NameID").SetText("_boss")
		})},
		"wrapped in the form": {"", form(func(t *testing.T, el *etree.Element) {
			good := el.Copy()
			samltest.Ours().Sign(t, good, sha256)
			el.CreateAttr("ID", "id-evil")
			el.FindElement("./NameID").SetText("_boss")
			signature := good.FindElement("./Signature")
			good.RemoveChild(signature)
			signature.CreateElement("ds:Object").AddChild(good)
			el.InsertChildAt(1, signature)
		})},
		"a comment": {"comment", form(func(t *testing.T, el *etree.Element) {
			samltest.Ours().Sign(t, el, sha256)
			el.FindElement("./NameID").InsertChildAt(0, etree.NewComment("x"))
		})},
		"another issuer": {"it is of", edited(func(r *crewjam.LogoutRequest) {
			r.Issuer.Value = "https://other.example"
		})},
		"no issuer": {"it is of", edited(func(r *crewjam.LogoutRequest) { r.Issuer = nil })},
		"another destination": {"destination", edited(func(r *crewjam.LogoutRequest) {
			r.Destination = "https://content.example/api/login/sso/slo?tenant=evil"
		})},
		"another domain": {"destination", edited(func(r *crewjam.LogoutRequest) {
			r.Destination = "https://content.example/api/login/other/slo?tenant=acme"
		})},
		"no destination":  {"destination", edited(func(r *crewjam.LogoutRequest) { r.Destination = "" })},
		"another version": {"SAML 2.0", edited(func(r *crewjam.LogoutRequest) { r.Version = "1.1" })},
		"old": {"too long ago", edited(func(r *crewjam.LogoutRequest) {
			r.IssueInstant = *ago(8*time.Minute + 10*time.Second)
		})},
		"ended": {"too long ago", edited(func(r *crewjam.LogoutRequest) {
			r.NotOnOrAfter = ago(3*time.Minute + 10*time.Second)
		})},
		"of the future": {"in the future", edited(func(r *crewjam.LogoutRequest) {
			r.IssueInstant = *ago(-4 * time.Minute)
		})},
		"of no time": {"too long ago", edited(func(r *crewjam.LogoutRequest) {
			r.IssueInstant = time.Time{}
		})},
		"nobody":         {"no NameID", edited(func(r *crewjam.LogoutRequest) { r.NameID = nil })},
		"nobody by name": {"no NameID", edited(func(r *crewjam.LogoutRequest) { r.NameID.Value = "" })},
		"somebody with a novel": {"a long one", edited(func(r *crewjam.LogoutRequest) {
			r.NameID.Value = strings.Repeat("x", 3000)
		})},
		"without an id": {"no ID", edited(func(r *crewjam.LogoutRequest) { r.ID = "" })},
		"a long id": {"a long one", edited(func(r *crewjam.LogoutRequest) {
			r.ID = "id" + strings.Repeat("x", 2000)
		})},
		"many sessions": {"SessionIndexes", func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			for range 100 {
				el.CreateElement("samlp:SessionIndex").SetText("s")
			}
			return sign(t, el, samltest.Ours(), sha256)
		}},
		"a long RelayState": {"RelayState", func(t *testing.T) domains.Answer {
			return byQuery(
				t,
				samltest.Ours().SignQuery(
					t, samltest.Query(t, "SAMLRequest", p.logoutRequest(nil), strings.Repeat("x", 1025)),
					sha256,
				),
			)
		}},
		"another message": {"instead of a LogoutRequest", func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			el.Tag = "AuthnRequest"
			return sign(t, el, samltest.Ours(), sha256)
		}},
		"a name that does not open": {"cannot be decrypted", func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			encryptName(t, el, "aes256-gcm")
			el.FindElement("./EncryptedID/EncryptedData/CipherData/CipherValue").SetText("AAAA")
			return sign(t, el, samltest.Ours(), sha256)
		}},
		"a bomb": {"more than", func(t *testing.T) domains.Answer {
			el := p.logoutRequest(nil)
			el.CreateElement("x").SetText(strings.Repeat(" ", 2<<20))
			return sign(t, el, samltest.Ours(), sha256)
		}},
		"no deflated text": {"cannot be taken", func(t *testing.T) domains.Answer {
			return byQuery(t, samltest.Ours().SignQuery(t, "SAMLRequest=AAAA", sha256))
		}},
		"no request": {"there is no", func(t *testing.T) domains.Answer {
			return byQuery(t, samltest.Ours().SignQuery(t, "SAMLRequest=", sha256))
		}},
		"two forms": {"not one", func(*testing.T) domains.Answer {
			return domains.Answer{Params: url.Values{"SAMLRequest": {"AAAA", "AAAA"}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			n, err := r.ReceiveLogout(t.Context(), at, c.notice(t))
			refused(t, domains.Identity{}, err, c.why)
			is.Equal(n, domains.LogoutNotice{})
		})
	}
}

// TestLogoutResponses: the answer to a logout that has begun here.
func TestLogoutResponses(t *testing.T) {
	p := newIDP(t)
	r := p.leaver(t, theirKeys(), crewjam.HTTPRedirectBinding)
	response := func(change func(*crewjam.LogoutResponse)) *etree.Element {
		m := crewjam.LogoutResponse{
			ID: "id-back", InResponseTo: "id-mine", Version: "2.0", IssueInstant: time.Now().UTC(), Destination: at.SLO,
			Issuer: &crewjam.Issuer{Value: p.IDP.Metadata().EntityID},
			Status: crewjam.Status{StatusCode: crewjam.StatusCode{Value: crewjam.StatusSuccess}},
		}
		if change != nil {
			change(&m)
		}
		return m.Element()
	}
	is := is.New(t)
	for _, answer := range []domains.Answer{
		byQuery(t, samltest.Ours().SignQuery(t, samltest.Query(t, "SAMLResponse", response(nil), "a-state"), sha256)),
		byQuery(t, samltest.Query(t, "SAMLResponse", response(nil), "a-state")), // as some send it
		byForm(t, "SAMLResponse", response(nil)),
	} {
		is.NoErr(r.FinishLogout(t.Context(), at, []byte("id-mine"), answer))
	}
	for name, c := range map[string]struct {
		why    string
		answer domains.Answer
	}{
		"of a stranger": {
			"no key",
			byQuery(t, samltest.Theirs().SignQuery(t, samltest.Query(t, "SAMLResponse", response(nil), ""), sha256)),
		},
		"SHA-1": {
			"rsa-sha1",
			byQuery(
				t,
				samltest.Ours().SignQuery(
					t, samltest.Query(t, "SAMLResponse", response(nil), ""), dsig.RSASHA1SignatureMethod,
				),
			),
		},
		"to another request": {"is to", byForm(t, "SAMLResponse", response(func(r *crewjam.LogoutResponse) {
			r.InResponseTo = "id-other"
		}))},
		"another issuer": {"it is of", byForm(t, "SAMLResponse", response(func(r *crewjam.LogoutResponse) {
			r.Issuer.Value = "x"
		}))},
		"another destination": {"destination", byForm(t, "SAMLResponse", response(func(r *crewjam.LogoutResponse) {
			r.Destination = at.ACS
		}))},
		"old": {"too long ago", byForm(t, "SAMLResponse", response(func(r *crewjam.LogoutResponse) {
			r.IssueInstant = time.Now().Add(-time.Hour).UTC()
		}))},
		"refused": {"refused with status", byForm(t, "SAMLResponse", response(func(r *crewjam.LogoutResponse) {
			r.Status.StatusCode.Value = crewjam.StatusResponder
		}))},
		"another message": {"instead of a LogoutResponse", byForm(t, "SAMLResponse", p.logoutRequest(nil))},
		"none":            {"not one", domains.Answer{}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, domains.Identity{}, r.FinishLogout(t.Context(), at, []byte("id-mine"), c.answer), c.why)
		})
	}
	refused(t, domains.Identity{}, r.FinishLogout(t.Context(), at, nil, byForm(t, "SAMLResponse",
		response(func(r *crewjam.LogoutResponse) {
			r.InResponseTo = ""
		}))), "is to")
}
