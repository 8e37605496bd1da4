package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// invited makes a token of an app as tim, who may share it, and returns its id and key.
func invited(t *testing.T, w *world, app, body string) (id, key string) {
	t.Helper()
	w.must(t, "admin", "PUT", "/api/apps/"+app+"/shares/tim", `{"accessLevel": 2}`)
	made := read[struct{ ID, Key string }](t, w.must(t, "tim", "POST", "/api/apps/"+app+"/tokens", body))
	return made.ID, made.Key
}

// baseIn returns the path of the base in a page.
func baseIn(t *testing.T, a answer) string {
	t.Helper()
	m := baseOf.FindStringSubmatch(a.body)
	if m == nil {
		t.Fatalf("no base: %d %s", a.status, a.body)
	}
	return m[1]
}

// TestSharePage: a visitor sees the page with the roles of the token and as nobody, and reads what
// the app may with the rights of who made the token.
func TestSharePage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := sales(t, w, "Sales")
		id, key := invited(t, w, app, `{"roles": ["approver"]}`)
		share := "/api/apps/" + app + "/share?token=" + key
		a := w.must(t, "", "GET", share, "")
		is.True(strings.Contains(a.body, `\"user\":null`))
		is.Equal(contextOf(t, a).Roles, []string{"approver"})
		is.Equal(a.header.Get("Content-Type"), "text/html; charset=utf-8")
		is.Equal(a.header.Get("Cache-Control"), "no-store")
		is.Equal(a.header.Get("Referrer-Policy"), "no-referrer")
		is.True(strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox allow-scripts "))
		is.Equal(a.header.Get("Access-Control-Allow-Origin"), "")
		base := baseIn(t, a)
		secret := key[strings.LastIndex(key, ".")+1:]
		is.True(!strings.Contains(a.body, secret))
		is.True(strings.Contains(w.must(t, "", "GET", share+"&print=portrait", "").body, "size:portrait"))
		is.Equal(w.do(t, "", "GET", share+"&print=x", "").status, 400)
		is.True(strings.Contains(w.must(t, "mia", "GET", share, "").body, `\"user\":null`)) // whoever else is logged in

		get := func(path string, headers ...string) answer { return w.do(t, "", "GET", base+path, "", headers...) }
		is.Equal(get("a.js").body, "export default 1")
		is.Equal(get("server/a.js").status, 404)
		is.Equal(read[page](t, get("api/colors")).Total, 0)
		is.Equal(read[struct{ Username string }](t, get("api/users/dana")).Username, "dana")
		is.Equal(get("api/teams").status, 403)
		deep := get("deep/route", "Accept: text/html")
		is.True(strings.Contains(deep.body, `\"user\":null`))
		is.Equal(baseIn(t, deep), base)
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			is.Equal(w.do(t, "", method, base+"api/colors", "").status, 405)
			is.Equal(w.do(t, "", method, share, "").status, 405)
		}
		is.Equal(w.do(t, "", "GET", strings.Replace(base, app, sales(t, w, "Other"), 1)+"a.js", "").status, 401)
		for _, path := range []string{
			"/api/apps/" + app, "/api/session", "/api/apps/" + app + "/view",
			"/api/apps/" + app + "/view/-/a.js",
		} {
			is.Equal(w.do(t, "", "GET", path, "", "Authorization: Bearer "+key).status, 401)
			is.Equal(w.do(t, "", "GET", path+"?token="+key, "").status, 401)
		}
		is.True(!strings.Contains(w.log.String(), secret))
		is.True(!strings.Contains(w.log.String(), strings.Split(base, "/")[6]))

		token := read[struct{ Requests int }](t, w.must(t, "tim", "GET", "/api/apps/"+app+"/tokens/"+id, ""))
		is.True(token.Requests > 5)
		// visitors are no users
		is.Equal(read[struct{ Total int }](t, w.must(t, "tim", "GET", "/api/apps/"+app+"/stats", "")).Total, 0)
		w.must(
			t, "dana", "PUT", "/api/apps/"+app+"/contents/informer.yaml", "roles: [viewer]",
			"Content-Type: application/yaml",
		)
		is.Equal(len(contextOf(t, w.must(t, "", "GET", share, "")).Roles), 0) // the manifest has the role no more
	})
}

// TestSharePageRefuses: whatever is wrong with a link, the answer is the same.
func TestSharePageRefuses(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app, other := sales(t, w, "Sales"), sales(t, w, "Other")
	_, key := invited(t, w, app, `{}`)
	_, expired := invited(t, w, app, `{"expiresAt": "2026-11-20T20:32:00Z"}`)
	id, revoked := invited(t, w, app, `{}`)
	w.must(t, "tim", "DELETE", "/api/apps/"+app+"/tokens/"+id, "")
	_, afar := invited(t, w, app, `{"restrict": "cidr", "cidr": "203.0.113.0/24"}`)
	gone := sales(t, w, "Gone")
	_, ofGone := invited(t, w, gone, `{}`)
	w.must(t, "admin", "DELETE", "/api/apps/"+gone, "")
	draft := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/apps/"+app+"/_edit", "")).ID
	personal := read[struct{ Key string }](t, w.must(t, "tim", "POST", "/api/tokens", `{}`)).Key
	w.pass(time.Minute)
	parts := strings.Split(key, ".")
	at := func(app, token string) string { return "/api/apps/" + app + "/share?token=" + token }
	want := w.do(t, "", "GET", "/api/apps/"+app+"/share", "")
	is.Equal(want.status, 401)
	is.Equal(want.message(t), "The link or token is not valid or has expired. Ask for another one.")
	for name, target := range map[string]string{
		"empty":     at(app, ""),
		"malformed": at(app, "x"), "another secret": at(app, strings.Join(parts[:3], ".")+"."+strings.Repeat("A", 43)),
		"no such token":  at(app, strings.Replace(key, parts[2], "00000000-0000-7000-8000-000000009999", 1)),
		"another tenant": at(app, strings.Replace(key, "acme", "evil", 1)),
		"of another app": at(other, key), "expired": at(app, expired),
		"revoked": at(app, revoked), "from elsewhere": at(app, afar), "a personal token": at(app, personal),
		"a session": at(app, w.token(t, "tim")), "no such app": at("00000000-0000-7000-8000-000000009999", key),
		"no app": at("x", key), "a deleted app": at(gone, ofGone),
		"a draft": at(draft, key), "a draft, of nobody": at(draft, ""),
		"a deleted app, of nobody": at(gone, ""), "no such app, of nobody": at("x:y", ""),
	} {
		for _, user := range []string{"", "admin"} {
			a := w.do(t, user, "GET", target, "")
			if a.status != want.status || a.body != want.body {
				t.Errorf("%s as %q: %d %s", name, user, a.status, a.body)
			}
		}
	}
	w.must(t, "", "GET", at(app, key), "") // which shows that the others are refused for their faults
}

// TestShareEnds: an open page ends with the token, the app, and the right of who made the token to
// share the app.
func TestShareEnds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := sales(t, w, "Sales")
		one := "/api/apps/" + app
		id, key := invited(t, w, app, `{}`)
		base := baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, ""))
		still := func(status int) {
			t.Helper()
			for _, target := range []string{base + "a.js", base + "api/colors", one + "/share?token=" + key} {
				if a := w.do(t, "", "GET", target, ""); a.status != status {
					t.Errorf("%s: %d %s", target, a.status, a.body)
				}
			}
		}
		for _, change := range [][2][3]string{
			{{"PUT", one + "/shares/tim", `{"accessLevel": 1}`}, {"PUT", one + "/shares/tim", `{"accessLevel": 2}`}},
			{
				{"PUT", "/api/teams/" + teamID + "/members/tim", `{"role": "designer"}`},
				{"PUT", "/api/teams/" + teamID + "/members/tim", `{"role": "publisher"}`},
			},
			{{"PUT", "/api/users/tim", `{"enabled": false}`}, {"PUT", "/api/users/tim", `{"enabled": true}`}},
			{{"DELETE", one, ""}, {"POST", one + "/_restore", ""}},
		} {
			still(200)
			w.must(t, "admin", change[0][0], change[0][1], change[0][2])
			still(401)
			w.must(t, "admin", change[1][0], change[1][1], change[1][2])
		}
		w.pass(30 * 24 * time.Hour) // a page is open for 12 hours, and the link opens it again
		is.Equal(w.do(t, "", "GET", base+"a.js", "").status, 401)
		base = baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, ""))
		still(200)
		w.must(t, "tim", "DELETE", one+"/tokens/"+id, "")
		still(401)

		_, key = invited(t, w, app, `{}`)
		base = baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, ""))
		w.must(t, "admin", "DELETE", "/api/users/tim", "")
		still(401)
		is.Equal(read[page](t, w.must(t, "admin", "GET", one+"/tokens", "")).Total, 0)

		made := read[struct{ Key string }](t, w.must(t, "admin", "POST", one+"/tokens", `{}`))
		key = made.Key
		base = baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, ""))
		is.Equal(w.tokensOf(t, app), 1)
		w.must(t, "admin", "DELETE", one, "")
		w.must(t, "admin", "POST", one+"/_purge", "")
		still(401)
		is.Equal(w.tokensOf(t, app), 0)
	})
}

// tokensOf returns how many tokens of an app of acme are stored.
func (w *world) tokensOf(t *testing.T, app string) (n int) {
	t.Helper()
	ctx, c := tenantcontent.Conn(t.Context(), w.db, "acme")
	is.New(t).NoErr(c.NewRaw(
		"SELECT count(*) FROM tc_tokens WHERE tenant_id = 'acme' AND entity_id = ?", app,
	).Scan(ctx, &n))
	return n
}

// TestAppViewStaysOpen: the addresses of a page work as long as the session with which it was
// opened.
func TestAppViewStaysOpen(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	base := opened(t, w, "mia", app)
	still := func(status int) {
		t.Helper()
		for _, path := range []string{"index.html", "a.js", "api/colors"} {
			is.Equal(w.do(t, "", "GET", base+path, "").status, status)
		}
	}
	for range 12 { // an hour without use would end it
		w.pass(59 * time.Minute)
		still(200)
	}
	w.pass(12 * time.Minute)
	still(401) // the session has ended
	base = opened(t, w, "mia", app)
	still(200)
	w.must(t, "mia", "POST", "/api/logout", "")
	still(401)
}

// TestAppViewPreflight: a page at an opaque origin may send any request below its token, and reads
// why one is refused.
func TestAppViewPreflight(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	app := sales(t, w, "Sales")
	base := opened(t, w, "mia", app)
	origin := "Origin: null"
	for _, path := range []string{"", "a.js", "api/colors", "api/nothing", "api/_server/x/y"} {
		a := w.do(
			t, "", "OPTIONS", base+path, "", origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type",
		)
		is.Equal(a.status, 200)
		is.Equal(a.body, "")
		is.Equal(a.header.Get("Access-Control-Allow-Origin"), "null")
		is.Equal(a.header.Get("Access-Control-Allow-Headers"), "*")
		is.True(strings.Contains(a.header.Get("Access-Control-Allow-Methods"), "POST"))
		is.Equal(a.header.Get("Access-Control-Allow-Credentials"), "")
	}
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "nothing", 404}, {"GET", "a//b", 404}, {"GET", "api/teams", 403},
		{"GET", "api/colors?limit=x", 400}, {"GET", "a%00", 400}, {"GET", "a%FF", 400},
		{"GET", "a.js?q=%zz", 400}, {"POST", "api/colors", 405}, {"PUT", "a.js", 405},
		{"DELETE", "", 405}, {"PATCH", "api/_server/x", 404}, {"GET", "api/users/none", 404},
	} {
		a := w.do(t, "", c.method, base+c.path, "", origin, "Content-Type: application/json")
		if a.status != c.status || a.header.Get("Access-Control-Allow-Origin") != "null" ||
			a.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s %s: %d %v", c.method, c.path, a.status, a.header)
		}
	}
	bad := w.do(t, "", "GET", "/api/apps/"+app+"/view/-/~x/a.js", "", origin)
	is.Equal(bad.status, 401)
	is.Equal(bad.header.Get("Access-Control-Allow-Origin"), "null")
	for _, target := range []string{
		"/api/apps/" + app + "/view/-/a.js", "/api/apps/" + app + "/view", "/api/colors",
		"/api/apps/" + app + "/view/api/~x/colors",
	} {
		a := w.do(t, "mia", "OPTIONS", target, "", origin) // what is not below a token
		is.Equal(a.status, 405)
		is.Equal(a.header.Get("Access-Control-Allow-Origin"), "")
	}
}

// host is a program that authenticates its users itself: by the header X-User, with rights of its
// own.
type host struct {
	disabled map[string]bool
	resumed  int
}

func (h *host) actor(name string) (actor.Actor, error) {
	if name == "" || h.disabled[name] {
		return actor.Actor{}, errs.New(errs.Unauthenticated, "Log in at the host.")
	}
	role := map[string]actor.Role{"dana": actor.Publisher, "mia": actor.Member}[name]
	return actor.Actor{Tenant: "acme", User: name, Teams: map[string]actor.Role{teamID: role}}, nil
}

func (h *host) configure(c *tenantcontent.Config) {
	c.Authenticate = func(r *http.Request) (actor.Actor, error) { return h.actor(r.Header.Get("X-User")) }
	c.Resume = func(_ context.Context, tenant, username string) (actor.Actor, error) {
		h.resumed++
		a, err := h.actor(username)
		if tenant != a.Tenant {
			return actor.Actor{}, errs.New(errs.Unauthenticated, "no")
		}
		return a, err
	}
}

// TestAppViewOfHost: pages work for the users of a host that authenticates them itself, with the
// rights that they have at the host now.
func TestAppViewOfHost(t *testing.T) {
	is := is.New(t)
	h := &host{disabled: map[string]bool{}}
	w := newWorld(t, dbtest.SQLite, h.configure)
	as := func(user, method, target, body string, headers ...string) answer {
		t.Helper()
		return w.must(t, "", method, target, body, append(headers, "X-User: "+user)...)
	}
	app := read[struct{ ID string }](t, as("dana", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`)).ID
	one := "/api/apps/" + app
	for name, text := range map[string]string{"index.html": "<p>", "a.js": "1", "informer.yaml": manifestOfSales} {
		as("dana", "PUT", one+"/contents/"+name, text, "Content-Type: text/html")
	}
	as("dana", "PUT", one+"/shares/mia", `{"accessLevel": 1}`)
	page := as("mia", "GET", one+"/view", "")
	is.Equal(contextOf(t, page).User.Username, "mia")
	base := baseIn(t, page)
	key := read[struct{ Key string }](t, as("dana", "POST", one+"/tokens", `{"roles": ["viewer"]}`)).Key
	visited := baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, ""))
	still := func(base string, status int) {
		t.Helper()
		for _, path := range []string{"a.js", "api/colors"} {
			if a := w.do(t, "", "GET", base+path, "", "X-User: dana"); a.status != status { // whoever the header names
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
	}
	still(base, 200)
	still(visited, 200)
	is.True(h.resumed > 4)
	h.disabled["mia"] = true
	still(base, 401)
	still(visited, 200)
	h.disabled["mia"], h.disabled["dana"] = false, true
	still(base, 200)
	still(visited, 401)
	is.Equal(w.do(t, "", "GET", one+"/share?token="+key, "").status, 401)
	h.disabled["dana"] = false
	as("dana", "DELETE", one+"/shares/mia", "")
	still(base, 404)
	as("dana", "PUT", one+"/shares/mia", `{"accessLevel": 1}`)
	for range 12 { // an hour without use would end them
		w.pass(59 * time.Minute)
		still(base, 200)
		still(visited, 200)
	}
	w.pass(12*time.Minute - time.Second)
	still(base, 200)
	w.pass(2 * time.Second)
	still(base, 401)
	still(visited, 401)
	still(baseIn(t, w.must(t, "", "GET", one+"/share?token="+key, "")), 200)
}

// TestAppViewOfHostWithoutResume: without Resume the refusal to a host's users names what is
// missing, and links show nothing.
func TestAppViewOfHostWithoutResume(t *testing.T) {
	is := is.New(t)
	h := &host{}
	w := newWorld(t, dbtest.SQLite, h.configure, func(c *tenantcontent.Config) { c.Resume = nil })
	dana := "X-User: dana"
	app := read[struct{ ID string }](
		t, w.must(t, "", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`, dana),
	).ID
	w.must(t, "", "PUT", "/api/apps/"+app+"/contents/index.html", "<p>", dana, "Content-Type: text/html")
	is.Equal(w.do(t, "", "GET", "/api/apps/"+app+"/view", "", dana).status, 403)
	key := read[struct{ Key string }](t, w.must(t, "", "POST", "/api/apps/"+app+"/tokens", `{}`, dana)).Key
	is.Equal(w.do(t, "", "GET", "/api/apps/"+app+"/share?token="+key, "").status, 401)
}

// TestSharePageBesideOrigins: where apps have origins of their own, a visitor's page stays in the
// sandbox, and is refused at the app's origin.
func TestSharePageBesideOrigins(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite, withAppOrigin)
	app := sales(t, w, "Sales")
	_, key := invited(t, w, app, `{}`)
	a := w.must(t, "", "GET", "/api/apps/"+app+"/share?token="+key, "")
	is.True(!strings.Contains(a.header.Get("Content-Security-Policy"), "allow-same-origin"))
	base := baseIn(t, a)
	is.Equal(w.do(t, "", "GET", base+"a.js", "").status, 200)
	at, opened := newBrowser(t, w, "mia").open(t, baseURL+"/api/apps/"+app+"/view")
	is.Equal(opened.status, 200)
	token := strings.Split(base, "/")[6]
	is.Equal(w.do(t, "", "GET", at+"a.js", "", "Cookie: __Host-view="+token).status, 401)
}

// TestAppOriginOfHost: a host's user views an app at its origin, for as long as the host lets them.
func TestAppOriginOfHost(t *testing.T) {
	is := is.New(t)
	h := &host{disabled: map[string]bool{}}
	w := newWorld(t, dbtest.SQLite, h.configure, withAppOrigin, func(c *tenantcontent.Config) {
		byHeader := c.Authenticate
		c.Authenticate = func(r *http.Request) (actor.Actor, error) {
			if who, err := r.Cookie("host"); err == nil {
				r.Header.Set("X-User", who.Value)
			}
			return byHeader(r)
		}
	})
	dana := "X-User: dana"
	app := read[struct{ ID string }](
		t, w.must(t, "", "POST", "/api/apps", `{"type": "report", "name": "Sales"}`, dana),
	).ID
	w.must(t, "", "PUT", "/api/apps/"+app+"/contents/index.html", "<p>", dana, "Content-Type: text/html")
	b := newBrowser(t, w, "")
	b.set(b.host(t, baseURL), "host", "dana")
	at, a := b.open(t, baseURL+"/api/apps/"+app+"/view")
	is.Equal(a.status, 200)
	is.Equal(contextOf(t, a).User.Username, "dana")
	is.Equal(b.get(t, at+"index.html").status, 200)
	h.disabled["dana"] = true
	is.Equal(b.get(t, at+"index.html").status, 401)
}
