package saml_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/crewjam/saml/xmlenc"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// sha256 is how everything is signed but where a test says otherwise.
const sha256 = dsig.RSASHA256SignatureMethod

// refused checks that a response is refused for a reason.
func refused(t *testing.T, who domains.Identity, err error, why string) {
	t.Helper()
	is := is.New(t)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	is.Equal(errs.MessageOf(err), "Unable to log in")
	is.Equal(who, domains.Identity{})
	if !strings.Contains(err.Error(), why) {
		t.Errorf("refused for %q, want %q", err, why)
	}
}

// signedResponse is an answer with an assertion that the provider has signed.
func (v *visit) signedResponse(t testing.TB, change func(*crewjam.Assertion)) *etree.Element {
	t.Helper()
	a := v.assertion(change)
	samltest.Ours().Sign(t, a, sha256)
	return v.response(a)
}

// Assertions that the provider has signed, but not for this login, this service or this moment.
func TestRefusedAssertions(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	confirmation := func(a *crewjam.Assertion) *crewjam.SubjectConfirmationData {
		return a.Subject.SubjectConfirmations[0].SubjectConfirmationData
	}
	for name, c := range map[string]struct {
		why    string
		change func(*crewjam.Assertion)
	}{
		"other audience": {"is for", func(a *crewjam.Assertion) {
			a.Conditions.AudienceRestrictions[0].Audience.Value = "https://other.example"
		}},
		"audience in part": {"is for", func(a *crewjam.Assertion) {
			a.Conditions.AudienceRestrictions[0].Audience.Value += "/more"
		}},
		"no audience": {"no audience", func(a *crewjam.Assertion) { a.Conditions.AudienceRestrictions = nil }},
		"a second audience": {"is for", func(a *crewjam.Assertion) {
			a.Conditions.AudienceRestrictions = append(
				a.Conditions.AudienceRestrictions,
				crewjam.AudienceRestriction{Audience: crewjam.Audience{Value: "x"}},
			)
		}},
		"other recipient": {"recipient", func(a *crewjam.Assertion) {
			confirmation(a).Recipient = "https://other.example/acs"
		}},
		"no recipient": {"recipient", func(a *crewjam.Assertion) { confirmation(a).Recipient = "" }},
		"to another request": {"in response to", func(a *crewjam.Assertion) {
			confirmation(a).InResponseTo = "id-other"
		}},
		"to no request": {"in response to", func(a *crewjam.Assertion) { confirmation(a).InResponseTo = "" }},
		"confirmed until then": {"confirmed until", func(a *crewjam.Assertion) {
			confirmation(a).NotOnOrAfter = time.Now().Add(-181 * time.Second)
		}},
		"confirmed for ever": {"confirmed until", func(a *crewjam.Assertion) {
			confirmation(a).NotOnOrAfter = time.Time{}
		}},
		"confirmed later": {"not confirmed before", func(a *crewjam.Assertion) {
			confirmation(a).NotBefore = time.Now().Add(210 * time.Second).UTC()
		}},
		"expired": {"was valid until", func(a *crewjam.Assertion) {
			a.Conditions.NotOnOrAfter = time.Now().Add(-181 * time.Second)
		}},
		"not yet valid": {"not valid before", func(a *crewjam.Assertion) {
			a.Conditions.NotBefore = time.Now().Add(210 * time.Second)
		}},
		"other issuer": {"the assertion is of", func(a *crewjam.Assertion) {
			a.Issuer.Value = "https://other.example"
		}},
		"no confirmation": {"no bearer", func(a *crewjam.Assertion) { a.Subject.SubjectConfirmations = nil }},
		"empty confirmation": {"no bearer", func(a *crewjam.Assertion) {
			a.Subject.SubjectConfirmations[0].SubjectConfirmationData = nil
		}},
		"holder of a key": {"no bearer", func(a *crewjam.Assertion) {
			a.Subject.SubjectConfirmations[0].Method = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key"
		}},
		"no subject":    {"no subject", func(a *crewjam.Assertion) { a.Subject = nil }},
		"no conditions": {"no conditions", func(a *crewjam.Assertion) { a.Conditions = nil }},
		"no login":      {"logged in", func(a *crewjam.Assertion) { a.AuthnStatements = nil }},
		"no attributes": {"its NameID, of format", func(a *crewjam.Assertion) { a.AttributeStatements = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			who, err := v.finish(t, v.signedResponse(t, c.change))
			refused(t, who, err, c.why)
		})
	}
}

// Conditions need not say when they end: a confirmation must.
func TestConditionsWithoutEnd(t *testing.T) {
	p := newIDP(t)
	v := p.begin(t, p.realm(t, nil))
	_, err := v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) {
		a.Conditions.NotBefore, a.Conditions.NotOnOrAfter = time.Time{}, time.Time{}
	}))
	is.New(t).NoErr(err)
}

// The clocks may be three minutes apart.
func TestSkew(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for _, apart := range []time.Duration{-170 * time.Second, 170 * time.Second} {
		v := p.begin(t, r)
		_, err := v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) {
			now := time.Now().Add(apart).UTC()
			a.Conditions.NotBefore, a.Conditions.NotOnOrAfter = now, now.Add(time.Millisecond)
			c := a.Subject.SubjectConfirmations[0].SubjectConfirmationData
			c.NotBefore, c.NotOnOrAfter = now, now.Add(time.Millisecond)
		}))
		is.New(t).NoErr(err)
	}
}

// An assertion of another version of SAML.
func TestRefusedVersion(t *testing.T) {
	p := newIDP(t)
	v := p.begin(t, p.realm(t, nil))
	a := v.assertion(nil)
	a.CreateAttr("Version", "1.1")
	samltest.Ours().Sign(t, a, sha256)
	who, err := v.finish(t, v.response(a))
	refused(t, who, err, "the assertion has the version")
}

// What is around a good assertion must fit, too.
func TestRefusedResponses(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	attribute := func(name, value string) func(*testing.T, *visit, *etree.Element) {
		return func(_ *testing.T, _ *visit, response *etree.Element) { response.CreateAttr(name, value) }
	}
	for name, c := range map[string]struct {
		why   string
		spoil func(t *testing.T, v *visit, response *etree.Element)
	}{
		"other destination":  {"destination", attribute("Destination", "https://other.example/acs")},
		"to another request": {"the response is to", attribute("InResponseTo", "id-other")},
		"begun at the provider": {"the response is to", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.RemoveAttr("InResponseTo")
		}},
		"other version": {"version", attribute("Version", "1.1")},
		"other issuer": {"the response is of", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.FindElement("./Issuer").SetText("x")
		}},
		"no success": {`AuthnFailed", message "wrong password"`, status},
		"no assertion": {"has no assertion", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.RemoveChild(response.FindElement("./Assertion"))
		}},
		"assertion elsewhere": {"has no assertion", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.CreateElement("samlp:Extensions").AddChild(response.FindElement("./Assertion"))
		}},
		"no status": {"status", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.RemoveChild(response.FindElement("./Status"))
		}},
		"another kind of answer": {"no response", func(_ *testing.T, _ *visit, response *etree.Element) {
			response.Tag = "LogoutResponse"
		}},
		"encrypted without a key": {"has no key yet", encrypt},
		"signed without a destination": {"destination", func(t *testing.T, _ *visit, response *etree.Element) {
			response.RemoveAttr("Destination")
			samltest.Ours().Sign(t, response, sha256)
		}},
		"a time that is none": {"no response", attribute("IssueInstant", "yesterday")},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			response := v.signedResponse(t, nil)
			c.spoil(t, v, response)
			who, err := v.finish(t, response)
			refused(t, who, err, c.why)
		})
	}
}

// status makes a response that of a provider that has let nobody in.
func status(_ *testing.T, _ *visit, response *etree.Element) {
	response.RemoveChild(response.FindElement("./Assertion"))
	code := response.FindElement("./Status/StatusCode")
	code.CreateAttr("Value", crewjam.StatusResponder)
	code.CreateElement("samlp:StatusCode").CreateAttr("Value", crewjam.StatusAuthnFailed)
	response.FindElement("./Status").CreateElement("samlp:StatusMessage").SetText("wrong password")
}

// encrypt encrypts the assertion.
func encrypt(t *testing.T, _ *visit, response *etree.Element) {
	a := response.FindElement("./Assertion")
	e := xmlenc.OAEP()
	e.BlockCipher, e.DigestMethod = xmlenc.AES128CBC, &xmlenc.SHA256
	data, err := e.Encrypt(samltest.Theirs().Cert, text(t, a), nil)
	is.New(t).NoErr(err)
	response.RemoveChild(a)
	encrypted := response.CreateElement("saml:EncryptedAssertion")
	encrypted.CreateAttr("xmlns:saml", "urn:oasis:names:tc:SAML:2.0:assertion")
	encrypted.AddChild(data)
}

// Signatures that are missing, not the provider's, or not over what is there.
func TestRefusedSignatures(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	for name, c := range map[string]struct {
		why   string
		forge func(t *testing.T, v *visit) *etree.Element
	}{
		"none": {"is signed", func(_ *testing.T, v *visit) *etree.Element { return v.response(v.assertion(nil)) }},
		"removed": {"is signed", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			a := response.FindElement("./Assertion")
			a.RemoveChild(a.FindElement("./Signature"))
			return response
		}},
		"of a stranger": {"signature of the assertion", func(t *testing.T, v *visit) *etree.Element {
			a := v.assertion(nil)
			samltest.Theirs().Sign(t, a, sha256)
			return v.response(a)
		}},
		"of a stranger, with the provider's certificate": {"signature of the assertion",
			func(t *testing.T, v *visit) *etree.Element {
				a := v.assertion(nil)
				samltest.Signer{Key: samltest.Theirs().Key, Cert: samltest.Ours().Cert}.Sign(t, a, sha256)
				return v.response(a)
			}},
		"of a stranger, around a good one": {"signature of the response", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			samltest.Theirs().Sign(t, response, sha256)
			return response
		}},
		"good, around that of a stranger": {"signature of the assertion", func(t *testing.T, v *visit) *etree.Element {
			a := v.assertion(nil)
			samltest.Theirs().Sign(t, a, sha256)
			response := v.response(a)
			samltest.Ours().Sign(t, response, sha256)
			return response
		}},
		"over something else": {"signature of the assertion", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			response.FindElement("./Assertion/AttributeStatement/Attribute[@FriendlyName='uid']/AttributeValue").SetText("admin")
			return response
		}},
		"over another assertion": {"signature of the assertion", func(t *testing.T, v *visit) *etree.Element {
			other := v.signedResponse(t, nil).FindElement("./Assertion/Signature")
			a := v.assertion(func(a *crewjam.Assertion) { a.ID = "id-other" })
			a.InsertChildAt(1, other.Copy())
			return v.response(a)
		}},
		"in the wrong element": {"is signed", func(t *testing.T, v *visit) *etree.Element {
			response := v.signedResponse(t, nil)
			a := response.FindElement("./Assertion")
			a.FindElement("./Subject").AddChild(a.FindElement("./Signature"))
			return response
		}},
		"with SHA-1": {"SHA-1", func(t *testing.T, v *visit) *etree.Element {
			a := v.assertion(nil)
			samltest.Ours().Sign(t, a, dsig.RSASHA1SignatureMethod)
			return v.response(a)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			who, err := v.finish(t, c.forge(t, v))
			refused(t, who, err, c.why)
		})
	}
}

// A key counts only as long as its certificate.
func TestExpiredKey(t *testing.T) {
	p := newIDP(t)
	old := samltest.NewSigner(time.Now().Add(-time.Hour))
	r := p.realm(t, map[string]any{"metadataXML": p.Metadata(t, func(e *crewjam.EntityDescriptor) {
		e.IDPSSODescriptors[0].KeyDescriptors = []crewjam.KeyDescriptor{old.Descriptor()}
	})})
	v := p.begin(t, r)
	a := v.assertion(nil)
	old.Sign(t, a, sha256)
	who, err := v.finish(t, v.response(a))
	refused(t, who, err, "not valid at this time")
}

// Documents that one reader may take for something else than the next one.
func TestRefusedDocuments(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	replace := func(old, with string) func([]byte) []byte {
		return func(document []byte) []byte { return bytes.Replace(document, []byte(old), []byte(with), 1) }
	}
	before := func(prefix string) func([]byte) []byte {
		return func(document []byte) []byte { return append([]byte(prefix), document...) }
	}
	for name, c := range map[string]struct {
		why   string
		spoil func([]byte) []byte
	}{
		"comment in the NameID": {
			"comment", replace(">jo@example.com</saml:NameID>", ">jo@<!-- -->example.com</saml:NameID>"),
		},
		"comment in the username": {
			"comment", replace(">jo</saml:AttributeValue>", ">j<!-- -->o</saml:AttributeValue>"),
		},
		"instruction in a username": {
			"instruction", replace(">jo</saml:AttributeValue>", ">j<?x?>o</saml:AttributeValue>"),
		},
		"document type": {"document type", before(`<!DOCTYPE r>`)},
		"entity": {"document type", func(d []byte) []byte {
			return replace(">jo<", ">&jo;<")(before(`<!DOCTYPE r [<!ENTITY jo "admin">]>`)(d))
		}},
		"external entity": {
			"document type", before(`<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>`),
		},
		"entity that nobody defines": {"invalid character entity", replace(">jo<", ">&jo;<")},
		"billion laughs": {
			"document type",
			before(`<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c ` +
				`"&b;&b;&b;&b;&b;&b;&b;&b;">]>`),
		},
		"two roots":        {"2 root", func(d []byte) []byte { return append(d, `<x/>`...) }},
		"nothing":          {"0 root", func([]byte) []byte { return nil }},
		"half":             {"EOF", func(d []byte) []byte { return d[:len(d)/2] }},
		"not XML":          {"cannot be taken", func([]byte) []byte { return []byte("jo") }},
		"other encoding":   {"encoding", before(`<?xml version="1.0" encoding="ISO-8859-1"?>`)},
		"broken UTF-8":     {"UTF-8", replace(">jo<", ">j\xff<")},
		"colon in a name":  {"cannot be taken", replace("<saml:Subject>", "<saml:Subject a:b:c=\"\">")},
		"read in two ways": {"validator", replace("<saml:Subject>", "<saml:Subject><saml:1></saml:1>")},
		"same id twice":    {"twice", replace("<saml:Subject>", `<saml:Subject ID="id-response">`)},
		"5 MiB": {"sensible size", func(d []byte) []byte {
			return append(d, bytes.Repeat([]byte(" "), 5<<20)...)
		}},
		"more than 1 MiB": {"bytes", func(d []byte) []byte {
			return append(d, bytes.Repeat([]byte(" "), 1<<20)...)
		}},
		"deep": {
			"levels",
			replace("<saml:Subject>", "<saml:Subject>"+strings.Repeat("<x>", 25)+strings.Repeat("</x>", 25)),
		},
		"many elements": {
			"elements", replace("<saml:Subject>", "<saml:Subject>"+strings.Repeat("<x/>", 5000)),
		},
		"many attributes": {
			"attributes", replace("<saml:Subject>", "<saml:Subject "+strings.Repeat(`a="" `, 31)+">"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := p.begin(t, r)
			document := text(t, v.signedResponse(t, nil))
			spoilt := c.spoil(bytes.Clone(document))
			is.New(t).True(!bytes.Equal(document, spoilt)) // the test finds what it spoils
			who, err := v.bring(t, spoilt)
			refused(t, who, err, c.why)
		})
	}
}

// A response is good for the login that asked for it, and comes once.
func TestRefusedForms(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	v, other := p.begin(t, r), p.begin(t, r)
	good := base64.StdEncoding.EncodeToString(text(t, v.signedResponse(t, nil)))
	for name, c := range map[string]struct {
		why    string
		memory []byte
		form   url.Values
	}{
		"memory of another login": {"the response is to", other.memory, url.Values{"SAMLResponse": {good}}},
		"no memory":               {"the response is to", nil, url.Values{"SAMLResponse": {good}}},
		"no response":             {"not one SAMLResponse", v.memory, url.Values{}},
		"an artifact":             {"not one SAMLResponse", v.memory, url.Values{"SAMLart": {"AAQA"}}},
		"two responses":           {"not one SAMLResponse", v.memory, url.Values{"SAMLResponse": {good, good}}},
		"not base64":              {"base64", v.memory, url.Values{"SAMLResponse": {"%" + good}}},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := r.Finish(t.Context(), at, c.memory, domains.Answer{Params: c.form})
			refused(t, who.Identity, err, c.why)
		})
	}
	who, err := r.Finish(t.Context(), at, nil, domains.Answer{Params: url.Values{
		"SAMLResponse": {unasked(t, p.begin(t, r))},
	}})
	refused(t, who.Identity, err, "the response is to") // no memory fits an answer to no request

	elsewhere := at
	elsewhere.ACS = "https://content.example/api/login/other/acs"
	who, err = r.Finish(t.Context(), elsewhere, v.memory, domains.Answer{Params: url.Values{"SAMLResponse": {good}}})
	refused(t, who.Identity, err, "destination")
	is := is.New(t)
	is.True(errors.Unwrap(err) != nil) // the reason is a cause, and no part of what is shown

	_, err = r.Finish(t.Context(), at, v.memory, domains.Answer{Params: url.Values{"SAMLResponse": {good}}})
	is.NoErr(err) // nothing was wrong with it but what each case changed
}

// unasked is a response that answers no request.
func unasked(t *testing.T, v *visit) string {
	t.Helper()
	response := v.signedResponse(t, func(a *crewjam.Assertion) {
		a.Subject.SubjectConfirmations[0].SubjectConfirmationData.InResponseTo = ""
	})
	response.RemoveAttr("InResponseTo")
	return base64.StdEncoding.EncodeToString(text(t, response))
}
