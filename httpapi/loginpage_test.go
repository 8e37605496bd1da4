package httpapi_test

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

func TestLoginPage(t *testing.T) {
	const browser, form = "Accept: text/html", "Content-Type: application/x-www-form-urlencoded"
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	at := "/api/apps/" + app + "/view"
	page := w.do(t, "", "GET", at+"?print=portrait&tenant=acme", "", browser)
	is.Equal(page.status, 401)
	is.True(strings.HasPrefix(page.header.Get("Content-Type"), "text/html"))
	is.Equal(page.header.Get("Content-Disposition"), "")
	is.True(strings.Contains(page.header.Get("Content-Security-Policy"), "frame-ancestors 'none'"))
	is.True(strings.Contains(page.body, `action="/api/login/local"`))
	is.True(strings.Contains(page.body, `name="returnTo" value="`+at+`?print=portrait"`))
	is.True(strings.Contains(page.body, `name="tenant" value="acme"`))
	is.True(strings.HasPrefix(w.do(t, "", "GET", at, "").header.Get("Content-Type"), "application/json"))
	is.True(strings.HasPrefix(
		w.do(t, "", "GET", at, "", browser, "Authorization: Bearer x").header.Get("Content-Type"),
		"application/json",
	))

	refused := w.do(t, "", "POST", "/api/login/local", "username=mia&password=wrong&tenant=acme&returnTo="+at, form)
	is.Equal(refused.status, 401)
	is.True(strings.Contains(refused.body, "Unable to log in"))
	is.Equal(refused.header.Get("Set-Cookie"), "")
	for _, bad := range []string{"//evil.example", "https://evil.example", "x", `/\evil.example`} {
		is.Equal(w.do(
			t, "", "POST", "/api/login/local", "username=mia&password=x&tenant=acme&returnTo="+bad, form,
		).message(t),
			"returnTo must be a path of this service, such as /apps")
	}
	in := w.do(t, "", "POST", "/api/login/local", "username=mia&password=open+sesame&tenant=acme&returnTo="+at, form)
	is.Equal(in.status, 303)
	is.Equal(in.header.Get("Location"), at)
	is.True(strings.Contains(in.header.Get("Set-Cookie"), "sid="))
	is.Equal(
		w.do(
			t, "", "POST", "/api/login/local", "username=mia&password=x&returnTo="+at, form,
			"Origin: https://evil.example",
		).status,
		403,
	)
}
