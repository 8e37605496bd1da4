package httpapi

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
)

// checkRedirect returns errs.Upstream for an answer of a server route that leads a browser
// elsewhere than to the app's own paths and the hosts in config.redirects. The app's own paths are
// those of its view, and all at its own origin.
func (a views) checkRedirect(r *rest.Request, v apps.Viewed, route handlers.Route, answer handlers.Response) error {
	to, ok := answer.Headers["location"]
	if !ok || answer.Status < http.StatusMultipleChoices || answer.Status >= http.StatusBadRequest {
		return nil
	}
	from, own := a.BaseURL+hal.Href("apps", visitOf(r).view.app, "view")+"/api/"+visitOf(r).view.below, ""
	if visitOf(r).view.files {
		from = a.BaseURL + hal.Href("apps", visitOf(r).view.app, "view") + "/-/" + visitOf(r).view.below
	}
	if at := originOf(r.Context()); at != nil {
		from, own = at.origin+"/", at.origin
	}
	refuse := func(where, why string) error {
		return errs.New(
			errs.Upstream,
			"%s redirects to %s, %s. Let it redirect to a relative path in the app, or list the host in "+
				"config.redirects.",
			route.File, where, why,
		)
	}
	u, err := browserTarget(from, to)
	if err != nil {
		return refuse(shortened(to), err.Error())
	}
	origin := u.Scheme + "://" + u.Host
	if origin == own || slices.Contains(route.Redirects(), u.Host) {
		return nil
	}
	if path, mounted := strings.CutPrefix(u.EscapedPath(), a.mount); origin == a.origin && mounted {
		if app := viewAddressOf(path).app; app != "" && (app == v.ID || app == visitOf(r).view.app) {
			return nil
		}
		return refuse("the host "+u.Host+" outside of the app's own paths", "which the route does not allow")
	}
	return refuse("the host "+u.Host, "which is not the app's own")
}

// shortened returns the start of a Location as a message can have it: without a query, which may
// hold secrets.
func shortened(location string) string {
	if i := strings.IndexAny(location, "?#"); i >= 0 {
		location = location[:i]
	}
	return strings.ToValidUTF8(location[:min(len(location), 200)], "")
}

// browserTarget returns the address that a browser goes to from another one by a Location, with the
// host as route.Redirects writes hosts. It refuses what browsers and net/url read in different
// ways: browsers drop tabs and spaces, take a backslash for a slash, %2e for a dot, and a host from
// "https:host" and "///host".
func browserTarget(from, to string) (*url.URL, error) {
	if strings.ContainsFunc(to, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f }) {
		return nil, errors.New("which has a backslash, a space or a control character")
	}
	base, err := url.Parse(from)
	if err != nil {
		return nil, err
	}
	path, tail := to, ""
	if i := strings.IndexAny(to, "?#"); i >= 0 {
		path, tail = to[:i], to[i:]
	}
	u, err := url.Parse(strings.NewReplacer("%2e", ".", "%2E", ".").Replace(path) + tail)
	switch {
	case err != nil:
		return nil, errors.New("which is not an address")
	case u.Scheme != "" && u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("which is not an https address")
	case u.Opaque != "" || u.Host == "" && (u.Scheme != "" || strings.HasPrefix(to, "//")):
		return nil, errors.New("which does not have a host between // and /")
	case u.User != nil:
		return nil, errors.New("which has a user before the host")
	}
	u = base.ResolveReference(u)
	u.Host = strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	return u, nil
}
