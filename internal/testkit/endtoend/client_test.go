package endtoend_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// client is a browser without scripts: it has cookies, follows redirects, and sends the page of a
// form.
type client struct {
	http http.Client
	at   *url.URL // the current address
	stop string   // end of a path to which redirects are not followed, or ""
}

func newClient(t testing.TB) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	is.New(t).NoErr(err)
	c := &client{at: &url.URL{}}
	c.http = http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if c.stop != "" && strings.HasSuffix(r.URL.Path, c.stop) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return c
}

// get opens an address, or follows a redirect.
func (c *client) get(t testing.TB, address string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	is.New(t).NoErr(err)
	return c.send(t, r)
}

// post submits a form of the current page.
func (c *client) post(t testing.TB, address string, form url.Values) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	is.New(t).NoErr(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", c.at.Scheme+"://"+c.at.Host)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if r.URL.Host == c.at.Host {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return c.send(t, r)
}

func (c *client) send(t testing.TB, r *http.Request) answer {
	t.Helper()
	res, err := c.http.Do(r)
	is.New(t).NoErr(err)
	c.at = res.Request.URL
	return received(t, res)
}

// sentTo opens an address and returns the last redirect, whose path must end with end.
func (c *client) sentTo(t testing.TB, address, end string) *url.URL {
	t.Helper()
	c.stop = end
	defer func() { c.stop = "" }()
	a := c.get(t, address)
	to, err := url.Parse(a.header.Get("Location"))
	is.New(t).NoErr(err)
	if !strings.HasSuffix(to.Path, end) {
		t.Fatalf("not sent to %s: %d %s", end, a.status, a.body)
	}
	return to
}

// who returns the username of the browser's session at the server, or "".
func (c *client) who(t testing.TB, w *world) string {
	t.Helper()
	a := c.get(t, w.url+"/api/session")
	if a.status == http.StatusUnauthorized {
		return ""
	}
	return read[struct{ User string }](t, a).User
}

// altered returns an address with another value of a query parameter.
func altered(u *url.URL, name, value string) string {
	q, other := u.Query(), *u
	q.Set(name, value)
	other.RawQuery = q.Encode()
	return other.String()
}

// sso returns the address at which a login begins.
func (w *world) sso(tenant, domain, returnTo string) string {
	return w.url + "/api/login/" + domain + "/sso?" + url.Values{"tenant": {tenant}, "returnTo": {returnTo}}.Encode()
}
