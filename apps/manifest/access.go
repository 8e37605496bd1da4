package manifest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methods are those that a rule can have.
var methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}

// The most that the path of a call may have.
const (
	maxCall     = 2048 // bytes, escaped
	maxSegments = 32
)

// What no app may call, whatever its manifest has: what gives rights or tells secrets. Names in it are in lower case.
var (
	// closedAreas are first segments. So are all that begin with _.
	closedAreas = []string{
		"apps", "apps-*", "bundle-*", "bundles", "domain-*", "domains", "domains-*", "login", "logout", "scim", "session", "sessions",
		"tenant", "tenants", "tokens",
	}
	// closedSegments are segments anywhere.
	closedSegments = []string{"_reassign", "_rotate-webhook-secret", "password", "secrets", "shares", "superuser", "tokens", "webhook-tokens"}
	// readAreas are first segments of what an app may read and not write.
	readAreas = []string{"principals", "teams", "users"}
)

// Allows reports whether the manifest lets the app's pages and handlers make a call. The path is escaped, as it is in a URL, and
// begins behind /api/; it has no query. HEAD is allowed where GET is.
//
// Only a path that can be read in one way is allowed. It has neither empty segments nor segments of dots alone, and no segment has,
// percent-decoded, a slash, a backslash, a percent sign, a semicolon, a question mark, a number sign or a control character.
func (m Manifest) Allows(method, path string) bool {
	_, allowed := m.Rule(method, path)
	return allowed
}

// Rule returns the first rule that allows a call, and whether there is one: see Allows.
func (m Manifest) Rule(method, path string) (Rule, bool) {
	if method == "HEAD" {
		method = "GET"
	}
	segments, ok := split(path)
	if !ok || !slices.Contains(methods, method) || closed(method, segments) {
		return Rule{}, false
	}
	for _, r := range m.Access {
		if slices.Contains(r.Methods, method) && r.matches(segments) {
			return r, true
		}
	}
	return Rule{}, false
}

// matches reports whether the path pattern of the rule matches decoded segments.
func (r Rule) matches(segments []string) bool {
	pattern := strings.Split(r.Path, "/")
	if last := len(pattern) - 1; pattern[last] == "**" {
		if len(segments) < last {
			return false
		}
		pattern, segments = pattern[:last], segments[:last]
	}
	return slices.EqualFunc(pattern, segments, func(p, s string) bool { return p == s || wildcard(p) })
}

// wildcard reports whether a segment of a pattern stands for any one segment: * or :name.
func wildcard(p string) bool { return p == "*" || strings.HasPrefix(p, ":") }

// split decodes the segments of an escaped path, and reports whether it can be read in one way.
func split(path string) ([]string, bool) {
	if len(path) > maxCall {
		return nil, false
	}
	segments := strings.Split(path, "/")
	if len(segments) > maxSegments {
		return nil, false
	}
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil || !plainSegment(decoded) {
			return nil, false
		}
		segments[i] = decoded
	}
	return segments, true
}

// plainSegment reports whether a decoded segment means the same to everybody who reads it.
func plainSegment(s string) bool {
	odd := func(c rune) bool { return unicode.IsControl(c) || strings.ContainsRune(`/\%;?#`, c) }
	return strings.Trim(s, ".") != "" && utf8.ValidString(s) && !strings.ContainsFunc(s, odd)
}

// closed reports whether no app may make a call. Segments of a pattern are compared as they are, so a pattern is closed if all that
// it matches is.
func closed(method string, segments []string) bool {
	area := lower(segments[0])
	return area == "" || area[0] == '_' || listed(closedAreas, area) || method != "GET" && listed(readAreas, area) ||
		slices.ContainsFunc(segments, func(s string) bool { return listed(closedSegments, lower(s)) })
}

// lower returns a segment for comparing it with names that are closed: without case, and without dots and spaces at the end.
func lower(s string) string { return strings.TrimRight(strings.ToLower(s), ". ") }

// listed reports whether a name is among some, of which those with * at the end are prefixes.
func listed(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		prefix, open := strings.CutSuffix(n, "*")
		return n == name || open && strings.HasPrefix(name, prefix)
	})
}

// accept checks a rule and brings its methods into their order. It returns what is wrong, "" for nothing.
func (r *Rule) accept() string {
	if len(r.Methods) == 0 {
		r.Methods = []string{"GET"}
	}
	for _, m := range r.Methods {
		if !slices.Contains(methods, m) {
			return fmt.Sprintf("%s is no method: use %s", short(m), strings.Join(methods, ", "))
		}
	}
	slices.SortFunc(r.Methods, func(a, b string) int { return slices.Index(methods, a) - slices.Index(methods, b) })
	r.Methods = slices.Compact(r.Methods)
	return r.acceptPath()
}

func (r *Rule) acceptPath() string {
	pattern := strings.Split(r.Path, "/")
	switch {
	case pattern[0] == "" || lower(pattern[0]) == "api":
		return "the path is relative to /api/: write datasets/*, not /api/datasets/*"
	case strings.Contains(r.Path, "://"):
		return "the path must be one below /api/: other servers cannot be called"
	case len(pattern) > maxSegments:
		return fmt.Sprintf("the path has %d segments; the most is %d", len(pattern), maxSegments)
	case wildcard(pattern[0]) || pattern[0] == "**":
		return "the first segment of the path must be a name, such as datasets"
	}
	for i, p := range pattern {
		switch {
		case p == "*":
		case p == "**":
			if i < len(pattern)-1 {
				return "** can only be the last segment of the path"
			}
		case strings.HasPrefix(p, ":"):
			if !isVariable.MatchString(p[1:]) {
				return fmt.Sprintf("%s is no parameter: it must be a colon and a name", short(p))
			}
		case !plainSegment(p):
			return `the path must not have empty segments, . or .., or the characters \ % ; ? # (a query is always allowed)`
		case strings.ContainsAny(p, "*{}"):
			return fmt.Sprintf("%s mixes text with a wildcard: * and :name stand for a whole segment", short(p))
		}
	}
	for _, m := range r.Methods {
		if closed(m, pattern) {
			return fmt.Sprintf("no app may call %s %s, which gives rights or tells secrets", m, short(r.Path))
		}
	}
	return ""
}
