package saml_test

import (
	"encoding/xml"
	"strings"
	"testing"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// named sets the NameID of an assertion.
func named(format crewjam.NameIDFormat, value string) func(*crewjam.Assertion) {
	return func(a *crewjam.Assertion) {
		a.Subject.NameID = &crewjam.NameID{Format: string(format), Value: value}
	}
}

// attribute adds an attribute to an assertion.
func attribute(a *crewjam.Assertion, name, friendly string, values ...string) {
	all := crewjam.Attribute{Name: name, FriendlyName: friendly}
	for _, v := range values {
		all.Values = append(all.Values, crewjam.AttributeValue{Type: "xs:string", Value: v})
	}
	a.AttributeStatements = append(
		a.AttributeStatements, crewjam.AttributeStatement{Attributes: []crewjam.Attribute{all}},
	)
}

// Who somebody is says a persistent NameID, else the username; never a NameID that changes, nor an
// e-mail address.
func TestIdentifier(t *testing.T) {
	p := newIDP(t)
	r := p.realm(t, nil)
	us := p.URL + "/metadata"
	for name, c := range map[string]struct {
		change func(*crewjam.Assertion)
		id     string
	}{
		"persistent":       {named(crewjam.PersistentNameIDFormat, "x7"), us + "!persistent!x7"},
		"transient":        {named(crewjam.TransientNameIDFormat, "x7"), us + "!username!jo"},
		"e-mail":           {named(crewjam.EmailAddressNameIDFormat, "jo@example.com"), us + "!username!jo"},
		"unspecified":      {named(crewjam.UnspecifiedNameIDFormat, "x7"), us + "!username!jo"},
		"no format":        {named("", "x7"), us + "!username!jo"},
		"empty persistent": {named(crewjam.PersistentNameIDFormat, ""), us + "!username!jo"},
		"no NameID":        {func(a *crewjam.Assertion) { a.Subject.NameID = nil }, us + "!username!jo"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			v := p.begin(t, r)
			who, err := v.finish(t, v.signedResponse(t, c.change))
			is.NoErr(err)
			is.Equal(who.ID, c.id)
			is.Equal(who.Username, "jo")
		})
	}
	v := p.begin(t, r)
	who, err := v.finish(t, v.signedResponse(t, named(crewjam.PersistentNameIDFormat, strings.Repeat("ö", 256))))
	refused(t, who, err, "more than 255")
}

// Attributes are found by Name, else by FriendlyName, as configured.
func TestAttributes(t *testing.T) {
	p := newIDP(t)
	const claims = "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/"
	r := p.realm(t, map[string]any{"attributes": map[string]string{
		"username": claims + "name", "displayName": "cn", "email": "", "timezone": "tz", "familyName": "sn",
	}})
	v := p.begin(t, r)
	who, err := v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) {
		attribute(a, "urn:oid:2.5.4.3", "cn", "by friendly name")
		attribute(a, claims+"name", "", "", "jo.doe", "jo.doe")
		attribute(a, "cn", "", "", "Jo Doe", "Jo")
		attribute(a, "tz", "", "Europe/Vienna")
	}))
	is := is.New(t)
	is.NoErr(err)
	is.Equal(who, domains.Identity{
		ID: p.URL + "/metadata!username!jo.doe", Username: "jo.doe", DisplayName: "Jo Doe",
		GivenName: "Jo", FamilyName: "Doe", Timezone: "Europe/Vienna",
	})

	v = p.begin(t, r)
	who, err = v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) {
		attribute(a, claims+"name", "", "jo", "admin")
	}))
	refused(t, who, err, "2 values")
	v = p.begin(t, r)
	who, err = v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) { attribute(a, claims+"name", "", "") }))
	refused(t, who, err, "0 values")
}

// A provider may give an audience among others, which crewjam's type cannot hold.
func TestAudiences(t *testing.T) {
	is := is.New(t)
	p := newIDP(t)
	v := p.begin(t, p.realm(t, nil))
	a := v.assertion(nil)
	restriction := a.FindElement("./Conditions/AudienceRestriction")
	restriction.CreateElement("saml:Audience").SetText("https://other.example")
	samltest.Ours().Sign(t, a, sha256)
	_, err := v.finish(t, v.response(a))
	is.NoErr(err)
}

// What this service is called can be configured, and is told to the provider.
func TestMetadata(t *testing.T) {
	is := is.New(t)
	p := newIDP(t)
	r := p.realm(t, map[string]any{"entityID": "urn:us"})
	document, _, err := r.Metadata(at)
	is.NoErr(err)
	var e crewjam.EntityDescriptor
	is.NoErr(xml.Unmarshal(document, &e))
	is.Equal(e.EntityID, "urn:us")
	is.True(e.ValidUntil.IsZero())
	is.Equal(len(e.SPSSODescriptors), 1)
	s := e.SPSSODescriptors[0]
	is.Equal(s.ProtocolSupportEnumeration, "urn:oasis:names:tc:SAML:2.0:protocol")
	is.True(*s.WantAssertionsSigned)
	is.True(!*s.AuthnRequestsSigned)
	is.Equal(len(s.KeyDescriptors), 0)
	is.Equal(len(s.AssertionConsumerServices), 1)
	is.Equal(s.AssertionConsumerServices[0].Binding, crewjam.HTTPPostBinding)
	is.Equal(s.AssertionConsumerServices[0].Location, at.ACS)

	v := p.begin(t, r)
	is.Equal(v.request.Request.Issuer.Value, "urn:us")
	who, err := v.finish(t, v.signedResponse(t, nil)) // for this audience
	is.NoErr(err)
	is.Equal(who.Username, "jo")
	v = p.begin(t, r)
	who, err = v.finish(t, v.signedResponse(t, func(a *crewjam.Assertion) {
		a.Conditions.AudienceRestrictions[0].Audience.Value = at.Metadata
	}))
	refused(t, who, err, "is for")
}
