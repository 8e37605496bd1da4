package httpapi

import (
	"cmp"
	"net"
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/errs"
)

// loginPage is the reply to a browser that goes to a page without a session: 401 and a form for logging in, which leads back to the
// page. It reports whether the failure of a request is one for it; all other failures are JSON. Beside the loopback address of the
// base URL, where no app's origin finds the session again, it is 303 to that one.
func (a *api) loginPage(r *request, route *Route, err error) (page reply, ok bool) {
	if !route.Page || !a.logins || errs.CodeOf(err) != errs.Unauthenticated || r.Method != http.MethodGet || !visitsPage(r.Header) ||
		r.Header.Get("Authorization") != "" || originOf(r.Context()) != nil || fromPage(r) || a.hidden(r) {
		return reply{}, false
	}
	if a.otherLoopback(r.Host) {
		return seeOther(a.BaseURL + r.URL.RequestURI()), true
	}
	query, err := parseQuery(r.Request)
	if err != nil {
		return reply{}, false
	}
	form := loginForm{Tenant: query.Get("tenant"), Domain: cmp.Or(query.Get("domain"), "local"), ReturnTo: r.URL.EscapedPath()}
	for _, name := range []string{"tenant", "domain", "challenge"} { // a challenge is for a minute
		query.Del(name)
	}
	if len(query) > 0 {
		form.ReturnTo += "?" + query.Encode()
	}
	return a.loginFormPage(form), true
}

// hidden reports whether the database hides its rows, so that every credential looks wrong.
func (a *api) hidden(r *request) bool { return a.Visible != nil && a.Visible(r.Context()) != nil }

// otherLoopback reports whether a host is this machine by another name than in the base URL.
func (a *api) otherLoopback(host string) bool {
	base, err := url.Parse(a.origin)
	at, failed := url.Parse("//" + host)
	return err == nil && failed == nil && base.Port() == at.Port() && base.Hostname() != at.Hostname() &&
		isLoopback(base.Hostname()) && isLoopback(at.Hostname())
}

func isLoopback(name string) bool {
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// loginForm is what the page of a login shows.
type loginForm struct {
	Title                    string
	Tenant, Domain, ReturnTo string
	Problem                  string // why the last login was refused; "" for none
	Action                   string
}

// loginFormPage replies 401 with the page of a login. The form comes back to this service and then leads to the page or, with
// origins of apps, to one of these.
func (a *api) loginFormPage(form loginForm) reply {
	form.Title, form.Action = "Log in", a.mount+"/api/login/"+url.PathEscape(form.Domain)
	to := "'self' " + a.origin
	if a.origins != nil {
		to += " " + a.origins.scheme + "://*" + a.origins.domain
	}
	answer := pageReply(http.StatusUnauthorized, loginTemplate, to, form)
	answer.header["Vary"], answer.header["WWW-Authenticate"] = varyByVisit["Vary"], "Bearer"
	return answer
}

var loginTemplate = newPage(`{{with .Problem}}<p role="alert">{{.}}</p>
{{end}}<form method="post" action="{{.Action}}">
<input type="hidden" name="returnTo" value="{{.ReturnTo}}">
<label>Username <input name="username" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<label>Tenant, where there are several <input name="tenant" value="{{.Tenant}}"></label>
<button>Log in</button>
</form>
`)
