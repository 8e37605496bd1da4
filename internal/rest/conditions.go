package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// conditions are the headers If-Match and If-None-Match of a request.
type conditions struct{ Match, NoneMatch *tags }

// tags is the value of one of them: * or entity tags as they are spelled, with quotes and W/.
type tags struct {
	Any  bool
	List []string
}

// NewConditions returns the conditions of a request, nil if it has none. It returns errs.Invalid
// for a header that is malformed.
func NewConditions(h http.Header) (*conditions, error) {
	match, noneMatch := h["If-Match"], h["If-None-Match"]
	if match == nil && noneMatch == nil {
		return nil, nil
	}
	var c conditions
	for _, header := range []struct {
		name  string
		lines []string
		into  **tags
	}{{"If-Match", match, &c.Match}, {"If-None-Match", noneMatch, &c.NoneMatch}} {
		if header.lines == nil {
			continue
		}
		parsed, ok := parseTags(strings.Join(header.lines, ","))
		if !ok {
			return nil, errs.New(
				errs.Invalid, `The header %s must be * or a list of entity tags such as "abc", "def".`,
				header.name,
			)
		}
		*header.into = parsed
	}
	return &c, nil
}

// parseTags parses "*" or a list of entity tags (RFC 9110, 8.8.3).
func parseTags(text string) (*tags, bool) {
	if strings.Trim(text, " \t") == "*" {
		return &tags{Any: true}, true
	}
	var t tags
	for {
		text = strings.TrimLeft(text, " \t,")
		if text == "" {
			return &t, len(t.List) > 0
		}
		rest := strings.TrimPrefix(text, "W/")
		if rest[:min(1, len(rest))] != `"` {
			return nil, false
		}
		end := strings.IndexByte(rest[1:], '"')
		if end < 0 || strings.ContainsFunc(rest[1:end+1], func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return nil, false
		}
		size := len(text) - len(rest) + end + 2
		t.List = append(t.List, text[:size])
		text = strings.TrimLeft(text[size:], " \t")
		if text != "" && text[0] != ',' {
			return nil, false
		}
	}
}

// versionOf returns the first part of a strong entity tag, the version of the row; "" for a weak
// tag.
func versionOf(tag string) string {
	version, _, _ := strings.Cut(strings.Trim(tag, `"`), ".")
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return version
}

// fits reports whether a row meets the conditions of a write. If-Match compares strongly,
// If-None-Match weakly.
func (c *conditions) fits(version string, exists bool) bool {
	if m := c.Match; m != nil {
		same := func(tag string) bool { return versionOf(tag) == version && version != "" }
		if !exists || !m.Any && !slices.ContainsFunc(m.List, same) {
			return false
		}
	}
	if n := c.NoneMatch; n != nil && exists {
		same := func(tag string) bool { return versionOf(strings.TrimPrefix(tag, "W/")) == version }
		return !n.Any && !slices.ContainsFunc(n.List, same)
	}
	return true
}

// unchanged reports whether a client that has sent these conditions with a GET has the resource
// with this tag already.
func (c *conditions) unchanged(tag string) bool {
	if c == nil || c.NoneMatch == nil {
		return false
	}
	return c.NoneMatch.Any || slices.ContainsFunc(c.NoneMatch.List, func(t string) bool {
		return strings.TrimPrefix(t, "W/") == tag
	})
}

// Guarded returns the guard of a conditional write, nil for a write without conditions and for
// other requests. It returns errs.Stale if the route's resource has no entity tag that could fit.
func (r *Request) Guarded(route *Route) (*guard.Guard, error) {
	c := r.Conditions
	if c == nil || r.Method != http.MethodPut && r.Method != http.MethodDelete {
		return nil, nil
	}
	if route.Row == "" {
		if route.AnyType { // a handler of an app, which reads them itself
			return nil, nil
		}
		if c.Match != nil && !c.Match.Any {
			return nil, errs.New(errs.Stale, "This resource has no ETag that If-Match could fit.")
		}
		return nil, nil
	}
	return &guard.Guard{Row: route.Row, Fits: c.fits}, nil
}
