package endtoend_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	crewjam "github.com/crewjam/saml"
	"github.com/matryer/is"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// withLogout returns the metadata of a provider that supports logouts.
func withLogout(t testing.TB, p *samltest.Provider, binding string) string {
	t.Helper()
	return p.Metadata(t, func(e *crewjam.EntityDescriptor) {
		e.IDPSSODescriptors[0].SingleLogoutServices = []crewjam.Endpoint{{Binding: binding, Location: p.URL + "/slo"}}
	})
}

// enterSAML logs a person in with a new browser.
func (w *world) enterSAML(t testing.TB, domain string, who samltest.Person) *client {
	t.Helper()
	return w.enterWith(t, newClient(t), domain, who)
}

// enterWith logs a person in with a browser.
func (w *world) enterWith(t testing.TB, c *client, domain string, who samltest.Person) *client {
	t.Helper()
	action, form := c.atProvider(t, w.sso("acme", domain, "/api/session"), who)
	is.New(t).Equal(read[struct{ User string }](t, c.post(t, action, form)).User, who.Name)
	return c
}

// leave logs a browser out here, and returns the request with which it is sent to the provider.
func (w *world) leave(t testing.TB, c *client) (query url.Values, request *etree.Element) {
	t.Helper()
	is := is.New(t)
	c.at, _ = url.Parse(w.url)
	a := c.post(t, w.url+"/api/logout", url.Values{"provider": {"true"}, "returnTo": {"/api/bundle-drivers"}})
	is.True(a.status == http.StatusNotFound && c.at.Path == "/slo") // the provider does not serve the path
	query = c.at.Query()
	return query, samltest.Message(t, query, "SAMLRequest")
}

// TestSAMLLogout: a person who logs out here is also logged out at the provider, and returns. A
// person who logs out there is logged out here, on all nodes, once.
func TestSAMLLogout(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, p, db, key := is.New(t), samltest.New(t), open(t), tenantcontent.NewSecretKey()
		mia := samltest.Person{Name: "mia", Password: "secret", Email: "mia@example.com"}
		p.PutPerson(t, samlJo)
		p.PutPerson(t, mia)
		w := serve(t, db, key, nil)
		// another node of the same service
		node := serve(t, db, key, nil, func(c *tenantcontent.Config) { c.BaseURL = w.url })
		id := w.admin.domain(
			t, "Entry", "SAML", map[string]any{"metadataXML": withLogout(t, p, crewjam.HTTPRedirectBinding)},
		)
		p.Put(
			t, "/services/acme",
			[]byte((&caller{w, ""}).must(t, "GET", "/api/login/"+id+"/metadata?tenant=acme", "").body),
		)
		slo := w.url + "/api/login/" + id + "/slo?tenant=acme"

		// The logout begins here.
		jo, other, she := w.enterSAML(t, id, samlJo), w.enterSAML(t, id, samlJo), w.enterSAML(t, id, mia)
		query, request := w.leave(t, jo)
		is.Equal(jo.who(t, w), "")
		is.Equal(request.SelectAttrValue("Destination", ""), p.URL+"/slo")
		answer := func(to string) string {
			r := crewjam.LogoutResponse{
				ID: "id-answer", InResponseTo: to, Version: "2.0",
				IssueInstant: time.Now().UTC(),
				Destination:  slo, Issuer: &crewjam.Issuer{Value: p.IDP.Metadata().EntityID},
				Status: crewjam.Status{StatusCode: crewjam.StatusCode{Value: crewjam.StatusSuccess}},
			}
			return slo + "&" + samltest.Ours().SignQuery(
				t, samltest.Query(t, "SAMLResponse", r.Element(), query.Get("RelayState")),
				dsig.RSASHA256SignatureMethod,
			)
		}
		good := answer(request.SelectAttrValue("ID", ""))
		is.True(strings.Contains(newClient(t).get(t, good).body, "You are logged out")) // not redirected
		jo.get(t, answer("id-other"))
		is.Equal(jo.at.Path, "/api/login/entry/slo")
		query, request = w.leave(t, w.enterWith(t, jo, id, samlJo))
		jo.get(t, answer(request.SelectAttrValue("ID", "")))
		is.Equal(jo.at.Path, "/api/bundle-drivers")
		is.Equal(other.who(t, w), "jo")

		// The logout begins at the provider.
		out := func(change func(el *etree.Element)) string {
			el := etree.NewElement("samlp:LogoutRequest")
			el.CreateAttr("xmlns:samlp", "urn:oasis:names:tc:SAML:2.0:protocol")
			for name, value := range map[string]string{
				"ID": "id-" + time.Now().String(), "Version": "2.0",
				"IssueInstant": time.Now().UTC().Format(time.RFC3339), "Destination": slo,
			} {
				el.CreateAttr(name, value)
			}
			el.CreateAttr("xmlns:saml", "urn:oasis:names:tc:SAML:2.0:assertion")
			el.CreateElement("saml:Issuer").SetText(p.IDP.Metadata().EntityID)
			el.AddChild(request.FindElement("./NameID").Copy())
			if change != nil {
				change(el)
			}
			return samltest.Ours().SignQuery(
				t, samltest.Query(t, "SAMLRequest", el, "theirs"), dsig.RSASHA256SignatureMethod,
			)
		}
		refused := func(query string) {
			t.Helper()
			newClient(t).get(t, slo+"&"+query).refused(t, http.StatusBadRequest)
		}
		refused(out(func(el *etree.Element) { el.CreateAttr("Destination", strings.Replace(slo, "acme", "evil", 1)) }))
		unsigned, _, _ := strings.Cut(out(nil), "&SigAlg=")
		refused(unsigned)
		refused("")
		refused("SAMLRequest=x&SAMLResponse=x")
		newClient(t).get(t, strings.Replace(slo, "acme", "evil", 1)+"&"+out(nil)).refused(t, http.StatusNotFound)
		newClient(t).get(t, strings.Replace(slo, id, "local", 1)+"&"+out(nil)).refused(t, http.StatusNotFound)
		is.Equal(other.who(t, w), "jo")
		is.True(strings.Contains(
			w.log.String(),
			`msg="notice of a logout refused" reason="the request is not signed" tenant=acme domain=entry`,
		))

		session := func(el *etree.Element) { el.CreateElement("samlp:SessionIndex").SetText("of nobody") }
		is.Equal(newClient(t).get(t, slo+"&"+out(session)).status, http.StatusNotFound) // at the provider
		is.Equal(other.who(t, w), "jo")
		ends := out(nil)
		to := newClient(t).sentTo(t, slo+"&"+ends, "/slo")
		is.Equal(to.Query().Get("RelayState"), "theirs")
		is.Equal(
			samltest.Message(
				t, to.Query(), "SAMLResponse",
			).FindElement("./Status/StatusCode").SelectAttrValue("Value", ""),
			crewjam.StatusSuccess,
		)
		is.Equal(other.who(t, w), "")
		is.Equal(she.who(t, w), "mia")

		other = w.enterSAML(t, id, samlJo)
		for _, replayed := range []*world{w, node} {
			r, err := http.NewRequestWithContext(
				t.Context(), http.MethodGet, strings.Replace(slo, w.url, node.url, 1)+"&"+ends, nil,
			)
			is.NoErr(err)
			res, err := replayed.way.RoundTrip(r)
			is.NoErr(err)
			received(t, res).refused(t, http.StatusBadRequest)
		}
		is.Equal(other.who(t, w), "jo")

		// With forms, which come from another site without cookies.
		w.admin.reconfigure(t, id, "SAML", map[string]any{"metadataXML": withLogout(t, p, crewjam.HTTPPostBinding)})
		a := other.post(t, w.url+"/api/logout?provider=true", url.Values{})
		action, form := samltest.Form([]byte(a.body))
		is.Equal(action, p.URL+"/slo")
		is.True(form.Get("SAMLRequest") != "" && form.Get("RelayState") != "")
		is.Equal(other.who(t, w), "")
		other = w.enterSAML(t, id, samlJo)
		w.postTo(t, slo, url.Values{"SAMLRequest": {"x"}}).refused(t, http.StatusBadRequest)
		is.Equal(other.who(t, w), "jo")
	})
}
