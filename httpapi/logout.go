package httpapi

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// logoutRoutes serves logouts, also those that a provider asks for.
type logoutRoutes struct{ loginFlow }

// routes returns the rows of the route table.
func (a logoutRoutes) routes() []rest.Route {
	return append(a.ifLogins([]rest.Route{
		{
			Method:  get,
			Pattern: "/api/login/:domain/loggedout",
			Name:    "loggedOut",
			Grants:  logins,
			Public:  true,
			AnyType: true,
			Reads:   []string{"tenant", "state"},
			Summary: "Come back from a logout at the provider",
			Gives:   openapi.Answers{200: openapi.Bytes("text/html"), 303: openapi.None()},
			Handle:  a.loggedOut,
		},
		{
			Method:  get,
			Pattern: "/api/login/:domain/slo",
			Name:    "singleLogoutByQuery",
			Grants:  logins,
			Public:  true,
			AnyType: true,
			Reads:   []string{"tenant", "RelayState"},
			Summary: "A SAML provider's request or answer about a logout",
			Gives:   openapi.Answers{200: openapi.Bytes("text/html"), 303: openapi.None()},
			Fails:   []int{400},
			Handle:  a.singleLogoutByQuery,
		},
		{
			Method:  post,
			Pattern: "/api/login/:domain/slo",
			Name:    "singleLogoutByForm",
			Grants:  logins,
			Public:  true,
			Foreign: true,
			AnyType: true,
			Reads:   []string{"tenant"},
			Summary: "The same as a form",
			Takes:   openapi.Bytes(rest.FormType),
			Gives:   openapi.Answers{303: openapi.None()},
			Fails:   []int{400},
			Handle:  a.singleLogoutByForm,
		},
		{
			Method:  post,
			Pattern: "/api/login/:domain/backchannel-logout",
			Name:    "receiveLogout",
			Grants:  logins,
			Public:  true,
			AnyType: true,
			Reads:   []string{"tenant"},
			Summary: "A provider's notice of a logout",
			Takes:   openapi.Bytes(rest.FormType),
			Gives:   openapi.Answers{200: openapi.None(), 400: openapi.One[logoutProblem]()},
			Handle:  a.receiveLogout,
		},
	}), []rest.Route{
		{
			Method:  post,
			Pattern: "/api/logout",
			Name:    "logout",
			Grants:  logins,
			Query:   []string{"provider", "returnTo"},
			AnyType: true,
			Summary: "End the session",
			Takes:   openapi.None().Or(openapi.Bytes(rest.FormType)),
			Gives:   openapi.OK(openapi.None().Or(openapi.One[logoutBody]())),
			Handle:  a.logout,
		},
	}...)
}

// logout serves POST /api/logout: 200; the session ends, and its cookie. With provider=true, in the
// query or a form, it also says where the browser logs out at the provider of the session's domain:
// 200 {"location": an address, or null where there is none}, with "form" if fields have to be
// posted there; and for a form 303 to that address, or 200 and a page that posts. The browser comes
// back from there to loggedOut or singleLogout, and goes on to the path in returnTo. 400 for
// another returnTo, and the session stays.
func (a logoutRoutes) logout(r *rest.Request) (rest.Reply, error) {
	form, options, err := logoutOptionsOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	answer := rest.Reply{Status: http.StatusOK, Cookies: []*http.Cookie{a.cookie("", -1)}}
	var begun domains.Started
	switch options.Get("provider") {
	case "true":
		if begun, err = a.beginLogout(r, options.Get("returnTo")); err != nil {
			return rest.Reply{}, err
		}
		if begun.Location != "" {
			answer.Cookies = append(answer.Cookies, a.loginCookie(begun.State, begun.Browser, begun.Ends))
		}
		answer.Body = logoutBody{orNull(begun.Location), flat(begun.Form)}
	case "", "false":
		form = false
	default:
		return rest.Reply{}, errs.New(errs.Invalid, "provider must be true or false")
	}
	logout := a.Sessions.Logout
	if begun.Location != "" {
		logout = a.Sessions.LogoutStored
	}
	if err := logout(r.Context()); err != nil {
		return rest.Reply{}, err
	}
	if form {
		page := rest.SeeOther(cmp.Or(begun.Location, a.afterLogout(options.Get("returnTo"))))
		if begun.Form != nil {
			page = postPage("Logging out", begun.Location, begun.Form)
		}
		page.Cookies = answer.Cookies
		return page, nil
	}
	return answer, nil
}

// logoutBody is the answer to a program: the address at which the browser logs out.
type logoutBody struct {
	Location *string           `json:"location"`
	Form     map[string]string `json:"form,omitempty"` // what it posts there
}

// flat returns the fields of a form that has one value of each.
func flat(form url.Values) map[string]string {
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	return fields
}

// logoutOptions returns the options of a logout, from the query and a form, and whether there is a
// form.
func logoutOptionsOf(r *rest.Request) (form bool, options url.Values, err error) {
	if options, err = rest.ParseQuery(r.Request); err != nil {
		return false, nil, err
	}
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != rest.FormType {
		return false, options, r.NoBody(nil)
	}
	fields, err := fieldsOf(r)
	if err == nil {
		err = onlyFields(fields, r.Route.Query...)
	}
	for name, values := range fields {
		options[name] = values
	}
	return true, options, err
}

// fields returns those of a form in the body.
func fieldsOf(r *rest.Request) (url.Values, error) {
	raw, err := r.ReadBody()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The form is not properly escaped.")
	}
	return form, nil
}

// onlyFields returns errs.Invalid for a field of a form that its route does not know.
func onlyFields(form url.Values, known ...string) error {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		if !slices.Contains(known, name) {
			return jsonfill.UnknownName("field", "", name, known)
		}
	}
	return nil
}

// beginLogout begins the logout at the provider that the caller's session began with. Where there
// is none, or it cannot be reached, the location is "": the session ends here all the same.
func (a logoutRoutes) beginLogout(r *rest.Request, returnTo string) (domains.Started, error) {
	if !domains.IsPath(returnTo) {
		return domains.Started{}, errs.New(errs.Invalid, "returnTo must be a path of this service, such as /apps")
	}
	at, err := a.Sessions.ProviderSession(r.Context())
	if errs.CodeOf(err) == errs.NotFound {
		return domains.Started{}, nil
	}
	if err != nil {
		return domains.Started{}, err
	}
	begun, err := a.Domains.Unchecked().BeginLogout(
		r.Context(), r.Who.Tenant, at.Domain, a.endpoints(r.Who.Tenant, at.Domain), at.Memory, returnTo,
	)
	if errs.CodeOf(err) == errs.Upstream {
		a.logLogout(r, "no logout at the provider", r.Who.Tenant, at.Domain, err)
		return domains.Started{}, nil
	}
	return begun, err
}

// afterLogout returns where a browser goes after a logout: to a path of this service, or to the
// page of loggedOut.
func (a logoutRoutes) afterLogout(returnTo string) string {
	if returnTo == "" {
		return a.href("login", "local", "loggedout")
	}
	return a.BaseURL + returnTo
}

// logLogout logs what a provider has to do with a logout, as one line.
func (a logoutRoutes) logLogout(r *rest.Request, message, tenant, domain string, err error) {
	if e := new(errs.Error); errors.As(err, &e) && e.Cause != nil {
		err = e.Cause
	}
	a.Log.InfoContext(r.Context(), message, "reason", logged(err.Error(), 512), "tenant", logged(tenant, 256),
		"domain", logged(domain, 256),
		"request", actor.OriginOf(r.Context()).Request, "client", rest.ClientOf(r.Request))
}

// loggedOut serves GET /api/login/{domain}/loggedout, where a browser comes back from a logout at
// the domain's provider: 303 to the path that the logout was begun with, and otherwise 200 and a
// page that says that nobody is logged in any more. It ends no session: that has ended before.
func (a logoutRoutes) loggedOut(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	tenant := query.Get("tenant")
	query.Del("tenant") // which is ours, not the provider's
	return a.finishLogout(r, tenant, domains.Answer{Params: query, Query: r.URL.RawQuery, State: query.Get("state")})
}

// finishLogout replies to the answer of a provider to a logout that the browser has begun.
func (a logoutRoutes) finishLogout(r *rest.Request, tenant string, answer domains.Answer) (rest.Reply, error) {
	page, domain, state := a.loggedOutPage(), r.Param("domain"), answer.State
	kept, err := r.Cookie(loginCookieName(state))
	if err != nil {
		return page, nil
	}
	returnTo, err := a.Domains.Unchecked().FinishLogout(
		r.Context(), tenant, domain, a.endpoints(tenant, domain), kept.Value, answer,
	)
	if err != nil {
		a.logLogout(r, "logout at the provider not confirmed", tenant, domain, err)
		returnTo = ""
	}
	if returnTo != "" {
		page = rest.SeeOther(a.afterLogout(returnTo))
	}
	page.Cookies = []*http.Cookie{a.loginCookie(state, "", time.Unix(0, 0))}
	return page, nil
}

// logoutProblem is the body of a failure that a provider reads.
type logoutProblem struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// receiveLogout serves POST /api/login/{domain}/backchannel-logout, where the domain's OpenID
// provider tells by itself that a person has logged out there (OpenID Connect Back-Channel Logout
// 1.0): 200, and the sessions that began there have ended, with the views of apps that they opened;
// 400 {error, error_description} for a notice that is not good, or was used before; 404 for a
// domain whose provider sends none; 503 when too many arrive at once.
func (a logoutRoutes) receiveLogout(r *rest.Request) (rest.Reply, error) {
	_, tenant, err := a.anonymous(r)
	if err != nil {
		return rest.Reply{}, err
	}
	form, err := fieldsOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	domain := r.Param("domain")
	_, err = a.endNotified(r, tenant, domain, domains.Answer{Params: form})
	switch errs.CodeOf(err) {
	case "":
		if err != nil {
			return rest.Reply{}, err
		}
		return rest.Done()
	case errs.Unauthenticated, errs.Upstream:
		a.logLogout(r, "notice of a logout refused", tenant, domain, err)
		return rest.Reply{Status: http.StatusBadRequest, Body: logoutProblem{
			"invalid_request", "The logout token is not good, or cannot be checked at the moment.",
		}}, nil
	}
	return rest.Reply{}, err
}

// singleLogoutByQuery serves GET /api/login/{domain}/slo, where a SAML provider sends browsers by
// HTTP-Redirect: see singleLogout.
func (a logoutRoutes) singleLogoutByQuery(r *rest.Request) (rest.Reply, error) {
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.singleLogout(
		r, query.Get("tenant"),
		domains.Answer{Params: query, Query: r.URL.RawQuery, State: query.Get("RelayState")},
	)
}

// singleLogoutByForm serves POST /api/login/{domain}/slo, where a SAML provider sends browsers by
// HTTP-POST: see singleLogout. The route is open to forms of other origins: that is where they come
// from.
func (a logoutRoutes) singleLogoutByForm(r *rest.Request) (rest.Reply, error) {
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
	return a.singleLogout(r, query.Get("tenant"), domains.Answer{Params: form, State: form.Get("RelayState")})
}

// singleLogout replies to what a SAML provider sends about a logout. SAMLResponse is the answer to
// a logout that has begun here: as loggedOut. SAMLRequest tells of one at the provider: the
// sessions that began there have ended, with the views of apps that they opened, and the browser
// goes back with the answer: 303, or 200 and a page that posts it. It is 400 if it is not good or
// was used before, 404 for a domain whose provider sends none, 503 when too many arrive at once.
func (a logoutRoutes) singleLogout(r *rest.Request, tenant string, answer domains.Answer) (rest.Reply, error) {
	switch request, response := answer.Params.Has("SAMLRequest"), answer.Params.Has("SAMLResponse"); {
	case request == response:
		return rest.Reply{}, errs.New(errs.Invalid, "There must be either a SAMLRequest or a SAMLResponse.")
	case response:
		return a.finishLogout(r, tenant, answer)
	}
	domain := r.Param("domain")
	answer.State = "" // it is the provider's
	n, err := a.endNotified(r, tenant, domain, answer)
	switch errs.CodeOf(err) {
	case errs.Unauthenticated, errs.Upstream:
		a.logLogout(r, "notice of a logout refused", tenant, domain, err)
		err = errs.New(
			errs.Invalid, "The provider's request to log out is not good, or cannot be checked at the moment.",
		)
		if visitsPage(r.Header) {
			return noticePage(http.StatusBadRequest, notice{
				Title: "You are still logged in", Text: []string{errs.MessageOf(err) + " Log out here."},
				Request: actor.OriginOf(r.Context()).Request, Links: []pageLink{{a.BaseURL + "/", "Back to the start"}},
			}), nil
		}
		return rest.Reply{}, err
	}
	switch {
	case err != nil:
		return rest.Reply{}, err
	case n.Form != nil:
		return postPage("Logging out", n.Location, n.Form), nil
	case n.Location != "":
		return rest.SeeOther(n.Location), nil
	}
	return a.loggedOutPage(), nil
}

// endNotified ends the sessions that a provider's notice of a logout names.
func (a logoutRoutes) endNotified(
	r *rest.Request, tenant, domain string, notice domains.Answer,
) (domains.LogoutNotice, error) {
	return a.Domains.Unchecked().ReceiveLogout(r.Context(), tenant, domain, a.endpoints(tenant, domain), notice,
		func(ctx context.Context, n domains.LogoutNotice) error {
			_, err := a.Sessions.Unchecked().EndProviderSessions(ctx, tenant, domain, n.Subject, n.Sessions)
			return err
		})
}

// loggedOutPage replies 200 with the page after a logout.
func (a logoutRoutes) loggedOutPage() rest.Reply {
	return notice{
		Title: "You are logged out", Text: []string{"Nobody is logged in at this service in this browser any more."},
		Links: []pageLink{{a.BaseURL + "/", "Back to the start"}},
	}.reply(http.StatusOK)
}
