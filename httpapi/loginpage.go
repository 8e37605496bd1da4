package httpapi

import (
	"cmp"
	"net"
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// loginPage is the reply to a browser that goes to a page without a session: 401 and a form for
// logging in, which leads back to the page. It reports whether the failure of a request is one for
// it; all other failures are JSON. Beside the loopback address of the base URL, where no app's
// origin finds the session again, it is 303 to that one.
func (a loginFlow) loginPage(r *rest.Request, err error) (page rest.Reply, ok bool) {
	if a.noLogins || errs.CodeOf(err) != errs.Unauthenticated || r.Method != http.MethodGet ||
		!visitsPage(r.Header) || r.Header.Get("Authorization") != "" || a.hidden(r) {
		return rest.Reply{}, false
	}
	if a.otherLoopback(r.Host) {
		return rest.SeeOther(a.BaseURL + r.URL.RequestURI()), true
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, false
	}
	form := loginForm{
		Tenant: query.Get("tenant"),
		Domain: query.Get("domain"),
		Back:   domains.Return{To: r.URL.EscapedPath()},
	}
	for _, name := range []string{"tenant", "domain", "challenge"} { // a challenge is for a minute
		query.Del(name)
	}
	if len(query) > 0 {
		form.Back.To += "?" + query.Encode()
	}
	return a.askToLogin(r, form), true
}

// hidden reports whether the database hides its rows, so that every credential looks wrong.
func (a loginFlow) hidden(r *rest.Request) bool {
	return a.Visible != nil && a.Visible(r.Context()) != nil
}

// otherLoopback reports whether a host is this machine by another name than in the base URL.
func (a loginFlow) otherLoopback(host string) bool {
	base, err := url.Parse(a.origin)
	at, failed := url.Parse("//" + host)
	return err == nil && failed == nil && base.Port() == at.Port() && base.Hostname() != at.Hostname() &&
		isLoopback(base.Hostname()) && isLoopback(at.Hostname())
}

func isLoopback(name string) bool {
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// askToLogin replies 401 with the page of a login, with a form for the domain local alone when too
// many ask how to log in.
func (a loginFlow) askToLogin(r *rest.Request, form loginForm) rest.Reply {
	tenant, err := a.Sessions.Unchecked().Tenant(r.Context(), form.Tenant)
	var ways []domains.Way
	if err == nil {
		ways, err = a.ways(r, tenant)
	}
	if err != nil {
		form.Domain = cmp.Or(form.Domain, domains.Local)
	}
	return a.loginFormPage(http.StatusUnauthorized, form, ways)
}
