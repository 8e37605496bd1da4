package httpapi_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// lines are those that the log has got since a length of it.
func (w *world) lines(from int) []string {
	return strings.Split(strings.TrimSpace(w.log.String()[from:]), "\n")
}

// TestRefusedLoginsAreLogged: each is one line at info with its reason and where it came from, and
// says nothing else.
func TestRefusedLoginsAreLogged(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	w.must(t, "admin", "PUT", "/api/users/nora", `{"enabled": false}`)
	w.must(t, "admin", "PUT", "/api/users/tim", `{"locked": true}`)
	w.must(
		t, "admin", "POST", "/api/domains",
		`{"id": "away", "name": "Away", "type": "LDAP", "config": {"url": "ldap://127.0.0.1:1", "baseDN": "dc=x"}}`,
	)
	body := func(tenant, username, password string) string {
		return fmt.Sprintf(`{"tenant": %q, "username": %q, "password": %q}`, tenant, username, password)
	}
	for name, c := range map[string]struct {
		request, body string
		status        int
		reason        string
		fields        string
	}{
		"password": {
			"POST /api/login/local", body("acme", "dana", "wrong"), 401, "the password is wrong",
			"tenant=acme domain=local username=dana",
		},
		"user": {
			"POST /api/login/local", body("acme", "o'brien", password), 401, "there is no such user",
			"tenant=acme domain=local username=o'brien",
		},
		"disabled": {
			"POST /api/login/local", body("acme", "nora", password), 401, "the user is disabled",
			"username=nora",
		},
		"locked": {
			"POST /api/login/local", body("acme", "tim", password), 401, "the user is locked", "username=tim",
		},
		"domain": {
			"POST /api/login/none", body("acme", "dana", password), 401, "Domain not found.",
			"domain=none username=dana",
		},
		"other user": {
			"POST /api/login/away", body("acme", "", password), 401, "the name or the password is empty",
			`domain=away username=""`,
		},
		"directory": {
			"POST /api/login/away", body("acme", "dana", password), 502, "cannot be asked",
			"domain=away username=dana",
		},
		"odd name": {
			"POST /api/login/local", `{"tenant": "acme", "username": "a\n\u202elevel=x", "password": "x"}`, 401,
			"there is no such user", `username="a\\n\\u202elevel=x"`,
		},
		"long name": {
			"POST /api/login/local", body("acme", strings.Repeat("x", 5000), password), 401,
			"there is no such user", "username=" + strings.Repeat("x", 256) + "… ",
		},
		"no sign-on": {"GET /api/login/local/sso?tenant=acme", "", 404, "", "tenant=acme domain=local"},
		"sign-on":    {"GET /api/login/local/callback?tenant=acme&state=x", "", 401, "", "tenant=acme domain=local"},
		"return path": {
			"GET /api/login/local/sso?tenant=acme&returnTo=x", "", 400, "returnTo must be",
			"tenant=acme domain=local",
		},
	} {
		t.Run(name, func(t *testing.T) {
			method, target, _ := strings.Cut(c.request, " ")
			from := len(w.log.String())
			a := w.do(t, "", method, target, c.body, "X-Request-Id: r-7")
			if a.status != c.status {
				t.Fatal(a.status, a.body)
			}
			if a.status == 401 && a.message(t) != "Unable to log in" {
				t.Error(a.body)
			}
			lines := w.lines(from)
			if len(lines) != 1 || !strings.Contains(lines[0], `level=INFO msg="login refused"`) ||
				!strings.Contains(lines[0], c.reason) ||
				!strings.Contains(lines[0], c.fields) || !strings.Contains(lines[0], "request=r-7 client=192.0.2.1") {
				t.Errorf("%q", lines)
			}
		})
	}
	is.True(!strings.Contains(w.log.String(), password))
}

// TestLocksByNetwork: strangers lock a user for their own network alone, which is that of the
// client behind the proxies; a superuser's PUT unlocks. The answers do not tell that, the log does.
func TestLocksByNetwork(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite, func(c *tenantcontent.Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} // httptest's own address
	})
	try := func(tenant, password, client string) answer {
		body := fmt.Sprintf(`{"tenant": %q, "username": "admin", "password": %q}`, tenant, password)
		return w.do(t, "", "POST", "/api/login/local", body, "X-Forwarded-For: 6.6.6.6, "+client)
	}
	const stranger = "203.0.113.9"
	var last answer
	for range 10 {
		last = try("acme", "wrong", stranger)
		is.Equal(last.status, 401)
	}
	locked := try("acme", password, stranger)
	is.Equal(locked.status, 401)
	is.Equal(locked.body, last.body)
	is.Equal(len(locked.header), len(last.header))
	is.True(strings.Contains(w.log.String(), `msg="user locked" tenant=acme username=admin scope=network`))
	is.True(strings.Contains(
		w.log.String(), `reason="the user is locked for this network" tenant=acme domain=local username=admin`,
	))
	is.True(strings.Contains(w.log.String(), "client="+stranger))
	is.Equal(try("acme", password, "203.0.113.10").status, 200)
	is.Equal(try("acme", password, stranger).status, 401)
	w.must(t, "admin", "PUT", "/api/users/admin", `{"locked": false}`)
	is.Equal(try("acme", password, stranger).status, 200)

	// A token that is restricted to a range sees the client, too.
	token := read[struct{ Key string }](
		t, w.must(t, "dana", "POST", "/api/tokens", `{"restrict": "cidr", "cidr": "203.0.113.0/24"}`),
	).Key
	for client, status := range map[string]int{
		"203.0.113.77":         200,
		"198.51.100.1":         401,
		"192.0.2.9":            401,
		"203.0.113.1, unknown": 401,
	} {
		is.Equal(
			w.do(t, "", "GET", "/api/session", "", "Authorization: Bearer "+token, "X-Forwarded-For: "+client).status,
			status,
		)
		is.Equal(
			w.do(
				t, "", "GET", "/api/session", "", "Authorization: Bearer "+token, `Forwarded: for="`+client+`"`,
			).status,
			status,
		)
	}
}

// TestRefusalsTellNothing: neither the status nor the time of a refusal tells who exists, also
// while many log in.
func TestRefusalsTellNothing(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	kinds := map[string]string{
		"password": `{"tenant": "acme", "username": "dana", "password": "wrong"}`,
		"user":     `{"tenant": "acme", "username": "nobody", "password": "wrong"}`,
		"tenant":   `{"tenant": "none", "username": "dana", "password": "wrong"}`,
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	took := map[string][]time.Duration{}
	for range 8 {
		for kind, body := range kinds {
			all.Go(func() {
				begun := time.Now()
				a := w.do(t, "", "POST", "/api/login/local", body)
				mu.Lock()
				defer mu.Unlock()
				took[kind] = append(took[kind], time.Since(begun))
				if a.status != 401 {
					t.Error(kind, a.status)
				}
			})
		}
	}
	all.Wait()
	median := map[string]time.Duration{}
	for kind, times := range took {
		slices.Sort(times)
		is.True(times[0] >= 150*time.Millisecond)
		median[kind] = times[len(times)/2]
	}
	for kind, m := range median {
		if m-median["user"] > 1500*time.Millisecond || median["user"]-m > 1500*time.Millisecond {
			// as slow as a busy machine may be
			t.Error(kind, median)
		}
	}
	t.Log(median)
}

// TestRefusalsDoNotWait: while SQLite writes, no refusal waits for the writer, whether there is a
// failure to count or not. What there is to count is counted.
func TestRefusalsDoNotWait(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.must(t, "admin", "PUT", "/api/users/tim", `{"enabled": false}`)
	writing, written, committed := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		committed <- w.app.InTx(t.Context(), func(context.Context) error {
			close(writing)
			<-written
			return nil
		})
	}()
	<-writing
	answered := make(chan string, 3)
	for _, who := range []string{"dana", "nobody", "tim"} {
		go func() {
			a := w.do(
				t, "", "POST", "/api/login/local",
				`{"tenant": "acme", "username": "`+who+`", "password": "wrong"}`,
			)
			answered <- fmt.Sprint(who, " ", a.status)
		}()
	}
	for range 3 {
		is.True(strings.HasSuffix(<-answered, " 401"))
	}
	close(written)
	is.NoErr(<-committed)
	is.Equal(read[struct{ LoginAttempts int }](t, w.must(t, "admin", "GET", "/api/users/dana", "")).LoginAttempts, 1)
}
