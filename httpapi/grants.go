package httpapi

import (
	"slices"
	"strings"
	"sync"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
)

// What routes grant. A route without any is closed to apps.
const (
	nothing     rest.Grants = "nothing"     // content
	rights      rest.Grants = "rights"      // roles, memberships, owners, shares
	credentials rest.Grants = "credentials" // tokens, passwords, secrets, keys
	profiles    rest.Grants = "profiles"    // users and what identifies them when they log in
	logins      rest.Grants = "logins"      // sessions
	settings    rest.Grants = "settings"    // of the tenant and its domains
	decisions   rest.Grants = "decisions"   // answers to what only a person may confirm
	// programs are what later runs, or is followed, with the rights of somebody: all of apps and
	// bundles, and what is written of assistants, instructions, jobs, toolkits and integrations.
	programs rest.Grants = "programs"
)

// closedToApps returns errs.Forbidden if apps cannot call a route.
func closedToApps(route *rest.Route) error {
	if route.Grants == nothing {
		return nil
	}
	return errs.New(
		errs.Forbidden, "No app may call %s %s%s.", route.Method, rest.TemplateOf(route.Pattern),
		which(route.Grants),
	)
}

// which returns the end of a sentence about a route that is closed to apps.
func which(g rest.Grants) string {
	if g == "" {
		return ""
	}
	return ", which grants " + string(g)
}

// allRoutes has the routes of a service that keeps all kinds itself, once they are needed.
var allRoutes struct {
	once   sync.Once
	routes []rest.Route
}

// Manifests returns the reader of manifests that refuses rules for calls which the route table
// closes to apps.
func Manifests() apps.ManifestReader { return apps.ManifestReader{Closed: closedRule} }

// closedRule implements manifest.Reader.Closed. A rule that names no route is not closed.
func closedRule(method, path string) string {
	allRoutes.once.Do(func() { allRoutes.routes = (&api{}).routes() })
	grants := ""
	rule := strings.Split(path, "/")
	for _, r := range allRoutes.routes {
		if method != "" && r.Method != method || !meets(rule, r.Pattern) {
			continue
		}
		if r.Grants == nothing {
			return ""
		}
		grants = string(r.Grants)
	}
	return grants
}

// meets reports whether some path matches both a path pattern of a manifest and the pattern of a
// route. Literals are compared without case, and without dots and spaces at the end.
func meets(rule []string, pattern string) bool {
	below, ok := strings.CutPrefix(pattern, "/api/")
	if !ok {
		return false
	}
	route := strings.Split(below, "/")
	if last := len(rule) - 1; rule[last] == "**" {
		rule, route = rule[:last], route[:min(len(route), last)]
	}
	if rest.IsCatchAll(route[len(route)-1]) {
		rule = rule[:min(len(rule), len(route))]
	}
	return slices.EqualFunc(rule, route, func(s, of string) bool {
		return s == "*" || rest.IsParam(s) || rest.IsParam(of) || rest.IsCatchAll(of) ||
			strings.EqualFold(strings.TrimRight(s, ". "), of)
	})
}
