package view_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest/view"
)

func ExampleTokens() {
	tokens, err := view.NewTokens([]byte("a key of 32 bytes, for this alone"))
	if err != nil {
		panic(err)
	}
	opened := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	token := tokens.Make(view.Claims{
		Tenant: "acme", App: "a1", Credential: "s1", User: "jo", Under: "d1", Scope: view.Viewer, Expires: opened.Add(view.Lifetime),
	})
	claims, err := tokens.Check(token, opened.Add(time.Minute))
	fmt.Println(claims.User, claims.For("acme", "a1"), claims.For("acme", "a2"), err)
	_, err = tokens.Check(token, opened.Add(view.Lifetime))
	fmt.Println(err)
	// Output:
	// jo true false <nil>
	// The view of the app has expired: open the app again.
}

func ExampleInject() {
	page := `<!doctype html><html><head><script type="module" src="assets/index.js"></script></head></html>`
	var out bytes.Buffer
	err := view.Inject(strings.NewReader(page), &out, "https://example.com/api/apps/a1/view/-/~token/", json.RawMessage(`{"user":"jo"}`), view.AnyOrientation)
	fmt.Println(regexp.MustCompile(`(?s)\);\(\(\)=>.*?</script>`).ReplaceAllString(out.String(), `);…</script>`), err)
	// Output:
	// <!doctype html><html><head><base href="https://example.com/api/apps/a1/view/-/~token/"><script>window.informer=JSON.parse("{\"user\":\"jo\"}");…</script><script type="module" src="assets/index.js"></script></head></html> <nil>
}

func ExamplePolicy() {
	policy := view.Policy("https://example.com/api/apps/a1/view/", "")
	for _, directive := range strings.Split(policy, "; ")[:3] {
		fmt.Println(directive)
	}
	// Output:
	// sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads
	// default-src https://example.com/api/apps/a1/view/ 'unsafe-inline' 'unsafe-eval' blob: data:
	// frame-src 'none'
}
