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

// Allows reports whether the manifest has a rule for a call of the app's pages and handlers. The
// path is escaped, as it is in a URL, and begins after /api/; it has no query. HEAD is allowed
// where GET is. The service closes some routes to all apps beside that.
//
// Only a path that can be read in one way is allowed. It has neither empty segments nor segments of
// only dots, and no segment has, percent-decoded, a slash, a backslash, a percent sign, a
// semicolon, a question mark, a number sign or a control character.
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
	if !ok || !slices.Contains(methods, method) {
		return Rule{}, false
	}
	for _, limit := range m.limits {
		if _, allowed := ruleFor(limit, method, segments); !allowed {
			return Rule{}, false
		}
	}
	return ruleFor(m.Access, method, segments)
}

// ruleFor returns the first of some rules that allows a method and the decoded segments of a path.
func ruleFor(rules []Rule, method string, segments []string) (Rule, bool) {
	for _, r := range rules {
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

// accept checks a rule and brings its methods into their order. It returns what is wrong, "" for
// nothing.
func (r *Rule) accept(of Reader) string {
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
	if why := r.acceptPath(); why != "" {
		return why
	}
	for _, m := range r.Methods {
		asked := m
		if strings.HasSuffix(r.Path, "/**") { // an area of which another method is open is useless, see Useless
			asked = ""
		}
		if grants := of.closed(asked, r.Path); grants != "" {
			return fmt.Sprintf("no app may call %s %s, which grants %s", m, short(r.Path), grants)
		}
	}
	return ""
}

// Useless returns a sentence for each rule of a manifest that allows no call, although it can be
// read: such as PUT users/**, where apps may read and not write.
func (r Reader) Useless(m Manifest) (warnings []string) {
	for _, rule := range m.Access {
		for _, method := range rule.Methods {
			if grants := r.closed(method, rule.Path); grants != "" {
				warnings = append(
					warnings,
					fmt.Sprintf(
						"The rule %s %s in access allows nothing: no app may make these calls, which grant %s.",
						method, rule.Path, grants,
					),
				)
			}
		}
	}
	return warnings
}

// closed is Closed, which may be nil.
func (r Reader) closed(method, path string) string {
	if r.Closed == nil {
		return ""
	}
	return r.Closed(method, path)
}

func (r *Rule) acceptPath() string {
	pattern := strings.Split(r.Path, "/")
	switch {
	case pattern[0] == "" || strings.EqualFold(pattern[0], "api"):
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
			return `the path must not have empty segments, . or .., or the characters \ % ; ? # (a query is ` +
				`always allowed)`
		case strings.ContainsAny(p, "*{}"):
			return fmt.Sprintf("%s mixes text with a wildcard: * and :name stand for a whole segment", short(p))
		}
	}
	return ""
}
