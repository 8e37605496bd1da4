package handlers

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// NotAllowed is the error of a request with a method that its route does not have. Its code is
// errs.MethodNotAllowed.
type NotAllowed struct{ Methods []string }

// Allow returns the methods as the header Allow names them: HEAD is served by GET.
func (e NotAllowed) Allow() string {
	return strings.Replace(strings.Join(e.Methods, ", "), "GET", "GET, HEAD", 1)
}

// Error implements error.
func (e NotAllowed) Error() string { return errs.MessageOf(e.Unwrap()) }

// Unwrap returns the error with its code.
func (e NotAllowed) Unwrap() error {
	return errs.New(errs.MethodNotAllowed, "This route has no such method: it has %s.", strings.Join(e.Methods, ", "))
}

// FunctionOf returns the name of the function that serves a method: HEAD is served by GET.
func FunctionOf(method string) string {
	if method == "HEAD" {
		return "GET"
	}
	return method
}

// Match returns the route of an area for a path, and its parameters. path is what stands behind the
// area in the URL, still escaped; a slash at its beginning or end does not matter. Segments that
// are the same win over parameters, from left to right. HEAD is GET.
//
// Errors: errs.NotFound; a NotAllowed, with the route; errs.Conflict for a draft that cannot be
// built.
func (s *Service) Match(
	ctx context.Context, app App, area Area, method, path string,
) (Route, map[string]string, error) {
	routes, err := s.Routes(ctx, app, area)
	if err != nil {
		return Route{}, nil, err
	}
	missing := errs.New(errs.NotFound, "The app has no such route.")
	segments, ok := split(path)
	if !ok {
		return Route{}, nil, missing
	}
	best, found := Route{}, false
	var bestPattern []string
	for _, r := range routes {
		pattern := strings.Split(strings.Trim(r.Path, "/"), "/")
		if r.Path == "/" {
			pattern = nil
		}
		if fits(pattern, segments) && (!found || before(pattern, bestPattern)) {
			best, bestPattern, found = r, pattern, true
		}
	}
	if !found {
		return Route{}, nil, missing
	}
	params := map[string]string{}
	for i, p := range bestPattern {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			params[name] = segments[i]
		}
	}
	if !slices.Contains(best.Methods, FunctionOf(method)) {
		return best, params, NotAllowed{best.Methods}
	}
	return best, params, nil
}

// split returns the segments of an escaped path, unescaped. It returns false for one that no route
// can have.
func split(path string) ([]string, bool) {
	path = strings.TrimPrefix(path, "/")
	if path == "/" {
		return nil, false
	}
	if path = strings.TrimSuffix(path, "/"); path == "" {
		return nil, true
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		text, err := url.PathUnescape(segment)
		if err != nil || text == "" {
			return nil, false
		}
		segments[i] = text
	}
	return segments, true
}

func fits(pattern, segments []string) bool {
	return slices.EqualFunc(pattern, segments, func(p, s string) bool { return strings.HasPrefix(p, ":") || p == s })
}

// before reports whether a pattern wins over another one that fits the same path.
func before(a, b []string) bool {
	for i := range a {
		x, y := strings.HasPrefix(a[i], ":"), strings.HasPrefix(b[i], ":")
		if x != y {
			return y
		}
	}
	return false
}
