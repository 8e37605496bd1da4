package httpapi

import (
	"cmp"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// ssoRoutes serves logins at a provider.
type ssoRoutes struct{ loginFlow }

// routes returns the rows of the route table.
func (a ssoRoutes) routes() []rest.Route {
	return a.ifLogins([]rest.Route{
		{
			Method:  get,
			Pattern: "/api/login/:domain/sso",
			Name:    "beginSSO",
			Grants:  logins,
			Public:  true,
			Failed:  a.failedLogin,
			AnyType: true,
			Reads:   []string{"tenant", "returnTo", "errors"},
			Summary: "Log in at the domain's provider",
			Gives:   openapi.Answers{302: openapi.None(), 303: openapi.None()},
			Fails:   []int{400, 404},
			Handle:  a.beginSSO,
		},
		{
			Method:  get,
			Pattern: "/api/login/:domain/callback",
			Name:    "finishSSO",
			Grants:  logins,
			Public:  true,
			Failed:  a.failedLogin,
			AnyType: true,
			Reads:   []string{"tenant", "state"},
			Summary: "Come back from an OpenID provider",
			Gives:   openapi.Answers{303: openapi.None()},
			Handle:  a.finishSSO,
		},
		{
			Method:  post,
			Pattern: "/api/login/:domain/acs",
			Name:    "finishSAML",
			Grants:  logins,
			Public:  true,
			Failed:  a.failedLogin,
			Foreign: true,
			AnyType: true,
			Reads:   []string{"tenant"},
			Summary: "Come back from a SAML provider",
			Takes:   openapi.Bytes(rest.FormType),
			Gives:   openapi.OK(openapi.One[newSessionBody]()),
			Handle:  a.finishSAML,
		},
		{
			Method:  get,
			Pattern: "/api/login/:domain/metadata",
			Name:    "getSSOMetadata",
			Grants:  logins,
			Public:  true,
			AnyType: true,
			Reads:   []string{"tenant"},
			Summary: "What a SAML provider needs to know",
			Gives:   openapi.OK(openapi.Bytes("application/samlmetadata+xml")),
			Handle:  a.getSSOMetadata,
		},
	})
}

// endpoints returns the addresses at which a domain's provider reaches this service. Each names the
// tenant, so that an answer of one tenant's provider is never accepted where another one's is
// expected (RFC 9700, mix-up).
func (a loginFlow) endpoints(tenant, domain string) domains.Endpoints {
	at := func(last string) string { return a.href("login", domain, last) + "?tenant=" + url.QueryEscape(tenant) }
	return domains.Endpoints{
		Callback: at("callback"), ACS: at("acs"),
		Metadata: at("metadata"), LoggedOut: at("loggedout"), BackchannelLogout: at("backchannel-logout"),
		SLO: at("slo"),
	}
}

// anonymous returns the query of a request without a session, and its tenant: header X-Tenant, else
// the query's tenant, else the only one, else default.
func (a loginFlow) anonymous(r *rest.Request) (query url.Values, tenant string, err error) {
	if query, err = rest.ParseQuery(r.Request); err != nil {
		return nil, "", err
	}
	tenant, err = a.Sessions.Unchecked().Tenant(r.Context(), cmp.Or(r.Header.Get("X-Tenant"), query.Get("tenant")))
	return query, tenant, err
}

// beginSSO serves GET /api/login/{domain}/sso: 302 to the domain's provider, or 200 and a page that
// posts a form there, where the provider wants that. returnTo is the path where the browser goes
// after the login; without it the login answers as one with a password does, and leads a browser to
// the page of a login. A failure, here and later, is a page for a browser; with errors=return it is
// 303 to returnTo with error and request in its query. 404 for every domain without one; 400 for a
// returnTo that is no path, or too long for this domain.
func (a ssoRoutes) beginSSO(r *rest.Request) (rest.Reply, error) {
	query, tenant, err := a.anonymous(r)
	if err != nil {
		return rest.Reply{}, err
	}
	domain := r.Param("domain")
	back, err := backOf(query)
	var begun domains.Started
	if err == nil {
		begun, err = a.Domains.Unchecked().Begin(r.Context(), tenant, domain, a.endpoints(tenant, domain), back)
	}
	if err != nil {
		return rest.Reply{}, a.refuseAttempt(
			r, tenant, "", attempt{tenant: query.Get("tenant"), domain: domain, back: back}, err,
		)
	}
	answer := rest.Reply{Status: http.StatusFound, Header: map[string]string{"Location": begun.Location}}
	if begun.Form != nil {
		answer = postPage("Logging in", begun.Location, begun.Form)
	}
	answer.Cookies = []*http.Cookie{a.loginCookie(begun.State, begun.Browser, begun.Ends)}
	return answer, nil
}

// loginCookie ties a login at a provider to the browser that began it. SAML comes back with a POST
// from another site, to which browsers bring the cookie only when it says SameSite=None, and that
// only over https.
func (a loginFlow) loginCookie(state, browser string, ends time.Time) *http.Cookie {
	c := &http.Cookie{
		Name: loginCookieName(state), Value: browser, Path: a.mount + "/api/login/", Expires: ends,
		HttpOnly: true, Secure: a.secureCookie, SameSite: http.SameSiteLaxMode,
	}
	if a.secureCookie {
		c.SameSite = http.SameSiteNoneMode
	}
	return c
}

// loginCookieName differs for each login, so that two may be under way in one browser.
func loginCookieName(state string) string {
	return "sso-" + state[strings.LastIndexByte(state, '.')+1:]
}

// finishSSO serves GET /api/login/{domain}/callback, where OpenID Connect comes back: 303 to the
// path that the login was begun with, or 200 with the session's token, as a login with a password
// answers; both set the session's cookie. 401 "Unable to log in" for every reason alike, also for
// the second use of an answer; 503 when too many log in: the same address may be tried again.
// Failures are as those of beginSSO. The page that a person gets tells apart when the cookie of the
// login is missing, and when it has expired or was used before, as that says nothing about people.
func (a ssoRoutes) finishSSO(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	tenant, state := query.Get("tenant"), query.Get("state")
	query.Del("tenant") // which is ours, not the provider's
	return a.finishLogin(r, tenant, state, query)
}

// finishSAML serves POST /api/login/{domain}/acs, where SAML comes back with a form: as finishSSO.
// The route is open to forms of other origins: that is where it comes from, and the cookie of the
// login's own browser has to come with it. A form without the state of a login here is of one that
// has begun at the provider, which the domain must allow; then RelayState may be a path to go to.
func (a ssoRoutes) finishSAML(r *rest.Request) (rest.Reply, error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != rest.FormType {
		return rest.Reply{}, errs.New(errs.Unsupported, "The Content-Type must be application/x-www-form-urlencoded.")
	}
	form, err := fieldsOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	if state := form.Get("RelayState"); domains.IsState(state) {
		return a.finishLogin(r, query.Get("tenant"), state, form)
	}
	return a.finishUnasked(r, query.Get("tenant"), form)
}

// finishUnasked finishes a login that has begun at the provider. It comes with the navigation of a
// person, not in the frame of a page, where nobody sees who they become.
func (a ssoRoutes) finishUnasked(r *rest.Request, tenant string, form url.Values) (rest.Reply, error) {
	domain, done := r.Param("domain"), domains.Finished{}
	err := error(errs.Wrap(
		errs.Unauthenticated, errors.New("an answer that nobody asked for came to a frame of a page"),
		"Unable to log in",
	))
	if dest := r.Header.Get("Sec-Fetch-Dest"); dest == "" || dest == "document" {
		done, err = a.Domains.Unchecked().FinishUnasked(
			r.Context(), tenant, domain, a.endpoints(tenant, domain), form.Get("RelayState"), form,
		)
	}
	return a.start(r, attempt{tenant: tenant, domain: domain, back: done.Return, fault: done.Fault}, done, err)
}

func (a ssoRoutes) finishLogin(r *rest.Request, tenant, state string, params url.Values) (rest.Reply, error) {
	browser := ""
	if c, err := r.Cookie(loginCookieName(state)); err == nil {
		browser = c.Value
	}
	domain := r.Param("domain")
	done, err := a.Domains.Unchecked().Finish(
		r.Context(), tenant, domain, a.endpoints(tenant, domain), state, browser, params,
	)
	tried := attempt{tenant: tenant, domain: domain, back: done.Return, fault: done.Fault}
	if done.Fault == domains.FaultNoCookie {
		err = errs.Wrap(errs.Unauthenticated, a.lostCookie(r), "%s", errs.MessageOf(err))
	}
	answer, err := a.start(r, tried, done, err)
	if err == nil {
		answer.Cookies = append(answer.Cookies, a.loginCookie(state, "", time.Unix(0, 0)))
	}
	return answer, err
}

// start starts the session of a login at a provider that has ended with err, and replies with it.
func (a ssoRoutes) start(r *rest.Request, tried attempt, done domains.Finished, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, a.refuseAttempt(r, tried.tenant, done.User.Username, tried, err)
	}
	l, err := a.Sessions.Unchecked().Start(r.Context(), done.Tenant, done.User, sessions.ProviderSession{
		Domain: tried.domain, Subject: done.Session.Subject, ID: done.Session.ID, Memory: done.Session.Memory,
	})
	if err != nil {
		return rest.Reply{}, a.refuseAttempt(r, tried.tenant, done.User.Username, tried, err)
	}
	answer := a.loggedIn(l)
	if done.Return.To == "" && visitsPage(r.Header) { // a page that can be loaded again, and whose address has no code
		done.Return.To = loginAddress(tried.tenant, "", "")
	}
	if done.Return.To != "" {
		answer.Status, answer.Body = http.StatusSeeOther, nil
		answer.Header = map[string]string{"Location": a.BaseURL + done.Return.To}
	}
	return answer, nil
}

// lostCookie returns why a browser has probably not brought the cookie of its login, and what the
// operator can do.
func (a ssoRoutes) lostCookie(r *rest.Request) error {
	const begun = "the browser has not brought the cookie of this login: "
	switch {
	case r.Method == http.MethodPost && !a.secureCookie:
		return errors.New(begun +
			"with the form of a provider, browsers bring it only over https, and the base URL is " + a.BaseURL +
			": serve it at https")
	case len(r.Cookies()) == 0:
		return errors.New(begun +
			"it has brought none at all, so it blocks cookies, or the login was begun in another browser or at " +
			"another host than that of the base URL " + a.BaseURL)
	}
	return errors.New(
		begun + "it has brought others, so the login was begun in another browser, or its cookie was removed",
	)
}

// refuseAttempt is refuseLogin for a login at a provider.
func (a ssoRoutes) refuseAttempt(r *rest.Request, tenant, username string, tried attempt, err error) error {
	return refusedLogin{a.refuseLogin(r, tenant, tried.domain, username, err), tried}
}

// getSSOMetadata serves GET /api/login/{domain}/metadata: 200 and what the domain's provider has to
// know of this service; 404 for every domain without it.
func (a ssoRoutes) getSSOMetadata(r *rest.Request) (rest.Reply, error) {
	_, tenant, err := a.anonymous(r)
	if err != nil {
		return rest.Reply{}, err
	}
	domain := r.Param("domain")
	document, contentType, err := a.Domains.Unchecked().Metadata(
		r.Context(), tenant, domain, a.endpoints(tenant, domain),
	)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.Reply{Status: http.StatusOK,
		Header: map[string]string{"Content-Type": contentType}, Serve: func(w *rest.Response, _ *http.Request) error {
			_, _ = w.Write(document) // a client that has gone needs no answer
			return nil
		}}, nil
}
