package httpapi

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// loginFlow is what takes people through a login, and what its routes share.
type loginFlow struct{ *api }

// ifLogins returns routes of logins, nothing where the host authenticates callers in their place.
func (a loginFlow) ifLogins(routes []rest.Route) []rest.Route {
	if a.noLogins {
		return nil
	}
	return routes
}

// sessionRoutes serves logins with a password and the session.
type sessionRoutes struct{ loginFlow }

// routes returns the rows of the route table.
func (a sessionRoutes) routes() []rest.Route {
	login := rest.Route{
		Method:  post,
		Pattern: "/api/login/:domain",
		Name:    "login",
		Grants:  logins,
		Secret:  true,
		Public:  true,
		Summary: "Log in with a password",
		Takes:   openapi.Input[loginBody]().Or(openapi.Bytes(rest.FormType)),
		Gives:   openapi.OK(openapi.One[newSessionBody]()),
		Fails:   []int{400, 403, 502},
		Handle:  a.login,
		Failed:  a.failedLogin,
	}
	return append(a.ifLogins([]rest.Route{login}), rest.Route{
		Method:  get,
		Pattern: "/api/session",
		Name:    "getSession",
		Grants:  logins,
		Secret:  true,
		Summary: "Who the caller is",
		Gives:   openapi.OK(openapi.One[sessionBody]()),
		Fails:   []int{400},
		Handle:  a.getSession,
	})
}

// cookieName is the session cookie.
const cookieName = "sid"

// sessionCookie returns the name of the session cookie. Where apps have origins of their own, which
// may be at the same site, the prefix has browsers take it from the host of the service alone; a
// cookie for a path cannot have it.
func (a loginFlow) sessionCookie() string {
	if a.origins != nil && a.secureCookie && a.mount == "" {
		return "__Host-" + cookieName
	}
	return cookieName
}

// loginBody is the body of a login, as JSON or as a form.
type loginBody struct {
	Username *string `json:"username"`
	Password *string `json:"password"`
	Tenant   string  `json:"tenant"`
}

// login serves POST /api/login/{domain}: 200 with the session's token, also as a cookie; 401
// "Unable to log in" for every reason alike; 303 to the path in the field returnTo of a form, and
// its 401 is the form again; for a browser's form without it, 303 to the page of a login, and other
// failures are pages, too; 400 naming username or password where it is missing; 429 when too many
// log in at the tenant or from the client's network; 502 when the domain's directory cannot be
// asked. Each refusal is a line in the log with its reason.
func (a sessionRoutes) login(r *rest.Request) (rest.Reply, error) {
	in, returnTo, err := loginBodyOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	visits := visitsPage(r.Header)
	if !domains.IsPath(returnTo) {
		return rest.Reply{}, errs.New(errs.Invalid, "returnTo must be a path of this service, such as /apps")
	}
	tenant, err := a.Sessions.Unchecked().Tenant(r.Context(), cmp.Or(r.Header.Get("X-Tenant"), in.Tenant))
	if err != nil {
		return rest.Reply{}, err
	}
	l, err := a.Sessions.Login(r.Context(), principals.Credentials{
		Tenant: tenant, Domain: r.Param("domain"), Username: *in.Username, Password: *in.Password,
	})
	if err != nil {
		tried := attempt{
			tenant:   in.Tenant,
			domain:   r.Param("domain"),
			back:     domains.Return{To: returnTo},
			password: true,
		}
		err = refusedLogin{a.refuseLogin(r, tenant, tried.domain, *in.Username, err), tried}
		if (returnTo != "" || visits) && errs.CodeOf(err) == errs.Unauthenticated && !a.hidden(r) {
			return a.askToLogin(r, loginForm{
				Tenant:  in.Tenant,
				Domain:  tried.domain,
				Back:    tried.back,
				Problem: errs.MessageOf(err),
			}), nil
		}
		return rest.Reply{}, err
	}
	answer := a.loggedIn(l)
	if visits {
		returnTo = cmp.Or(returnTo, loginAddress(in.Tenant, "", ""))
	}
	if returnTo != "" {
		answer.Status, answer.Body = http.StatusSeeOther, nil
		answer.Header = map[string]string{"Location": a.mount + returnTo}
	}
	return answer, nil
}

// newSessionShape has the members of a newSessionBody.
type newSessionShape struct {
	Token     string                     `json:"token"`
	ExpiresAt hal.Time                   `json:"expiresAt"`
	Tenant    string                     `json:"tenant"`
	User      openapi.Resource[userBody] `json:"user"`
}

// Shape implements openapi.Shaper.
func (newSessionBody) Shape() any { return newSessionShape{} }

// newSessionBody is a session that has begun.
type newSessionBody struct {
	Token     string       `json:"token"`
	ExpiresAt hal.Time     `json:"expiresAt"`
	Tenant    string       `json:"tenant"`
	User      hal.Resource `json:"user"`
}

// loggedIn answers with a new session: 200, its token and its cookie.
func (a loginFlow) loggedIn(l sessions.Login) rest.Reply {
	self := actor.Actor{Tenant: l.Tenant, User: l.User.Username, Superuser: l.User.Superuser}
	return rest.Reply{
		Status:  http.StatusOK,
		Cookies: []*http.Cookie{a.cookie(l.Token, 0)},
		Body:    newSessionBody{l.Token, hal.Time(l.ExpiresAt), l.Tenant, userRoutes(a).user(self, l.User)},
	}
}

// loginBody reads the body of a login, and the path where a form leads, "" for none. Errors:
// errs.Invalid naming username or password where it is missing; errs.Unsupported for another
// content type than JSON and that of a form.
func loginBodyOf(r *rest.Request) (in loginBody, returnTo string, err error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t == rest.FormType {
		in, returnTo, err = loginFormOf(r)
	} else {
		in, err = rest.Decode[loginBody](r)
	}
	switch {
	case errs.CodeOf(err) == errs.Unsupported:
		err = errs.New(
			errs.Unsupported,
			"The body must be JSON or a form: send the header Content-Type: application/json, or "+
				"application/x-www-form-urlencoded.",
		)
	case err != nil:
	case in.Username == nil:
		err = errs.New(errs.Invalid, "username is required")
	case in.Password == nil:
		err = errs.New(errs.Invalid, "password is required")
	}
	return in, returnTo, err
}

func loginFormOf(r *rest.Request) (in loginBody, returnTo string, err error) {
	form, err := fieldsOf(r)
	if err != nil {
		return in, "", err
	}
	if err := onlyFields(form, "username", "password", "tenant", "returnTo"); err != nil {
		return in, "", err
	}
	for name, field := range map[string]**string{"username": &in.Username, "password": &in.Password} {
		if given := form.Get(name); form.Has(name) {
			*field = &given
		}
	}
	in.Tenant, returnTo = form.Get("tenant"), form.Get("returnTo")
	return in, returnTo, nil
}

// cookie carries a session's token; maxAge -1 takes it away. It ends with the browser; the session
// ends by itself.
func (a loginFlow) cookie(token string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: a.sessionCookie(), Value: token, Path: cmp.Or(a.mount, "/"), MaxAge: maxAge,
		HttpOnly: true, Secure: a.secureCookie, SameSite: http.SameSiteLaxMode,
	}
}

// sessionBody is the session of the caller.
type sessionBody struct {
	Tenant      string          `json:"tenant"`
	User        string          `json:"user"`
	Role        *string         `json:"role"` // null for a user without a team
	Superuser   bool            `json:"superuser"`
	Permissions map[string]bool `json:"permissions"`
}

// Relations implements openapi.Related.
func (sessionBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{"inf:logout", "inf:notifications", "inf:root", "inf:tenant", "inf:tokens", "inf:user"},
	}
}

// getSession serves GET /api/session: 200 and who the caller is, with the highest role over all
// teams. The permissions of a read-only token are all false, also ai: it reads what AI users read.
func (a sessionRoutes) getSession(r *rest.Request) (rest.Reply, error) {
	permissions := map[string]bool{"ai": r.Who.AI && !r.Who.ReadOnly}
	for _, p := range actor.Permissions() {
		permissions[string(p)] = r.Who.Can(p)
	}
	links := hal.Self(a.href("session")).With(
		"inf:user", a.href("users", r.Who.User),
	).With("inf:tenant", a.href("tenant")).
		With(
			"inf:tokens", a.href("tokens"),
		).With("inf:notifications", a.href("notifications")).With("inf:root", a.href())
	whenWriting(r.Who, links, hal.Links{"inf:logout": {Href: a.href("logout")}})
	return rest.OK(hal.Resource{Links: links, Value: sessionBody{
		r.Who.Tenant, r.Who.User, orNull(r.Who.Role().String()), r.Who.Superuser, permissions,
	}})
}

// orNull returns nil for "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// bearer returns the bearer token of a request, "" for none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// authenticate reads the bearer token or, without one, the session cookie. It refuses session
// cookies with different values.
func (a loginFlow) authenticate(r *http.Request) (actor.Actor, error) {
	credential := ""
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return actor.Actor{}, errs.New(errs.Unauthenticated, "The Authorization header must be: Bearer <token>.")
		}
		credential = strings.TrimSpace(token)
	} else if all := r.CookiesNamed(a.sessionCookie()); len(all) > 0 {
		credential = all[0].Value
		if slices.ContainsFunc(all, func(c *http.Cookie) bool { return c.Value != credential }) {
			return actor.Actor{}, errs.New(
				errs.Unauthenticated, "The cookie %s is there with different values: send one.",
				a.sessionCookie(),
			)
		}
	}
	if !escapes.Storable(credential) {
		return actor.Actor{}, errs.New(errs.Unauthenticated, "Log in first.")
	}
	// a zero address is in no range
	return a.Sessions.Authenticate(r.Context(), credential, actor.OriginOf(r.Context()).Address)
}
