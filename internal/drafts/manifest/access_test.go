package manifest_test

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
)

func read(t testing.TB, rules ...string) manifest.Manifest {
	t.Helper()
	m, err := manifest.Read("app.yaml", []byte("access:\n- '"+strings.Join(rules, "'\n- '")+"'\n"))
	is.New(t).NoErr(err)
	return m
}

func TestAllows(t *testing.T) {
	m := read(
		t, "GET datasets", "datasets/*", "POST queries/:id/_run", "GET,PUT comments/**", "users/**",
		"PUT colors/brandé", "GET teams/*/members/*",
	)
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
		{"GET", "users/jo", true},
		{"PUT", "users/jo", false},
	} {
		if got := m.Allows(c.method, c.path); got != c.want {
			t.Errorf("%s %q: %v", c.method, c.path, got)
		}
	}
	is.New(t).True(!manifest.Manifest{}.Allows("GET", "datasets"))
}

// TestClosedRules: a rule whose calls no app may make is an error, one for an area is not as long
// as another method is open, and Useless names it.
func TestClosedRules(t *testing.T) {
	closed := map[string]string{
		"GET tokens": "credentials", "PUT users/*": "profiles",
		"PUT users/**": "profiles", " apps/**": "programs", "GET apps/**": "programs",
	}
	r := manifest.Reader{Closed: func(method, path string) string { return closed[method+" "+path] }}
	for rule, want := range map[string]string{
		"GET tokens":      "no app may call GET tokens, which grants credentials",
		"PUT users/*":     "no app may call PUT users/*, which grants profiles",
		"GET,PUT users/*": "no app may call PUT users/*, which grants profiles",
		"GET apps/**":     "no app may call GET apps/**, which grants programs",
		"GET users/*":     "",
		"PUT users/**":    "",
	} {
		is := is.New(t)
		_, err := r.Read("app.yaml", []byte("access:\n  - "+rule))
		if want != "" {
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), "app.yaml:2:5: access[0]: "+want)
		} else {
			is.NoErr(err)
		}
		_, err = manifest.Read("app.yaml", []byte("access:\n  - "+rule))
		is.NoErr(err)
	}
	is := is.New(t)
	m := read(t, "GET,PUT users/**", "colors")
	is.Equal(r.Useless(m), []string{
		"The rule PUT users/** in access allows nothing: no app may make these calls, which grant profiles.",
	})
	is.Equal(manifest.Reader{}.Useless(m), nil)
}

// reference decides by the library's own functions and regular expressions, slowly and plainly.
func reference(rules []string, method, escaped string) bool {
	decoded, err := url.PathUnescape(escaped)
	if err != nil || strings.Contains(strings.ToLower(escaped), "%2f") || strings.ContainsAny(decoded, "\\%;?#") ||
		path.Clean("/"+decoded) != "/"+decoded {
		return false
	}
	if strings.ToValidUTF8(decoded, "") != decoded || regexp.MustCompile(`\p{Cc}|(^|/)\.+(/|$)`).MatchString(decoded) {
		return false
	}
	if len(escaped) > 2048 || strings.Count(escaped, "/") >= 32 {
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
	rules := []string{
		"GET datasets/*", "GET datasets", "POST queries/*/_run", "GET a/**", "PUT a/b/**", "GET users/**",
		"GET x.y/*/c",
	}
	m := read(f, rules...)
	for _, p := range []string{
		"datasets", "datasets/a", "Datasets/a", "datasets/%61",
		"datasets/a%2Fb", "datasets//a", "datasets/..", "datasets/%2e%2e", "datasets/%252e",
		"queries/1/_run", "a", "a/b/c", "a/../tokens", "a/b;c", "a/b.", "a/tokens", "a/TOKENS.%20",
		"users/\u212aen", "users/jo/password", "users/jo/to\u212aens", "x.y/b/c", "xzy/b/c", "", "/", "a%", "a\n",
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

// TestLimited: a call is allowed if the manifest and each limit allow it; the rule is the
// manifest's.
func TestLimited(t *testing.T) {
	is := is.New(t)
	m, err := manifest.Read("informer.yaml", []byte("access: ['GET,PUT colors/*', users, 'datasets/**']"))
	is.NoErr(err)
	limits := []manifest.Rule{
		{Methods: []string{"GET"}, Path: "colors/**"}, {Methods: []string{"GET"}, Path: "datasets/a"},
		{Methods: []string{"GET"}, Path: "teams"},
	}
	limited := m.Limited(limits)
	for call, want := range map[string]bool{
		"GET colors/red": true, "HEAD colors/red": true, "PUT colors/red": false, "GET colors": false,
		"GET users": false, "GET datasets/a": true, "GET datasets/b": false, "GET teams": false,
	} {
		method, path, _ := strings.Cut(call, " ")
		is.Equal(limited.Allows(method, path), want)
	}
	rule, _ := limited.Rule("GET", "colors/red")
	is.Equal(rule, m.Access[0])
	is.True(!limited.Limited(nil).Allows("GET", "colors/red"))
	is.True(m.Allows("GET", "users"))
	is.True(limited.Allows("GET", "datasets/a"))
	for _, r := range m.Access {
		parsed, ok := manifest.ParseRule(r.String())
		is.True(ok)
		is.Equal(parsed, r)
	}
	for _, bad := range []string{"", "GET", "colors", "get colors", "GET,,PUT colors", "LIST colors"} {
		_, ok := manifest.ParseRule(bad)
		is.True(!ok)
	}
}
