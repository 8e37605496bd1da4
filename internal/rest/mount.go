package rest

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// mountPath is a path of segments that need no escapes, such as /apps/content.
var mountPath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)

// ParseBaseURL returns the origin and the path of a base URL, neither with a slash at its end.
// Errors: errs.Invalid.
func ParseBaseURL(text string) (origin, mount string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(text, "?#") {
		return "", "", errs.Wrap(
			errs.Invalid, err,
			"the base URL %q must be http:// or https://, a host and perhaps a path, such as "+
				"https://content.example.com or https://example.com/content",
			text,
		)
	}
	mount = strings.TrimRight(u.EscapedPath(), "/")
	if !mountPath.MatchString(mount) {
		return "", "", errs.New(
			errs.Invalid,
			"the path of the base URL %q must be of segments of letters, digits, - . _ and ~, such as /content",
			text,
		)
	}
	return u.Scheme + "://" + u.Host, mount, nil
}

// Unmounted returns a request as it would be without the mount path before its own.
func Unmounted(r *http.Request, mount string) *http.Request {
	path, below := strings.CutPrefix(r.URL.Path, mount)
	raw, rawBelow := strings.CutPrefix(r.URL.RawPath, mount)
	if mount == "" || !below || r.URL.RawPath != "" && !rawBelow || path != "" && path[0] != '/' {
		return r
	}
	if path == "" {
		path = "/"
	}
	inner, at := *r, *r.URL
	at.Path, at.RawPath = path, raw
	inner.URL = &at
	return &inner
}
