package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// loginWayRoutes serves the ways to log in at a tenant.
type loginWayRoutes struct{ loginFlow }

// routes returns the rows of the route table.
func (a loginWayRoutes) routes() []rest.Route {
	return a.ifLogins([]rest.Route{
		{
			Method:  get,
			Pattern: "/api/login",
			Name:    "listLogins",
			Grants:  logins,
			Public:  true,
			Failed:  a.failedLogin,
			AnyType: true,
			Query:   []string{"tenant", "domain", "returnTo", "errors", "start", "limit"},
			Summary: "The ways to log in at a tenant",
			Gives:   openapi.OK(openapi.Whole[loginWayBody]("inf:domain")),
			Handle:  a.listLogins,
		},
	})
}

// loginWayBody is a way to log in.
type loginWayBody struct {
	ID            string  `json:"id"`
	Name          string  `json:"name"`
	Method        string  `json:"method"`
	Href          string  `json:"href"`
	UsernameParam *string `json:"usernameParam"`
	PasswordParam *string `json:"passwordParam"`
	Default       bool    `json:"default"`
}

// Relations implements openapi.Related.
func (loginWayBody) Relations() openapi.Relations { return openapi.Relations{} }

// listLogins serves GET /api/login: 200 and a page of the ways to log in at a tenant, so that a
// log-in page can be built; for a browser, the page itself, which tells who is logged in already.
// The default domain comes first, the others by name: those that are ready and not hidden. A tenant
// that does not exist looks like one with the domain local alone. returnTo and errors become those
// of the links that lead to providers. 400 for them as beginSSO; 429 when too many ask.
func (a loginWayRoutes) listLogins(r *rest.Request) (rest.Reply, error) {
	query, tenant, err := a.anonymous(r)
	if err != nil {
		return rest.Reply{}, err
	}
	back, err := backOf(query)
	if err != nil {
		return rest.Reply{}, err
	}
	// whoever does not name it does not learn what it is called
	named := cmp.Or(r.Header.Get("X-Tenant"), query.Get("tenant"))
	ways, err := a.ways(r, tenant)
	if err != nil {
		return rest.Reply{}, err
	}
	if visitsPage(r.Header) {
		return a.visitLogin(r, loginForm{Tenant: named, Domain: query.Get("domain"), Back: back}, ways)
	}
	answer, err := catalog(a.api, r, ways, "inf:domain", func(w domains.Way) hal.Resource {
		method, href := "password", a.href("login", w.Domain)
		if w.Redirect {
			method, href = "redirect", a.sso(attempt{tenant: named, domain: w.Domain, back: back})
		}
		return hal.Resource{Links: hal.Self(a.href("domains", w.Domain)), Value: loginWayBody{
			w.Domain, w.Name, method, href, orNull(w.UsernameParam), orNull(w.PasswordParam), w.Default,
		}}
	})
	answer.Header = varyByVisit
	return answer, err
}

// ways returns how people log in at a tenant, without what cannot work at this server.
func (a loginFlow) ways(r *rest.Request, tenant string) ([]domains.Way, error) {
	all, err := a.Domains.Unchecked().Ways(r.Context(), tenant)
	if err != nil || a.secureCookie {
		return all, err
	}
	return slices.DeleteFunc(slices.Clone(all), func(w domains.Way) bool { return w.AnswersByForm }), nil
}

// visitLogin replies 200 with the page of a login, which leads back to itself if it is not to lead
// elsewhere.
func (a loginWayRoutes) visitLogin(r *rest.Request, form loginForm, ways []domains.Way) (rest.Reply, error) {
	who, err := a.Authenticate(r.Request)
	switch {
	case err == nil:
		form.who = who
	case errs.CodeOf(err) != errs.Unauthenticated:
		return rest.Reply{}, err
	}
	if form.next = form.Back.To; form.next == "" {
		form.next = "/"
	}
	return a.loginFormPage(http.StatusOK, form, ways), nil
}

// loginAddress returns the path of the page of a login.
func loginAddress(tenant, domain, returnTo string) string {
	query := url.Values{}
	for name, value := range map[string]string{"tenant": tenant, "domain": domain, "returnTo": returnTo} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return withQuery("/api/login", query)
}

// loginForm is what the page of a login shows.
type loginForm struct {
	Tenant  string // as the address names it
	Domain  string // whose password the form asks for; "" for the first that has one
	Back    domains.Return
	Problem string // why the last login was refused; "" for none

	who  actor.Actor // who is logged in
	next string      // the path where that caller goes on
}

// loginFormPage replies with the page of a login: a form for a password, and links to the other
// ways to log in. The form comes back to this service and then leads to the page or, with origins
// of apps, to one of these.
func (a loginFlow) loginFormPage(status int, form loginForm, ways []domains.Way) rest.Reply {
	if form.Back.To == "" {
		form.Back.To = loginAddress(form.Tenant, "", "")
	}
	var view loginView
	view.Title, view.User, view.UserTenant, view.Next = "Log in", form.who.User, form.who.Tenant, a.BaseURL+form.next
	if view.User != "" {
		view.Title = "You are logged in"
	}
	if slices.ContainsFunc(ways, func(w domains.Way) bool { return w.Redirect && w.Domain == form.Domain }) {
		form.Domain = "" // there is no password of it
	}
	for _, w := range ways {
		if !w.Redirect && (form.Domain == "" || w.Domain == form.Domain) {
			form.Domain, view.Name = w.Domain, w.Name
		}
	}
	for _, w := range ways {
		switch {
		case w.Redirect:
			view.Providers = append(view.Providers, pageLink{
				a.sso(attempt{tenant: form.Tenant, domain: w.Domain, back: form.Back}), w.Name,
			})
		case w.Domain != form.Domain:
			view.Passwords = append(view.Passwords, pageLink{
				a.BaseURL + loginAddress(form.Tenant, w.Domain, form.Back.To), w.Name,
			})
		}
	}
	view.loginForm, view.Action, view.Page, view.Logout = form, a.mount+"/api/login/"+
		url.PathEscape(form.Domain), a.mount+"/api/login", a.mount+"/api/logout"
	to := "'self' " + a.origin
	if a.origins != nil {
		to += " " + a.origins.scheme + "://*" + a.origins.domain
	}
	if view.User != "" { // a logout leads on to the provider, which is anywhere
		to += " https:"
		if !a.secureCookie {
			to += " http:"
		}
	}
	answer := pageReply(status, view.Title, view.body(), to)
	answer.Header["Vary"] = varyByVisit["Vary"]
	if status == http.StatusUnauthorized {
		answer.Header["WWW-Authenticate"] = "Bearer"
	}
	return answer
}

// loginView is what the page of a login shows of a loginForm and the ways to log in.
type loginView struct {
	loginForm
	Title, Name, Action, Page, Next, Logout, User, UserTenant string
	Providers, Passwords                                      []pageLink
}

// body returns the body of the page.
func (v *loginView) body() *markup {
	var m markup
	if v.User != "" {
		m.addf(`<p role="status">You are <strong>%s</strong> of the tenant <strong>%s</strong>.</p>
<p><a href="%s">Go on</a></p>
<form method="post" action="%s">
<input type="hidden" name="provider" value="true">
<button>Log out</button>
</form>
<h2>Log in as somebody else</h2>
`, v.User, v.UserTenant, address(v.Next), address(v.Logout))
	}
	if v.Problem != "" {
		m.addf("<p role=\"alert\">%s</p>\n", v.Problem)
	}
	m.links("Log in with %s", v.Providers)
	if v.Domain != "" {
		m.addf(`<form method="post" action="%s">
<input type="hidden" name="returnTo" value="%s">
`, address(v.Action), v.Back.To)
		if len(v.Providers) > 0 || len(v.Passwords) > 0 {
			m.addf("<p>Log in with username and password")
			if v.Name != "" {
				m.addf(" (%s)", v.Name)
			}
			m.addf(":</p>\n")
		}
		m.addf(`<label>Username <input name="username" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<label>Tenant, where there are several <input name="tenant" value="%s"></label>
<button>Log in</button>
</form>
`, v.Tenant)
	}
	m.links("Log in with username and password (%s)", v.Passwords)
	m.addf(`<details>
<summary>Another tenant</summary>
<form method="get" action="%s">
<input type="hidden" name="returnTo" value="%s">
<label>Tenant <input name="tenant" required></label>
<button>Show how to log in there</button>
</form>
</details>
`, address(v.Page), v.Back.To)
	return &m
}
