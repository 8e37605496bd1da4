package manifest_test

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps/manifest"
	"github.com/tenantcontent/tenantcontent/errs"
)

func read(t testing.TB, rules ...string) manifest.Manifest {
	t.Helper()
	m, err := manifest.Read("app.yaml", []byte("access:\n- '"+strings.Join(rules, "'\n- '")+"'\n"))
	is.New(t).NoErr(err)
	return m
}

func TestAllows(t *testing.T) {
	m := read(t, "GET datasets", "datasets/*", "POST queries/:id/_run", "GET,PUT comments/**", "users/**", "PUT colors/brandé", "GET teams/*/members/*")
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"GET", "datasets", true},
		{"HEAD", "datasets", true},
		{"POST", "datasets", false},
		{"get", "datasets", false},
		{"", "datasets", false},
		{"GET", "datasets/a", true},
		{"GET", "datasets/acme%3Asales", true},
		{"GET", "datasets/a/b", false},
		{"GET", "data%73ets/a", true}, // the same path
		{"GET", "Datasets", false},
		{"GET", "datasets.", false},
		{"GET", "datasets%20", false},
		{"POST", "queries/1/_run", true},
		{"GET", "queries/1/_run", false},
		{"HEAD", "queries/1/_run", false},
		{"POST", "queries/1/_Run", false},
		{"POST", "queries/1/2/_run", false},
		{"GET", "comments", true},
		{"GET", "comments/a/b/c", true},
		{"PUT", "comments/a", true},
		{"DELETE", "comments/a", false},
		{"PUT", "colors/brand%C3%A9", true},
		{"PUT", "colors/brandé", true},
		{"PUT", "colors/brand%C3%a9+", false},
		{"GET", "teams/a/members/b", true},
		{"GET", "", false},
		{"GET", "/", false},
		// other spellings
		{"GET", "/datasets", false},
		{"GET", "datasets/", false},
		{"GET", "datasets//a", false},
		{"GET", "./datasets", false},
		{"GET", "comments/../tokens", false},
		{"GET", "comments/%2e%2e/tokens", false},
		{"GET", "comments/.%2E/tokens", false},
		{"GET", "comments/..", false},
		{"GET", "comments/...", false},
		{"GET", "comments/..;/tokens", false},
		{"GET", "comments/a;b", false},
		{"GET", "comments/a%3Bb", false},
		{"GET", "comments/a%2Fb", false},
		{"GET", "comments/..%2Ftokens", false},
		{"GET", "comments/..%252Ftokens", false},
		{"GET", "comments/%252e%252e/tokens", false},
		{"GET", `comments/..\tokens`, false},
		{"GET", "comments/%5C", false},
		{"GET", "comments/%00", false},
		{"GET", "comments/a%0Ab", false},
		{"GET", "comments/%", false},
		{"GET", "comments/%zz", false},
		{"GET", "comments/%ff", false},
		{"GET", "comments/\xff", false},
		{"GET", "comments?x", false},
		{"GET", "comments#x", false},
		{"GET", "comments/" + strings.Repeat("a", 2048), false},
		{"GET", "comments" + strings.Repeat("/a", 40), false},
		// closed to all apps
		{"GET", "users/jo", true},
		{"PUT", "users/jo", false},
		{"GET", "users/jo/password", false},
		{"GET", "users/jo/PASSWORD", false},
		{"GET", "users/jo/pass%77ord", false},
		{"GET", "users/jo/password.", false},
		{"GET", "users/jo/superuser", false},
		{"GET", "users/tokens/x", false},
	} {
		if got := m.Allows(c.method, c.path); got != c.want {
			t.Errorf("%s %q: %v", c.method, c.path, got)
		}
	}
	is.New(t).True(!manifest.Manifest{}.Allows("GET", "datasets"))
}

// TestNoRuleGivesRightsOrTellsSecrets: such a rule is an error, and were it there, it would allow nothing.
func TestNoRuleGivesRightsOrTellsSecrets(t *testing.T) {
	for _, call := range []string{
		"GET tokens", "POST tokens", "GET tokens/*", "GET session", "GET sessions/**", "POST login/*", "GET login/:domain/sso", "POST logout",
		"PUT users/*/password", "PUT users/*/superuser", "PUT users/*", "POST users", "DELETE users/jo", "PUT teams/*/members/*", "DELETE teams/*",
		"POST principals/*/_reassign", "GET tenant", "PUT tenant", "GET domains", "GET domains/**", "PUT domains/*", "POST domain-drivers/*/_scan",
		"GET domains-list", "GET apps", "GET apps-list", "GET apps/**", "PUT apps/*/shares/*", "POST apps/*/_deploy", "GET bundles/*", "POST bundles/*/_deploy",
		"GET bundle-list", "POST _restore", "POST _restore-from-file", "POST _import-bundle", "POST _bundle", "GET scim/v2/Users",
		"GET assistants/*/secrets", "GET assistants/*/tokens", "PUT assistants/*/shares/*", "GET Tokens", "GET TENANT",
	} {
		t.Run(call, func(t *testing.T) {
			is := is.New(t)
			_, err := manifest.Read("app.yaml", []byte("access:\n  - "+call))
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "app.yaml:2:5: access[0]: no app may call "+call+","))

			method, pattern, _ := strings.Cut(call, " ")
			m := manifest.Manifest{Access: []manifest.Rule{{Methods: []string{method}, Path: pattern}}}
			is.True(!m.Allows(method, strings.NewReplacer("**", "x", "*", "x", ":domain", "x").Replace(pattern)))
		})
	}
}

// reference decides by the library's own functions and regular expressions, slowly and plainly.
func reference(rules []string, method, escaped string) bool {
	decoded, err := url.PathUnescape(escaped)
	if err != nil || strings.Contains(strings.ToLower(escaped), "%2f") || strings.ContainsAny(decoded, "\\%;?#") || path.Clean("/"+decoded) != "/"+decoded {
		return false
	}
	if strings.ToValidUTF8(decoded, "") != decoded || regexp.MustCompile(`\p{Cc}|(^|/)\.+(/|$)`).MatchString(decoded) {
		return false
	}
	if len(escaped) > 2048 || strings.Count(escaped, "/") >= 32 {
		return false
	}
	if regexp.MustCompile(`(?i)(^|/)(_reassign|_rotate-webhook-secret|password|secrets|shares|superuser|tokens|webhook-tokens)[. ]*(/|$)`).MatchString(decoded) {
		return false
	}
	closed := `(?i)^(_.*|(apps|apps-[^/]*|bundle-[^/]*|bundles|domain-[^/]*|domains|domains-[^/]*|login|logout|scim|sessions?|tenants?|tokens)?[. ]*)(/|$)`
	if regexp.MustCompile(closed).MatchString(decoded) || method != "GET" && regexp.MustCompile(`(?i)^(users|teams|principals)[. ]*(/|$)`).MatchString(decoded) {
		return false
	}
	return slices.ContainsFunc(rules, func(rule string) bool {
		m, p, _ := strings.Cut(rule, " ")
		e := regexp.QuoteMeta(p)
		e = strings.ReplaceAll(e, `/\*\*`, `(/.+)?`)
		e = strings.ReplaceAll(e, `\*`, `[^/]+`)
		return m == method && regexp.MustCompile(`(?s)^`+e+`$`).MatchString(decoded)
	})
}

func FuzzAllows(f *testing.F) {
	rules := []string{"GET datasets/*", "GET datasets", "POST queries/*/_run", "GET a/**", "PUT a/b/**", "GET users/**", "GET x.y/*/c"}
	m := read(f, rules...)
	for _, p := range []string{
		"datasets", "datasets/a", "Datasets/a", "datasets/%61", "datasets/a%2Fb", "datasets//a", "datasets/..", "datasets/%2e%2e", "datasets/%252e",
		"queries/1/_run", "a", "a/b/c", "a/../tokens", "a/b;c", "a/b.", "a/tokens", "a/TOKENS.%20", "users/\u212aen", "users/jo/password", "users/jo/to\u212aens", "x.y/b/c", "xzy/b/c", "", "/", "a%", "a\n",
		"a/%0a", "a/\xff", "a?b", "a#b", `a\b`, "a/.../b", "a/%20", "a/ b", "a//", "./a", "_a",
	} {
		f.Add("GET", p)
		f.Add("PUT", p)
	}
	f.Fuzz(func(t *testing.T, method, p string) {
		if method == "HEAD" {
			return
		}
		if got, want := m.Allows(method, p), reference(rules, method, p); got != want {
			t.Fatalf("%s %q: %v, the reference %v", method, p, got, want)
		}
	})
}
