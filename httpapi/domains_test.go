package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// paper is a host's driver of a directory with one person, whose password is the configuration's,
// and one group.
type paper struct{ Secret string }

func (paper) Info() domains.Info {
	return domains.Info{
		ID: "paper", Name: "Paper", Group: "Directories", LoginComponent: "password", LoginMethod: "POST",
		UsernameParam: "username", PasswordParam: "password",
		ScanComponent: map[string]any{"scan": struct{}{}}, Secrets: []string{"secret"},
	}
}

func (paper) Open(config json.RawMessage) (domains.Realm, error) {
	var c map[string]any
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	secret, ok := c["secret"].(string)
	if !ok {
		return nil, errs.New(errs.Invalid, "secret must be text")
	}
	return paper{secret}, nil
}

func (p paper) OpenWithKeys(config json.RawMessage, _ domains.Keys) (domains.Realm, error) {
	return p.Open(config)
}

func (paper) Check() error { return nil }

var zoe = domains.Identity{ID: "z1", Username: "zoe", DisplayName: "Zoe Ray", Email: "zoe@example.com"}

func (p paper) Login(_ context.Context, username, password string) (domains.Identity, error) {
	if p.Secret == "away" {
		return domains.Identity{}, errs.New(errs.Upstream, "The directory ldap://10.0.0.1 cannot be reached.")
	}
	if username != zoe.Username || password != p.Secret {
		return domains.Identity{}, errs.New(errs.Unauthenticated, "no")
	}
	return zoe, nil
}

func (p paper) Test(_ context.Context, _ domains.Endpoints, username string) []domains.Step {
	if p.Secret == "away" {
		return []domains.Step{{Name: "connect", Message: "The directory cannot be reached: see its address."}}
	}
	found := domains.Step{
		Name:    "person",
		OK:      username == "" || username == zoe.Username,
		Message: "One person was looked for.",
	}
	if found.OK {
		found.Person = &zoe
	}
	return []domains.Step{
		{Name: "connect", OK: true, Message: "The directory answers."},
		found,
		{
			Name:    "groups",
			OK:      found.OK,
			Message: "There is one group.",
			Groups:  []domains.Group{{ID: "g1", Name: "Readers"}},
		},
	}
}

func (p paper) Find(_ context.Context, username string) (domains.Identity, error) {
	if p.Secret == "away" {
		return domains.Identity{}, errs.New(errs.Upstream, "The directory ldap://10.0.0.1 cannot be reached.")
	}
	if username != zoe.Username {
		return domains.Identity{}, errs.New(errs.NotFound, "no entry has this name.")
	}
	return zoe, nil
}

func (p paper) Entries(context.Context) iter.Seq2[domains.Entry, error] {
	return func(yield func(domains.Entry, error) bool) {
		if p.Secret == "away" {
			yield(domains.Entry{}, errs.New(errs.Upstream, "The directory ldap://10.0.0.1 cannot be reached."))
			return
		}
		_ = yield(domains.Entry{Person: &zoe}, nil) &&
			yield(domains.Entry{Group: &domains.Group{ID: "g1", Name: "Readers", Members: []string{"z1"}}}, nil)
	}
}

// gate is a host's driver of a provider that lets in whom the code names.
type gate struct{}

func (gate) Info() domains.Info {
	return domains.Info{
		ID:             "gate",
		Name:           "Gate",
		Group:          "Single sign-on",
		LoginComponent: "redirect",
		LoginMethod:    "GET",
	}
}

func (gate) Open(json.RawMessage) (domains.Realm, error) { return gate{}, nil }

func (gate) Check() error { return nil }

func (gate) Begin(_ context.Context, _ domains.Endpoints, state string) (string, []byte, error) {
	return "https://provider.example/?state=" + url.QueryEscape(state), []byte(state), nil
}

var _ domains.RedirectLogin = gate{}

func (gate) Finish(_ context.Context, _ domains.Endpoints, memory []byte, a domains.Answer) (domains.SignedIn, error) {
	if problem := a.Params.Get("error"); problem != "" {
		return domains.SignedIn{}, errs.Wrap(
			errs.Unauthenticated, errors.New("the provider says "+problem), "Unable to log in",
		)
	}
	// which no provider adds to a query
	code, ours := a.Params.Get("code"), a.Params.Has("state") && a.Params.Has("tenant")
	if code == "" || ours || string(memory) != a.State {
		return domains.SignedIn{}, errs.New(errs.Unauthenticated, "no")
	}
	return domains.SignedIn{
		Identity: domains.Identity{ID: code, Username: code},
		Session:  domains.ProviderSession{Subject: code, ID: "at-" + code, Memory: []byte("token of " + code)},
	}, nil
}

var _ domains.LogoutAtProvider = gate{}

func (gate) BeginLogout(_ context.Context, at domains.Endpoints, session []byte, state string) (string, []byte, error) {
	if string(session) == "token of nell" {
		return "", nil, errs.Wrap(errs.Upstream, errors.New("it is off"), "The provider is away.")
	}
	q := url.Values{"hint": {string(session)}, "back": {at.LoggedOut}, "state": {state}}
	return "https://provider.example/logout?" + q.Encode(), []byte(state), nil
}

func (gate) FinishLogout(_ context.Context, _ domains.Endpoints, memory []byte, a domains.Answer) error {
	if string(memory) != a.State || a.Params.Has("no") {
		return errs.New(errs.Unauthenticated, "no")
	}
	return nil
}

var _ domains.LogoutReceiver = gate{}

func (gate) ReceiveLogout(_ context.Context, _ domains.Endpoints, notice domains.Answer) (domains.LogoutNotice, error) {
	params := notice.Params
	if !params.Has("who") {
		return domains.LogoutNotice{}, errs.Wrap(errs.Unauthenticated, errors.New("it says nobody"), "Unable to log in")
	}
	n := domains.LogoutNotice{
		Subject:  params.Get("who"),
		Sessions: params["session"],
		ID:       params.Get("id"),
		Until:    time.Now().AddDate(1, 0, 0),
	}
	if params.Has("SAMLRequest") {
		n.Location = "https://provider.example/slo?SAMLResponse=done&RelayState=" +
			url.QueryEscape(params.Get("RelayState"))
	}
	return n, nil
}

func (gate) Metadata(at domains.Endpoints) ([]byte, string, error) {
	return []byte("<here>" + at.ACS + "</here>"), "application/samlmetadata+xml", nil
}

// withDrivers is a host with both drivers.
func withDrivers(c *tenantcontent.Config) { c.DomainDrivers = append(c.DomainDrivers, paper{}, gate{}) }

// stockDomains adds to acme one domain of each, and one to remove.
func stockDomains(t testing.TB, w *world, param map[string]string) {
	t.Helper()
	w.must(t, "admin", "POST", "/api/domains", `{"name": "Books", "type": "paper", "config": {"secret": "hush-hush"}}`)
	w.must(t, "admin", "POST", "/api/domains", `{"name": "Gate", "type": "gate", "config": {}}`)
	w.must(t, "admin", "POST", "/api/domains", `{"name": "Gone", "type": "gate"}`)
	param["domains"], param["domain-drivers"] = "books", "paper"
}

func withDomains(all map[string]sample) map[string]sample {
	for name, s := range map[string]sample{
		"createDomain": {
			body:   `{"name": "Guests", "type": "paper"}`,
			fields: []string{"name string", "type string", "description string?", "config object?"},
		},
		"putDomain": {body: `{"id": "books", "type": "paper", "name": "Books & Co"}`,
			fields: []string{"id string", "type string", "name string?", "config object?"}},
		"deleteDomain":        {last: "gone"},
		"listLogins":          {query: "?tenant=acme"},
		"rollDomainKeys":      {},
		"scanDriver":          {},
		"scanDomain":          {},
		"testDomain":          {},
		"testNewDomain":       {body: `{"type": "paper", "config": {"secret": "hush-hush"}}`},
		"beginSSO":            {last: "gate", query: "?tenant=acme"},
		"finishSSO":           {last: "gate"},
		"finishSAML":          {last: "gate"},
		"loggedOut":           {last: "gate"},
		"singleLogoutByQuery": {last: "gate", query: "?tenant=acme&SAMLResponse=x"},
		"singleLogoutByForm":  {last: "gate", query: "?tenant=acme"},
		"receiveLogout":       {last: "gate", query: "?tenant=acme"},
		"getSSOMetadata":      {last: "gate", query: "?tenant=acme"},
	} {
		all[name] = s
	}
	return all
}

// handshake begins a login at the provider and returns the parameters and the cookie that come
// back.
func (w *world) handshake(t testing.TB, state, code string) (params string, cookie string) {
	t.Helper()
	a := w.must(t, "", "GET", "/api/login/gate/sso?tenant=acme", "")
	to, err := url.Parse(a.header.Get("Location"))
	is.New(t).NoErr(err)
	cookie, _, _ = strings.Cut(a.header.Get("Set-Cookie"), ";")
	return url.Values{
		state:    {to.Query().Get("state")},
		"code":   {code},
		"tenant": {"acme"},
	}.Encode(), "Cookie: " + cookie
}

const urlencoded = "Content-Type: application/x-www-form-urlencoded"

// TestSSO: over HTTP a login at a provider is a redirect, a cookie, and a session in the end.
func TestSSO(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{})
		a := w.must(t, "", "GET", "/api/login/gate/sso?returnTo=%2Fapps%3Fx%3D1", "", "X-Tenant: acme")
		is.Equal(a.status, http.StatusFound)
		is.True(strings.HasPrefix(a.header.Get("Location"), "https://provider.example/?state="))
		cookie := a.header.Get("Set-Cookie")
		for _, part := range []string{"sso-", "Path=/api/login/", "HttpOnly", "Secure", "SameSite=None"} {
			is.True(strings.Contains(cookie, part))
		}
		to, err := url.Parse(a.header.Get("Location"))
		is.NoErr(err)
		back := "/api/login/gate/callback?tenant=acme&code=jo&state=" + to.Query().Get("state")
		cookie, _, _ = strings.Cut(cookie, ";")
		// where the provider of another tenant sends browsers
		elsewhere := strings.Replace(back, "tenant=acme", "tenant=evil", 1)
		is.Equal(w.do(t, "", "GET", elsewhere, "", "Cookie: "+strings.SplitN(cookie, ";", 2)[0]).status, 401)
		is.Equal(w.do(t, "", "GET", back, "").status, 401) // another browser, which does not use it up
		is.Equal(w.do(t, "", "HEAD", back, "").status, 401)
		a = w.do(t, "", "GET", back, "", "Cookie: "+cookie)
		is.Equal(a.status, http.StatusSeeOther)
		is.Equal(a.header.Get("Location"), baseURL+"/apps?x=1")
		is.Equal(a.body, "")
		cookies := strings.Join(a.header.Values("Set-Cookie"), "\n")
		is.True(strings.Contains(cookies, "sid=tcs.acme.") &&
			strings.Contains(cookies, strings.SplitN(cookie, "=", 2)[0]+"=;"))
		session, _, _ := strings.Cut(strings.TrimPrefix(cookies, "sid="), ";")
		is.Equal(
			read[struct{ User string }](
				t, w.must(t, "", "GET", "/api/session", "", "Authorization: Bearer "+session),
			).User,
			"jo",
		)
		is.Equal(w.do(t, "", "GET", back, "", "Cookie: "+cookie).message(t), "Unable to log in")

		params, cookie := w.handshake(t, "RelayState", "sam") // a form of the provider's page
		a = w.do(
			t, "", "POST", "/api/login/gate/acs?tenant=acme", params, urlencoded, cookie,
			"Sec-Fetch-Site: cross-site", "Origin: https://provider.example",
		)
		is.Equal(a.status, 200)
		is.Equal(read[struct{ Tenant string }](t, a).Tenant, "acme")
		is.Equal(w.do(t, "", "POST", "/api/login/gate/acs?tenant=acme", params, urlencoded, cookie).status, 401)
		is.Equal(w.do(t, "", "POST", "/api/login/gate/acs", `{}`).status, 415)
		// no other route is open to them
		is.Equal(w.do(t, "", "POST", "/api/login/local", `{}`, "Sec-Fetch-Site: cross-site").status, 403)
		a = w.must(t, "", "GET", "/api/login/gate/metadata?tenant=acme", "")
		is.Equal(a.body, "<here>"+baseURL+"/api/login/gate/acs?tenant=acme</here>")
		for _, path := range []string{
			"/api/login/local/sso?tenant=acme", "/api/login/gate/sso?tenant=evil", "/api/login/gate/sso",
			"/api/login/books/metadata?tenant=acme", "/api/login/gate/metadata?tenant=x%20y",
		} {
			is.Equal(w.do(t, "", "GET", path, "").message(t), "There is no single sign-on here.")
		}
		is.Equal(w.do(t, "", "GET", "/api/login/gate/sso?tenant=acme&returnTo=//evil.example", "").status, 400)
	})
}

// TestTenantOfSSO: who begins says the tenant as elsewhere, the header before the query; who comes
// back, in the query alone, as it stands in the address that the provider knows.
func TestTenantOfSSO(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withDrivers)
	stockDomains(t, w, map[string]string{})
	for _, path := range []string{"/api/login/gate/sso", "/api/login/gate/metadata"} {
		for query, want := range map[[2]string]bool{
			{"acme", ""}: true, {"acme", "evil"}: true, {"", "acme"}: true,
			{"evil", "acme"}: false, {"", "evil"}: false, {"evil", ""}: false,
		} {
			var header []string
			if query[0] != "" {
				header = append(header, "X-Tenant: "+query[0])
			}
			a := w.do(t, "", "GET", path+"?tenant="+query[1], "", header...)
			is.Equal(a.status < 400, want)
		}
	}
	for state, method := range map[string]string{"state": "GET", "RelayState": "POST"} {
		for _, c := range []struct {
			query, header string
			want          int
		}{{"evil", "acme", 401}, {"", "acme", 401}, {"acme", "evil", 200}} {
			params, cookie := w.handshake(t, state, "jo")
			params = strings.TrimSuffix(params, "&tenant=acme")
			path, body := "/api/login/gate/callback?"+params+"&", ""
			if method == "POST" {
				path, body = "/api/login/gate/acs?", params
			}
			is.Equal(
				w.do(t, "", method, path+"tenant="+c.query, body, urlencoded, cookie, "X-Tenant: "+c.header).status,
				c.want,
			)
		}
	}
}

// TestDirectoryOverHTTP: a scan's answer, its state, and a login with a directory's password.
func TestDirectoryOverHTTP(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open, withDrivers)
		stockDomains(t, w, map[string]string{})
		is.Equal(read[map[string]any](t, w.must(t, "admin", "GET", "/api/domains/books/scan", ""))["phase"], nil)
		type scan struct {
			Domains []struct {
				ID          string
				ScannedAt   *string
				Users       map[string]int
				Teams       map[string]int
				Memberships map[string]int
				Warnings    []string
				DurationMs  *float64
			}
		}
		dry := read[scan](t, w.must(t, "admin", "POST", "/api/domain-drivers/paper/_scan?dryRun=true", "")).Domains[0]
		is.Equal(dry.Users, map[string]int{"created": 1, "updated": 0, "disabled": 0, "unchanged": 0})
		is.True(dry.ScannedAt == nil)
		is.Equal(w.do(t, "admin", "GET", "/api/users/zoe", "").status, 404)
		done := read[scan](t, w.must(t, "admin", "POST", "/api/domains/books/driver/_scan", "")).Domains[0]
		is.Equal(done.ID, "books")
		is.Equal(done.Teams, map[string]int{"created": 1, "updated": 0, "disabled": 0, "unchanged": 0})
		is.Equal(done.Memberships, map[string]int{"added": 1, "removed": 0})
		is.Equal(*done.ScannedAt, "2026-11-20T20:31:00.123Z")
		is.True(done.Warnings != nil && done.DurationMs != nil)
		state := read[map[string]any](t, w.must(t, "admin", "GET", "/api/domains/books/scan", ""))
		is.Equal(state["phase"], "done")
		is.Equal(state["users"], 1.0)
		is.Equal(state["lastError"], nil)
		is.Equal(read[map[string]any](t, w.must(t, "admin", "GET", "/api/users/zoe", ""))["managesPassword"], false)

		login := func(domain, name, password string) answer {
			return w.do(
				t, "", "POST", "/api/login/"+domain,
				`{"tenant": "acme", "username": "`+name+`", "password": "`+password+`"}`,
			)
		}
		is.Equal(login("books", "zoe", "hush-hush").status, 200)
		for _, c := range [][3]string{
			{"books", "zoe", "wrong"}, {"books", "zoe", ""}, {"books", "nobody", "hush-hush"},
			{"local", "zoe", "hush-hush"}, {"nowhere", "zoe", "hush-hush"}, {"gate", "zoe", "hush-hush"},
		} {
			is.Equal(login(c[0], c[1], c[2]).message(t), "Unable to log in")
		}
		w.must(t, "admin", "PUT", "/api/domains/books", `{"id": "x", "type": "paper", "config": {"secret": "away"}}`)
		a := login("books", "zoe", "hush-hush")
		is.Equal(a.status, 502)
		is.True(!strings.Contains(a.message(t), "10.0.0.1"))
		a = w.do(t, "admin", "POST", "/api/domain-drivers/paper/_scan", "")
		is.Equal(a.status, 502)
		is.Equal(a.message(t), "The directory ldap://10.0.0.1 cannot be reached.")
		is.Equal(
			read[map[string]any](t, w.must(t, "admin", "GET", "/api/domains/books/scan", ""))["lastError"],
			"The directory ldap://10.0.0.1 cannot be reached.",
		)
		for path, status := range map[string]int{
			"/api/domain-drivers/gate/_scan":  400,
			"/api/domain-drivers/local/_scan": 400, "/api/domain-drivers/x/_scan": 404,
			"/api/domain-drivers/paper/_scan?domain=gate": 400,
			"/api/domain-drivers/paper/_scan?force=maybe": 400, "/api/domains/x/driver/_scan": 404,
		} {
			is.Equal(w.do(t, "admin", "POST", path, "").status, status)
		}
	})
}
