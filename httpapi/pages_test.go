package httpapi

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// TestPagesEscapeTexts: what people and providers have chosen is text in a page, and an address
// that a browser would run is none.
func TestPagesEscapeTexts(t *testing.T) {
	is := is.New(t)
	const evil = `"><script>alert('1')</script>&`
	written := func(answer rest.Reply) string {
		var page strings.Builder
		is.NoErr(answer.Stream(&page))
		return page.String()
	}
	for name, page := range map[string]string{
		"notice": written(notice{
			Title: evil, Text: []string{evil}, Request: evil, Links: []pageLink{{evil, evil}},
		}.reply(http.StatusOK)),
		"post": written(postPage(evil, evil, url.Values{evil: {evil}})),
		"login": (&loginView{
			loginForm: loginForm{Tenant: evil, Domain: evil, Problem: evil}, Name: evil, Action: evil, Page: evil,
			Next: evil, Logout: evil, User: evil, UserTenant: evil,
			Providers: []pageLink{{evil, evil}}, Passwords: []pageLink{{evil, evil}},
		}).body().String(),
	} {
		if strings.Contains(page, "<script>alert") || strings.Contains(page, "%!") {
			t.Errorf("%s: %s", name, page)
		}
		is.True(strings.Contains(page, "&#34;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;"))
	}
	for to, want := range map[string]string{
		"https://idp.example/sso?a=b:c": "https://idp.example/sso?a=b:c", "HTTP://x/": "HTTP://x/",
		"/api/login?returnTo=a:b": "/api/login?returnTo=a:b", "": "", "#a:b": "#a:b", "a/b:c": "a/b:c",
		"javascript:alert(1)": "#", " javascript:alert(1)": "#", "java\nscript:alert(1)": "#",
		"JavaScript:alert(1)": "#", "data:text/html,x": "#", "vbscript:x": "#", ":x": "#",
	} {
		is.Equal(address(to), want)
	}
	page := written(postPage("Log in", "javascript:alert(1)", nil))
	is.True(strings.Contains(page, `action="#"`))
}
