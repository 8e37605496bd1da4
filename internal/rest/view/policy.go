package view

import (
	"net/url"
	"strings"
)

// Policy returns the Content-Security-Policy of everything that comes from an app: its pages, files
// and handlers' answers. The page loads, fetches and sends forms to URLs below prefix alone, an
// absolute http or https URL that ends in a slash; below any other prefix it can do nothing of it.
// Scripts and styles may be inline, made at run time, or blobs.
//
// Without an origin of its own, where service is "", the page runs in a sandbox with an opaque
// origin: it has no cookies and no storage, and for all other pages, those of other apps too, it is
// a stranger. For an app with an origin of its own service is the origin of the service, whose
// pages may have the app in a frame; the app has the cookies and storage of its origin, and the
// same sources. At the origin of the service the page could then do all that its viewer may do
// there.
//
// A browser does not compare the path with the policy when it follows a redirect, so nothing below
// prefix may redirect out of it. No policy keeps a page from going to another address with what it
// knows, as a link does, or from opening one in a new window: a GET below the service's origin is
// then made with the viewer's cookies, and its answer is closed to the page.
func Policy(prefix, service string) string {
	at, ancestors := source(prefix), "'self'"
	// not for top navigation, nor popups out of it
	sandbox := "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads"
	if service != "" {
		sandbox += " allow-same-origin"
		ancestors = strings.TrimSuffix(source(service+"/"), "/")
	}
	return strings.Join([]string{
		sandbox,
		// What has no directive of its own: scripts, styles, images, fonts, media, workers,
		// fetches. The prefix is long, and proxies have little room for headers, so it is here once
		// for all of them. Blobs and data are the page's own.
		"default-src " + at + " 'unsafe-inline' 'unsafe-eval' blob: data:",
		"frame-src 'none'", // no other app and no page of the service in it
		"object-src 'none'",
		"base-uri " + at,
		"form-action " + at,
		// pages of the service; a page of an app is no ancestor, its origin is opaque or another
		"frame-ancestors " + ancestors,
		"webrtc 'block'", // for browsers that know it; connect-src does not cover it
	}, "; ")
}

// source returns a prefix as the source of a policy, 'none' if it cannot be one.
func source(prefix string) string {
	u, err := url.Parse(prefix)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.ForceQuery ||
		u.Fragment != "" || strings.Contains(prefix, "#") || !strings.HasSuffix(u.EscapedPath(), "/") ||
		!plainHost(u.Host) {
		return "'none'"
	}
	for _, s := range strings.Split(u.Path, "/") {
		if s == "." || s == ".." {
			return "'none'"
		}
	}
	return u.Scheme + "://" + u.Host + strings.NewReplacer(";", "%3B", ",", "%2C", "'", "%27").Replace(u.EscapedPath())
}

// plainHost reports whether a host, with its port, can stand in a policy: a name or an IPv4
// address.
func plainHost(host string) bool {
	name, port, _ := strings.Cut(host, ":")
	odd := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '.' && c != '_'
	}
	return name != "" && !strings.ContainsFunc(name, odd) && strings.Trim(port, "0123456789") == ""
}
