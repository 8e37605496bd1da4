package httpapi

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// A login at a provider takes a browser through routes of this service. When it fails there, a
// program gets the failure as everywhere, a person a page, and a page of the host that has asked
// for it an error in its query.

// attempt is a login, as far as it is known.
type attempt struct {
	tenant, domain string // as the address names them
	password       bool   // with a password; false: at a provider
	back           domains.Return
	fault          domains.Fault
}

// backOf reads where a login leads from the query that it begins with. Errors: errs.Invalid.
func backOf(query url.Values) (domains.Return, error) {
	back := domains.Return{To: query.Get("returnTo")}
	if !domains.IsPath(back.To) {
		return domains.Return{}, errs.New(errs.Invalid, "returnTo must be a path of this service, such as /apps")
	}
	switch query.Get("errors") {
	case "", "page":
	case "return":
		back.Errors = true
	default:
		return domains.Return{}, errs.New(
			errs.Invalid, "errors must be page, or return: then returnTo gets what went wrong",
		)
	}
	if back.Errors && back.To == "" {
		return domains.Return{}, errs.New(errs.Invalid, "errors=return needs returnTo")
	}
	return back, nil
}

// sso returns the address where a login begins.
func (a loginFlow) sso(t attempt) string {
	query := url.Values{}
	if t.tenant != "" {
		query.Set("tenant", t.tenant)
	}
	if t.back.To != "" {
		query.Set("returnTo", t.back.To)
	}
	if t.back.Errors {
		query.Set("errors", "return")
	}
	return withQuery(a.href("login", t.domain, "sso"), query)
}

func withQuery(address string, query url.Values) string {
	if len(query) == 0 {
		return address
	}
	return address + "?" + query.Encode()
}

// failedLogin replies to a browser in whose way a login has failed: it goes back to the page that
// has asked for errors, or gets a page. It reports false for a program.
func (a loginFlow) failedLogin(
	w *rest.Response, r *http.Request, status int, message string, err error,
) (answer rest.Reply, ok bool) {
	w.Header().Set("Vary", varyByVisit["Vary"])
	var failed refusedLogin
	errors.As(err, &failed)
	switch {
	case failed.attempt.back.Errors:
		return rest.SeeOther(a.BaseURL + withError(
			failed.attempt.back.To, errorWord(status, failed.attempt.fault), w.ID,
		)), true
	case visitsPage(r.Header):
		return noticePage(status, a.loginNotice(failed.attempt, status, message, w.ID)), true
	}
	return rest.Reply{}, false
}

// withError adds what went wrong to a path, in place of what went wrong before.
func withError(path, word, request string) string {
	path, fragment, _ := strings.Cut(path, "#")
	path, query, _ := strings.Cut(path, "?")
	kept := slices.DeleteFunc(strings.Split(query, "&"), func(p string) bool {
		return p == "" || strings.HasPrefix(p, "error=") || strings.HasPrefix(p, "request=")
	})
	path += "?" + strings.Join(append(kept, url.Values{"error": {word}, "request": {request}}.Encode()), "&")
	if fragment != "" {
		path += "#" + fragment
	}
	return path
}

// errorWord returns the name of a failure for programs.
func errorWord(status int, fault domains.Fault) string {
	switch status {
	case http.StatusUnauthorized:
		return cmp.Or(string(fault), "login_refused")
	case http.StatusNotFound:
		return "unknown_domain"
	case http.StatusBadGateway:
		return "provider_unavailable"
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "busy"
	case http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request"
}

// loginNotice tells a person why a login has failed, as far as it tells a stranger nothing about
// people.
func (a loginFlow) loginNotice(t attempt, status int, message, request string) notice {
	n := notice{Title: "You could not be logged in", Request: request}
	if t.domain != "" && status != http.StatusNotFound && !t.password {
		n.Links = append(n.Links, pageLink{a.sso(t), "Try again"})
	}
	other, domain := "Other ways to log in", ""
	if t.password {
		other, domain = "Try again", t.domain
	}
	n.Links = append(n.Links, pageLink{a.BaseURL + loginAddress(t.tenant, domain, t.back.To), other})
	n.Text = []string{sentences[errorWord(status, t.fault)]}
	if n.Text[0] == "" {
		n.Text[0] = message
	}
	return n
}

// sentences are what a person reads, by errorWord. Others read the message.
var sentences = map[string]string{
	"login_refused": "The log-in was refused. You may have cancelled it, have no account here, or have one that " +
		"may not log in. " +
		"The administrator can find the reason.",
	string(domains.FaultNoCookie): "Your browser has not brought back the cookie that it got when you began to " +
		"log in. " +
		"Allow cookies for this site, and begin again in the same browser.",
	string(domains.FaultExpired): "You began to log in more than ten minutes ago, which is too long. Begin again.",
	string(domains.FaultUsed): "This log-in was used before, as when a page is loaded again or you go back to it. " +
		"You may be logged in already. If not, begin again.",
	"unknown_domain": "There is no log-in at this address. The link that you followed may be old or misspelled.",
	"provider_unavailable": "The service where you log in cannot be reached at the moment, or does not answer as " +
		"it should. Try again in a few minutes.",
	"server_error": "Something went wrong at this server. Try again later.",
}
