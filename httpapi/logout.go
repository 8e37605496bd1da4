package httpapi

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// logout serves POST /api/logout: 200; the session ends, and its cookie. With provider=true, in the query or a form, it also says where the browser
// logs out at the provider of the session's domain: 200 {"location": an address, or null where there is none}, and for a form 303 to that
// address. The browser comes back from there to loggedOut, and goes on to the path in returnTo. 400 for another returnTo, and the session stays.
func (a *api) logout(r *request) (reply, error) {
	form, options, err := r.logoutOptions()
	if err != nil {
		return reply{}, err
	}
	answer := reply{status: http.StatusOK, cookies: []*http.Cookie{a.cookie("", -1)}}
	location := ""
	switch options.Get("provider") {
	case "true":
		begun, err := a.beginLogout(r, options.Get("returnTo"))
		if err != nil {
			return reply{}, err
		}
		if location = begun.Location; location != "" {
			answer.cookies = append(answer.cookies, a.loginCookie(begun.State, begun.Browser, begun.Ends))
		}
		answer.body = struct {
			Location *string `json:"location"`
		}{orNull(location)}
	case "", "false":
		form = false
	default:
		return reply{}, errs.New(errs.Invalid, "provider must be true or false")
	}
	if err := a.Sessions.Logout(r.Context()); err != nil {
		return reply{}, err
	}
	if form {
		answer.status, answer.body = http.StatusSeeOther, nil
		if location == "" {
			location = a.afterLogout(options.Get("returnTo"))
		}
		answer.header = map[string]string{"Location": location}
	}
	return answer, nil
}

// logoutOptions returns the options of a logout, from the query and a form, and whether there is a form.
func (r *request) logoutOptions() (form bool, options url.Values, err error) {
	if options, err = parseQuery(r.Request); err != nil {
		return false, nil, err
	}
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != formType {
		return false, options, nil
	}
	fields, err := r.fields()
	for name, values := range fields {
		options[name] = values
	}
	return true, options, err
}

// fields returns those of a form in the body.
func (r *request) fields() (url.Values, error) {
	raw, err := r.body()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The form is not properly escaped.")
	}
	return form, nil
}

// beginLogout begins the logout at the provider that the caller's session began with. Where there is none, or it cannot be reached, the location is "":
// the session ends here all the same.
func (a *api) beginLogout(r *request, returnTo string) (domains.Started, error) {
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
	begun, err := a.Domains.Unchecked().BeginLogout(r.Context(), r.who.Tenant, at.Domain, a.endpoints(r.who.Tenant, at.Domain), at.Memory, returnTo)
	if errs.CodeOf(err) == errs.Upstream {
		a.logLogout(r, "no logout at the provider", r.who.Tenant, at.Domain, err)
		return domains.Started{}, nil
	}
	return begun, err
}

// afterLogout returns where a browser goes after a logout: to a path of this service, or to the page of loggedOut.
func (a *api) afterLogout(returnTo string) string {
	if returnTo == "" {
		return a.href("login", "local", "loggedout")
	}
	return a.BaseURL + returnTo
}

// logLogout logs what a provider has to do with a logout, as one line.
func (a *api) logLogout(r *request, message, tenant, domain string, err error) {
	if e := new(errs.Error); errors.As(err, &e) && e.Cause != nil {
		err = e.Cause
	}
	a.Log.InfoContext(r.Context(), message, "reason", logged(err.Error(), 512), "tenant", logged(tenant, 256), "domain", logged(domain, 256),
		"request", actor.OriginOf(r.Context()).Request, "client", clientOf(r.Request))
}

// loggedOut serves GET /api/login/{domain}/loggedout, where a browser comes back from a logout at the domain's provider: 303 to the path that the
// logout was begun with, and otherwise 200 and a page that says that nobody is logged in any more. It ends no session: that has ended before.
func (a *api) loggedOut(r *request) (reply, error) {
	query, err := parseQuery(r.Request)
	if err != nil {
		return reply{}, err
	}
	tenant, state, domain := query.Get("tenant"), query.Get("state"), r.param("domain")
	query.Del("tenant") // which is ours, not the provider's
	page := a.loggedOutPage()
	kept, err := r.Cookie(loginCookieName(state))
	if err != nil {
		return page, nil
	}
	returnTo, err := a.Domains.Unchecked().FinishLogout(r.Context(), tenant, domain, a.endpoints(tenant, domain), state, kept.Value, query)
	if err != nil {
		a.logLogout(r, "logout at the provider not confirmed", tenant, domain, err)
		returnTo = ""
	}
	if returnTo != "" {
		page = seeOther(a.afterLogout(returnTo))
	}
	page.cookies = []*http.Cookie{a.loginCookie(state, "", time.Unix(0, 0))}
	return page, nil
}

// receiveLogout serves POST /api/login/{domain}/backchannel-logout, where the domain's OpenID provider tells by itself that a person has logged out there
// (OpenID Connect Back-Channel Logout 1.0): 200, and the sessions that began there have ended, with the views of apps that they opened; 400 {error,
// error_description} for a notice that is not good, or was used before; 404 for a domain whose provider sends none; 503 when too many arrive at once.
func (a *api) receiveLogout(r *request) (reply, error) {
	_, tenant, err := a.anonymous(r)
	if err != nil {
		return reply{}, err
	}
	form, err := r.fields()
	if err != nil {
		return reply{}, err
	}
	domain := r.param("domain")
	_, err = a.endNotified(r, tenant, domain, form)
	switch errs.CodeOf(err) {
	case "":
		if err != nil {
			return reply{}, err
		}
		return done()
	case errs.Unauthenticated, errs.Upstream:
		a.logLogout(r, "notice of a logout refused", tenant, domain, err)
		return reply{status: http.StatusBadRequest, body: struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}{"invalid_request", "The logout token is not good, or cannot be checked at the moment."}}, nil
	}
	return reply{}, err
}

// endNotified ends the sessions that a provider's notice of a logout names.
func (a *api) endNotified(r *request, tenant, domain string, params url.Values) (domains.LogoutNotice, error) {
	return a.Domains.Unchecked().ReceiveLogout(r.Context(), tenant, domain, a.endpoints(tenant, domain), params,
		func(ctx context.Context, n domains.LogoutNotice) error {
			_, err := a.Sessions.Unchecked().EndProviderSessions(ctx, tenant, domain, n.Subject, n.Sessions)
			return err
		})
}

// loggedOutPage replies 200 with the page after a logout.
func (a *api) loggedOutPage() reply {
	return pageReply(http.StatusOK, noticeTemplate, noForms, notice{
		Title: "You are logged out", Text: []string{"Nobody is logged in at this service in this browser any more."},
		Links: []pageLink{{a.BaseURL + "/", "Back to the start"}},
	})
}
