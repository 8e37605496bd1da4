package endtoend_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/samltest"
)

// chromium finds the program as .ci/needs.sh does: only in CHROMIUM if that is set, else in PATH
// and in the folder of macOS.
func chromium() string {
	names := []string{
		"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	}
	if only := os.Getenv("CHROMIUM"); only != "" {
		names = []string{only}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

var errNoBrowser = errors.New("no Chromium found: `make test` installs it, as does `apt-get install chromium`; or " +
	"name the program in CHROMIUM")

// newBrowser starts a browser that ends with the test. Without one it skips the test, or fails it:
// see needs.Start.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	path := chromium()
	if path == "" {
		needs.Start(t, errNoBrowser, errNoBrowser)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, chromedp.IgnoreCertErrors) // root cannot have a sandbox
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	ctx, leave := chromedp.NewContext(ctx)
	t.Cleanup(leave)
	return ctx
}

// cookies returns all cookies of the browser, by the beginnings of their names.
func cookies(ctx context.Context, t *testing.T) map[string]network.Cookie {
	t.Helper()
	all, err := chromedp.Run(ctx, func(ctx context.Context, tab *chromedp.Target) (storage.GetCookiesResult, error) {
		return cdp.Call(ctx, tab, storage.GetCookies, storage.GetCookiesParams{})
	})
	is.New(t).NoErr(err)
	found := map[string]network.Cookie{}
	for _, c := range all.Cookies {
		name, _, _ := strings.Cut(c.Name, "-")
		found[name] = *c
	}
	return found
}

// landed waits until the browser is at a page of the server, and returns its text. The page's
// scripts must not see cookies.
func landed(ctx context.Context, t *testing.T, at string) string {
	t.Helper()
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		there, err := chromedp.Run(
			ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && location.href === "`+at+`"`),
		)
		if err != nil || !there { // a page that is being left does not answer
			continue
		}
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.cookie + document.body.innerText`))
		is.New(t).NoErr(err)
		return text
	}
	t.Fatal("the browser did not come to", at)
	return ""
}

// shows waits until the browser shows a text.
func shows(ctx context.Context, t *testing.T, want string) {
	t.Helper()
	text := ""
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		now, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
		if err != nil { // a page that is being left does not answer
			continue
		}
		if text = now; strings.Contains(text, want) {
			return
		}
	}
	t.Fatalf("the browser does not show %q: %s", want, text)
}

// TestPage: the page at / is shown in a real browser, with its style and without other requests,
// and its links work.
func TestPage(t *testing.T) {
	is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
	is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.url+"/")))
	text := landed(ctx, t, w.url+"/")
	is.True(strings.Contains(text, "Content service"))
	for script, want := range map[string]string{
		`document.documentElement.lang`: "en",
		`document.title`:                "Content service",
		// the policy allows the style
		`getComputedStyle(document.body).maxWidth !== "none" ? "styled" : "no"`:                                 "styled",
		`String(performance.getEntriesByType("resource").filter(e => !e.name.endsWith("/favicon.ico")).length)`: "0",
		`String(document.querySelectorAll("main h1").length)`:                                                   "1",
	} {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script))
		is.NoErr(err)
		is.Equal(got, want)
	}
	is.NoErr(chromedp.Do(ctx, chromedp.Click(`a[href="`+w.url+`/api"]`)))
	is.True(strings.Contains(landed(ctx, t, w.url+"/api"), "inf:login"))
}

// TestBrowser: the cookies have their purposes in a real browser.
func TestBrowser(t *testing.T) {
	t.Run("OIDC", func(t *testing.T) {
		is, ctx, p, w := is.New(t), newBrowser(t), oidctest.New(t), newWorld(t, dbtest.SQLite)
		p.Ask = true
		p.EditDocument = func(d oidctest.Object) { d["end_session_endpoint"] = p.URL + "/end" }
		p.Broken["/end"] = func(out http.ResponseWriter, r *http.Request) {
			back := r.URL.Query()
			http.Redirect(
				out, r, back.Get("post_logout_redirect_uri")+"&state="+url.QueryEscape(back.Get("state")),
				http.StatusFound,
			)
		}
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(p))
		is.NoErr(chromedp.Do(
			ctx, chromedp.Navigate(w.sso("acme", id, "/api/session?x=1")), chromedp.WaitVisible("#agree"),
		))
		kept := cookies(ctx, t)["sso"]
		is.True(kept.HTTPOnly && kept.SameSite == network.CookieSameSiteLax)
		is.NoErr(chromedp.Do(ctx, chromedp.Click("#agree")))
		text := landed(ctx, t, w.url+"/api/session?x=1")
		is.Equal(read[struct{ User string }](t, answer{body: text}).User, "jo")
		all := cookies(ctx, t)
		is.Equal(len(all), 1) // the cookie of the login was used up
		sid := all["sid"]
		is.True(sid.HTTPOnly && sid.Session && sid.SameSite == network.CookieSameSiteLax && sid.Domain == "localhost")

		// From the log-in page there and back to it. A failed login is a page with a link for
		// another try.
		agree := chromedp.Click("#agree")
		is.NoErr(chromedp.Do(
			ctx, chromedp.Navigate(w.url+"/api/login?tenant=acme"),
			chromedp.Click(`a[href*="/api/login/work/sso"]`), agree,
		))
		is.True(strings.Contains(landed(ctx, t, w.url+"/api/login?tenant=acme"), "You are jo of the tenant acme."))
		p.Be(oidctest.Object{"sub": "0018", "preferred_username": "admin"}) // a user that exists here
		is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.sso("acme", id, "/api/session?x=2")), agree))
		shows(ctx, t, "The log-in was refused.")
		shows(ctx, t, "name this request")
		p.Be(oidctest.Object{"sub": "0017", "preferred_username": "jo"})
		is.NoErr(chromedp.Do(ctx, chromedp.Click(`a[href*="/api/login/work/sso"]`), agree))
		landed(ctx, t, w.url+"/api/session?x=2")
		is.NoErr(chromedp.Do(
			ctx, chromedp.Navigate(w.url+"/api/login?tenant=acme"),
			chromedp.Click(`form[action="/api/logout"] button`),
		))
		shows(ctx, t, "You are logged out")
		is.Equal(p.Count("/end"), 1) // the page after a redirect of that form
		is.Equal(cookies(ctx, t)["sid"], network.Cookie{})

		// Or the page that requested it gets the error.
		w.host(map[string]string{"/hello": "<!DOCTYPE html><title>Hello</title><p>Hello</p>"})
		p.Be(oidctest.Object{"sub": "0018", "preferred_username": "admin"})
		is.NoErr(chromedp.Do(ctx, chromedp.Navigate(w.sso("acme", id, "/hello")+"&errors=return"), agree))
		shows(ctx, t, "Hello")
		at, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + location.search`))
		is.NoErr(err)
		is.True(strings.HasPrefix(at, "/hello?error=login_refused&request="))
	})
	for name, secure := range map[string]*tls.Config{"SAML": {}, "SAML over plain HTTP": nil} {
		t.Run(name, func(t *testing.T) {
			is, ctx, p := is.New(t), newBrowser(t), samltest.New(t)
			w := serve(t, dbtest.SQLite(t), tenantcontent.NewSecretKey(), secure)
			p.PutPerson(t, samlJo)
			id := w.admin.entry(t, p, "acme")
			is.NoErr(chromedp.Do(
				ctx, chromedp.Navigate(w.sso("acme", id, "/api/session")),
				chromedp.WaitVisible("input[name=user]"),
			))
			kept := cookies(ctx, t)["sso"]
			is.NoErr(chromedp.Do(ctx, chromedp.SendKeys("input[name=user]", samlJo.Name),
				chromedp.SendKeys("input[name=password]", samlJo.Password), chromedp.Submit("input[name=user]")))
			if secure == nil { // then a browser sends no cookie with a form of another site
				is.True(kept.HTTPOnly && kept.SameSite == network.CookieSameSiteLax)
				is.True(strings.Contains(
					landed(ctx, t, w.url+"/api/login/"+id+"/acs?tenant=acme"),
					"has not brought back the cookie",
				))
				is.Equal(cookies(ctx, t)["sid"], network.Cookie{})
				is.True(strings.Contains(w.log.String(), "browsers bring it only over https"))
				return
			}
			is.True(kept.HTTPOnly && kept.Secure && kept.SameSite == network.CookieSameSiteNone)
			text := landed(ctx, t, w.url+"/api/session")
			is.Equal(read[struct{ User string }](t, answer{body: text}).User, "jo")
			all := cookies(ctx, t)
			is.Equal(all["sso"], network.Cookie{})
			sid := all["sid"]
			is.True(sid.HTTPOnly && sid.Secure && sid.Session && sid.SameSite == network.CookieSameSiteLax)
			_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`fetch("/api/logout", {method: "POST"}), true`))
			is.NoErr(err)
			for cookies(ctx, t)["sid"].Value != "" && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			is.NoErr(chromedp.Do(
				ctx, chromedp.Navigate(w.url+"/api/login?tenant=acme"),
				chromedp.Click(`a[href*="/api/login/entry/sso"]`),
			))
			shows(ctx, t, "You are jo of the tenant acme.") // the provider knows the browser
			landed(ctx, t, w.url+"/api/login?tenant=acme")
		})
	}
}
