package saml_test

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/drivertest"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestInfo(t *testing.T) {
	is := is.New(t)
	info := saml.Driver{}.Info()
	is.Equal(info.ID, "SAML")
	is.Equal(len(info.Defaults), 6)
	for _, key := range []string{"username", "email", "displayName", "timezone", "givenName", "familyName"} {
		is.True(info.Defaults[key] != "") // the template's keys
	}
}

func TestDriver(t *testing.T) {
	p := newIDP(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	is.New(t).NoErr(err)
	t.Cleanup(func() { silent.Close() })
	drivertest.Test(t, saml.Driver{Client: &http.Client{Timeout: time.Second}}, drivertest.Fixture{
		Config: []byte(`{"metadataURL": "` + p.URL +
			`/metadata", "entityID": "urn:us", "attributes": {"username": "uid"}}`),
		Away: []byte(`{"metadataURL": "http://` + silent.Addr().String() + `/metadata"}`),
		Bad: map[string]string{
			`{"metadataURL": "http://idp.example/"}`:                                  "metadataURL",
			`{"metadataXML": "<x/>"}`:                                                 "metadataXML",
			`{"metadataURL": "https://idp.example/", "entityID": "a b"}`:              "entityID",
			`{"metadataURL": "https://idp.example/", "attributes": []}`:               "attributes",
			`{"metadataURL": "https://idp.example/", "attributes": {"email": []}}`:    "attributes.email",
			`{"metadataURL": "https://idp.example/", "attributes": {"username": ""}}`: "attributes.username",
			`{"metadataURL": "https://idp.example/", "caCert": "mine"}`:               "caCert",
			`{"metadataURL": "https://idp.example/", "signRequests": "yes"}`:          "signRequests",
			`{"metadataURL": "https://idp.example/", "idpInitiated": 1}`:              "idpInitiated",
			`{"metadataURL": "https://idp.example/", "trustEmail": {}}`:               "trustEmail",
		},
	})
}

func TestConfig(t *testing.T) {
	p := newIDP(t)
	xml, err := json.Marshal(p.Metadata(t, nil))
	is.New(t).NoErr(err)
	for _, config := range []string{
		`{"metadataURL": "https://idp.example/metadata"}`,
		`{"metadataURL": "http://localhost:8080/metadata", "metadataXML": null}`,
		`{"metadataURL": "http://127.0.0.2/"}`,
		`{"metadataURL": "http://[::1]:1/"}`,
		`{"metadataXML": ` + string(xml) +
			`, "metadataURL": "", "entityID": "urn:us", "attributes": {"email": ""}, "unknown": {}}`,
		`{"metadataXML": ` + string(xml) + `, "METADATAURL": "x", "attributes": null, "entityID": null}`,
		`{"metadataURL": "https://idp.example/", "attributes": {"username": null, "unknown": 1}}`,
	} {
		_, err := saml.Driver{}.Open([]byte(config))
		is.New(t).NoErr(err)
	}
	const url = `"metadataURL": "https://idp.example/"`
	for config, why := range map[string]string{
		``:     "metadataURL or metadataXML must be given",
		`[]`:   "metadataURL or metadataXML must be given",
		`null`: "metadataURL or metadataXML must be given",
		`{}`:   "metadataURL or metadataXML must be given",
		`{"metadataurl": "https://idp.example/"}`: "metadataURL or metadataXML must be given",
		`{` + url + `, "metadataXML": "<x/>"}`:    "metadataURL must be left out",
		`{"metadataURL": 5}`:                      "metadataURL must be text",
		`{"metadataURL": "http://idp.example/"}`:  "metadataURL must be an https address",
		`{"metadataURL": "http://10.0.0.1/"}`:     "metadataURL must be an https address",
		`{"metadataURL": "file:///etc/passwd"}`:   "metadataURL must be an https address",
		`{"metadataURL": "https://a:b@idp.test/"}`: "metadataURL must be an https address " +
			"without a password",
		`{"metadataURL": "https:///metadata"}`:                           "metadataURL must be an https address",
		`{"metadataURL": "https://idp.example:x/"}`:                      "metadataURL must be an https address",
		`{"metadataXML": []}`:                                            "metadataXML must be text",
		`{"metadataXML": "hello"}`:                                       "metadataXML must be SAML metadata",
		`{` + url + `, "entityID": {}}`:                                  "entityID must be text",
		`{` + url + `, "entityID": "a b"}`:                               "entityID must be a URI",
		`{` + url + `, "entityID": "` + strings.Repeat("a", 1025) + `"}`: "entityID must be a URI",
		`{` + url + `, "attributes": "uid"}`:                             "attributes must be an object",
		`{` + url + `, "attributes": {"email": 1}}`:                      "attributes.email must be text",
		`{` + url + `, "attributes": {"username": ""}}`:                  "attributes.username must name",
	} {
		_, err := saml.Driver{}.Open([]byte(config))
		is := is.New(t)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		if got := errs.MessageOf(err); !strings.HasPrefix(got, why) {
			t.Errorf("%s is refused with %q, want %q", config, got, why)
		}
	}
}

// Metadata is checked when a domain is configured, not when somebody wants to log in.
func TestMetadataXML(t *testing.T) {
	p := newIDP(t)
	role := func(change func(*crewjam.IDPSSODescriptor)) func(*crewjam.EntityDescriptor) {
		return func(e *crewjam.EntityDescriptor) { change(&e.IDPSSODescriptors[0]) }
	}
	for name, c := range map[string]struct {
		why    string
		change func(*crewjam.EntityDescriptor)
	}{
		"no provider": {"must describe one SAML 2.0 identity provider", func(e *crewjam.EntityDescriptor) {
			e.IDPSSODescriptors = nil
		}},
		"SAML 1.1": {"must describe one SAML 2.0", role(func(d *crewjam.IDPSSODescriptor) {
			d.ProtocolSupportEnumeration = "urn:oasis:names:tc:SAML:1.1:protocol"
		})},
		"no entity id": {"must have an entityID", func(e *crewjam.EntityDescriptor) { e.EntityID = "" }},
		"long entity id": {"must have an entityID", func(e *crewjam.EntityDescriptor) {
			e.EntityID = strings.Repeat("x", 1025)
		}},
		"no login": {"binding HTTP-Redirect or HTTP-POST", role(func(d *crewjam.IDPSSODescriptor) {
			d.SingleSignOnServices = nil
		})},
		"login in clear": {"an https address", role(func(d *crewjam.IDPSSODescriptor) {
			d.SingleSignOnServices = d.SingleSignOnServices[:1]
			d.SingleSignOnServices[0].Location = "http://idp.example/sso"
		})},
		"script": {"must be SAML metadata", role(func(d *crewjam.IDPSSODescriptor) {
			d.SingleSignOnServices[0].Location = "javascript:alert(1)"
		})},
		"no key": {"must have an X509Certificate", role(func(d *crewjam.IDPSSODescriptor) {
			d.KeyDescriptors = nil
		})},
		"a key to encrypt": {"must have an X509Certificate", role(func(d *crewjam.IDPSSODescriptor) {
			d.KeyDescriptors = d.KeyDescriptors[1:]
		})},
		"no base64": {"in base64", role(func(d *crewjam.IDPSSODescriptor) {
			d.KeyDescriptors[0].KeyInfo.X509Data.X509Certificates[0].Data = "%"
		})},
		"no certificate": {"can be read", role(func(d *crewjam.IDPSSODescriptor) {
			d.KeyDescriptors[0].KeyInfo.X509Data.X509Certificates[0].Data = "AAAA"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			invalidXML(t, p.Metadata(t, c.change), c.why)
		})
	}
	good := p.Metadata(t, nil)
	invalidXML(t, `<!DOCTYPE x [<!ENTITY a "b">]>`+good, "document type")
	invalidXML(t, good+good, "2 root elements")
	invalidXML(t, list("", good+good), "not 2")
	invalidXML(t, list("", ""), "not 0")
	invalidXML(t, strings.Repeat(" ", 1<<20)+good, "bytes")

	service, _, err := p.realm(t, nil).Metadata(at)
	is.New(t).NoErr(err)
	invalidXML(t, string(service), "not 0") // metadata of the wrong side
	spaced := strings.NewReplacer(
		"</X509Certificate>", "\n </X509Certificate>", "<EntityDescriptor",
		"<!-- made by hand --><EntityDescriptor",
	).Replace(good)
	for _, document := range []string{
		good, spaced, list("", good), list("", list("", good)),
		list("", strings.TrimPrefix(string(service), `<?xml version="1.0" encoding="UTF-8"?>`)+good),
	} {
		_, _, err := open(t, map[string]any{"metadataXML": document}).Begin(t.Context(), at, "s")
		is.New(t).NoErr(err)
	}
}

// openXML opens a domain with metadata.
func openXML(t *testing.T, document string) (domains.Realm, error) {
	t.Helper()
	config, err := json.Marshal(map[string]string{"metadataXML": document})
	is.New(t).NoErr(err)
	return saml.Driver{}.Open(config)
}

// invalidXML checks that metadata is refused for a reason.
func invalidXML(t *testing.T, document, why string) {
	t.Helper()
	_, err := openXML(t, document)
	is.New(t).Equal(errs.CodeOf(err), errs.Invalid)
	if got := errs.MessageOf(err); !strings.HasPrefix(got, "metadataXML must ") || !strings.Contains(got, why) {
		t.Errorf("refused with %q, want %q", got, why)
	}
}

// list is metadata of several entities.
func list(attributes, inside string) string {
	return `<EntitiesDescriptor xmlns="urn:oasis:names:tc:SAML:2.0:metadata"` + attributes + `>` + inside +
		`</EntitiesDescriptor>`
}

// Metadata that says that its time is over serves no login. A domain can be opened with it.
func TestMetadataEnds(t *testing.T) {
	p := newIDP(t)
	past := time.Now().Add(-time.Second).UTC()
	for name, document := range map[string]string{
		"entity": p.Metadata(t, func(e *crewjam.EntityDescriptor) { e.ValidUntil = past }),
		"role":   p.Metadata(t, func(e *crewjam.EntityDescriptor) { e.IDPSSODescriptors[0].ValidUntil = &past }),
		"list":   list(` validUntil="`+past.Format(time.RFC3339)+`"`, p.Metadata(t, nil)),
		"lists":  list(` validUntil="`+past.Format(time.RFC3339)+`"`, list("", p.Metadata(t, nil))),
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := open(t, map[string]any{"metadataXML": document})
			_, _, err := r.Begin(t.Context(), at, "s")
			is.Equal(errs.CodeOf(err), errs.Upstream)
			is.True(strings.Contains(errs.MessageOf(err), "validUntil"))
		})
	}
}
