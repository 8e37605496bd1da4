package httpapi_test

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	workspacestore "github.com/tenantcontent/tenantcontent/internal/store/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// small are the writes that a tenant without room can make: what removes, logs in, manages people
// and settings, exports (whose file is refused if there is no room for it), or is for other
// tenants.
var small = []string{
	"putColor", "exportColors", "exportBundle", "exportEntries",
	"deployBundle", "deployEntries", "putBundle", "putNotifications", "putNotification",
	"scanDriver", "createDomain", "putDomain", "scanDomain",
	"testNewDomain", "testDomain", "rollDomainKeys", "createDomainToken",
	"finishSAML", "singleLogoutByForm", "receiveLogout", "login",
	"logout", "reassignPrincipal", "putTenant", "createToken",
	"createUser", "putUser", "putPassword", "putSuperuser", "putViewedFeed", "createTeam", "putTeam", "putMember",
	"searchSCIMUsers", "createSCIMUser", "putSCIMUser", "patchSCIMUser",
	"searchSCIMGroups", "createSCIMGroup", "putSCIMGroup", "patchSCIMGroup",
	"restoreApp", "purgeApp", "putAppOwner", "compareApp",
	"putAppShare", "putAppDependency", "putAppTag", "putAppFavorite", "exportApp",
	"heartbeatAppDraft", "createAppToken", "chatWithApp", "suggestAppIcon", "modernizeAppManifest", "cancelAgentRun",
	"createWebhookToken", "rotateWebhookSecret", "chatWithAssistant",
	"confirmAssistantCall", "makeAssistantImage", "putAssistantOwner", "putAssistantDataset",
	"putAssistantReference", "putAssistantShare", "createAssistantToken",
}

// TestRoutesThatGrow: each route that writes either stores more, and is refused when the tenant is
// full, or is among those that go on.
func TestRoutesThatGrow(t *testing.T) {
	for _, r := range httpapi.Routes() {
		if r.Method == "GET" || r.Method == "DELETE" || strings.Contains(r.Pattern, "/view/api") ||
			strings.Contains(r.Pattern, "/_hook") {
			continue
		}
		if httpapi.Grows(r) == slices.Contains(small, r.Name) {
			t.Errorf(
				"%s %s (%s): name it in growing of quota.go if it stores more, or else in small here", r.Method,
				r.Pattern, r.Name,
			)
		}
	}
}

// notTaken is a body that fails the test when it is read.
type notTaken struct{ t *testing.T }

func (u notTaken) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, errors.New("read")
}

// TestFullTenant: a tenant that is full can read, remove and log in; the rest is 507, before its
// bytes if their number is known. Another one goes on.
func TestFullTenant(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		const allowed = 64 << 10
		is, w := is.New(t), newWorld(t, open, func(c *tenantcontent.Config) {
			c.TenantQuota, c.UserQuota = allowed, 40<<10
		})
		big := func(n int) string { return strings.Repeat("x", n) }
		library := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/libraries", `{"name": "Files"}`)).ID
		kept := read[struct{ ID string }](
			t, w.must(t, "admin", "POST", "/api/reports", `{"name": "Kept", "slug": "kept"}`),
		).ID
		w.pass(2 * time.Second) // a measure is valid for a second
		file := "/api/libraries/" + library + "/contents/a.txt"

		known := func(user, method, target string, n int64) answer {
			r := w.request(t, user, method, target, "x", "Content-Type: text/plain")
			r.Body, r.ContentLength = io.NopCloser(notTaken{t}), n
			return w.send(r)
		}
		a := known("mia", "POST", "/api/uploads?filename=a", 40<<10+1)
		is.Equal(a.status, 507)
		is.True(strings.Contains(a.message(t), "Your uploads are full: they hold 0 of the 40960 bytes"))
		is.Equal(a.header.Get("Connection"), "close")
		a = known("admin", "PUT", file, allowed)
		is.Equal(a.status, 507)
		is.True(strings.Contains(a.message(t), "The storage of the tenant is full"))

		unknown := func(user, method, target string, n int) answer {
			r := w.request(t, user, method, target, big(n), "Content-Type: text/plain")
			r.ContentLength = -1
			return w.send(r)
		}
		is.Equal(unknown("mia", "POST", "/api/uploads?filename=a", 40<<10+1).status, 507)
		is.Equal(unknown("admin", "PUT", file, allowed).status, 507)
		is.Equal(unknown("admin", "PUT", file, 20<<10).status/100, 2)
		upload := read[struct{ ID string }](t, unknown("mia", "POST", "/api/uploads?filename=a", 40<<10)).ID
		is.Equal(unknown("mia", "POST", "/api/uploads?filename=b", 1).status, 507)
		// larger than what is left
		is.Equal(
			w.do(
				t, "dana", "POST", "/api/datasets",
				`{"name": "D", "slug": "d", "data": {"x": "`+big(8<<10)+`"}}`,
			).status,
			507,
		)
		w.pass(2 * time.Second)

		var form bytes.Buffer
		form.WriteString("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.bin\"\r\n\r\n" +
			big(8<<10) + "\r\n--b--\r\n")
		is.Equal(
			w.do(
				t, "dana", "POST", "/api/uploads", form.String(),
				"Content-Type: multipart/form-data; boundary=b",
			).status,
			507,
		)

		used := func(user string) (total, own [2]int64) {
			l := read[struct {
				Storage struct {
					Tenant, UserUploads struct{ UsedBytes, AllowedBytes int64 }
				}
			}](t, w.must(t, user, "GET", "/api/limits", "")).Storage
			of := read[struct {
				Storage struct{ UsedBytes, AllowedBytes, UploadBytes, LibraryBytes, RecordBytes int64 }
			}](t, w.must(t, user, "GET", "/api/tenant", "")).Storage
			is.Equal([]int64{of.UsedBytes, of.AllowedBytes}, []int64{l.Tenant.UsedBytes, l.Tenant.AllowedBytes})
			is.Equal(of.UsedBytes, of.UploadBytes+of.LibraryBytes+of.RecordBytes)
			return [2]int64{
				l.Tenant.UsedBytes, l.Tenant.AllowedBytes,
			}, [2]int64{l.UserUploads.UsedBytes, l.UserUploads.AllowedBytes}
		}
		total, own := used("mia")
		is.True(total[0] > 60<<10 && total[0] <= allowed)
		is.Equal(total[1], int64(allowed))
		is.Equal(own, [2]int64{40 << 10, 40 << 10})
		eves, _ := used("eve")
		is.Equal(eves[0], int64(0)) // the other tenant has nothing of it
		is.Equal(unknown("eve", "POST", "/api/uploads?filename=a", 40<<10).status, 201)

		// The operator's quota counts from the next measure on; nobody in the tenant sets it.
		w.must(t, "admin", "PUT", "/api/tenant", `{"name": "Acme"}`)
		few := int64(100)
		_, err := w.app.Tenants.Unchecked().SetQuota(t.Context(), "acme", tenants.Quota{Bytes: &few})
		is.NoErr(err)
		w.pass(2 * time.Second)
		_, err = w.app.Tenants.Update(w.as(t, "acme"), func(t *tenants.Tenant) error {
			t.Quota = tenants.Quota{}
			return nil
		})
		is.NoErr(err)
		total, _ = used("admin")
		is.Equal(total[1], few)
		for _, c := range [][3]string{
			{"PUT", file, "x"}, {"POST", "/api/reports", `{"name": "New"}`},
			{"PUT", "/api/reports/" + kept, `{"name": "New"}`}, {"POST", "/api/apps", `{"name": "App"}`},
			{"POST", "/api/reports/" + kept + "/comments", `{"message": "Hi"}`},
			{"PUT", "/api/users/admin/avatar", gif}, {"POST", "/api/colors-export", `{}`},
		} {
			a := w.do(t, "admin", c[0], c[1], c[2])
			is.Equal(a.status, 507)
			is.True(strings.Contains(a.message(t), "of the 100 bytes that it may have"))
		}
		for _, c := range [][3]string{
			{"GET", file, ""}, {"PUT", "/api/users/mia", `{"displayName": "M"}`},
			{"PUT", "/api/tenant", `{"name": "Acme Inc."}`}, {"DELETE", "/api/reports/" + kept, ""},
			{"DELETE", file, ""}, {"PUT", "/api/colors/red", `{"color": "#ff0000"}`},
		} {
			is.True(w.do(t, "admin", c[0], c[1], c[2]).status < 300)
		}
		_, err = w.app.Tenants.Unchecked().SetQuota(t.Context(), "acme", tenants.Quota{})
		is.NoErr(err)
		w.must(t, "mia", "DELETE", "/api/uploads/"+upload, "")
		is.Equal(unknown("mia", "POST", "/api/uploads?filename=c", 40<<10).status, 201) // there is room at once
		dbtest.CheckStored(t, w.db, "acme")
	})
}

// seldom is a driver of workspaces that are measured by Run once a minute, whatever the engine.
type seldom struct{ workspaces.Driver }

func (d seldom) Bounds() workspaces.Bounds {
	b := d.Driver.Bounds()
	b.Measure = time.Minute
	return b
}

// databases returns a driver of the engine of a database.
func databases(t *testing.T, postgresToo bool) workspaces.Driver {
	t.Helper()
	is, place := is.New(t), t.TempDir()
	if postgresToo {
		c := dbtest.Server(t)
		admin, err := engines.Open(c.URL)
		is.NoErr(err)
		_, err = admin.ExecContext(t.Context(), "CREATE DATABASE full_by_sql")
		is.NoErr(err)
		is.NoErr(admin.Close())
		u, err := url.Parse(c.URL)
		is.NoErr(err)
		u.Path = "/full_by_sql"
		place = u.String()
	}
	d, err := engines.OpenWorkspaces(place, "", 0)
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(d.Close()) })
	return d
}

// TestFullBySQL: what the SQL of apps stores counts some seconds later at most, not when the minute
// of the next measure is over. A tenant that is full by it is refused what stores more, until it
// has removed some; another one goes on.
func TestFullBySQL(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		const allowed = 4 << 20
		is, d := is.New(t), databases(t, strings.HasSuffix(t.Name(), "postgres"))
		w := newWorld(t, open, func(c *tenantcontent.Config) { c.TenantQuota, c.Workspaces = allowed, seldom{d} })
		app := shop(t, w, map[string]string{"server/fill.js": `
			export const POST = async ({ query }) => {
				try {
					await query('CREATE TABLE IF NOT EXISTS t (s text)')
					return await query('INSERT INTO t (s) VALUES ' + Array(200).fill('(CAST($1 AS text))').join(), ['x'.repeat(1500)])
				} catch (e) {
					return { status: e.code === 'full' ? 507 : 502, body: e.code + ': ' + e.message }
				}
			}
			export const GET = async ({ query }) => (await query('SELECT count(*) AS n FROM t'))[0].n
			export const DELETE = ({ query }) => query('DROP TABLE t')`})
		route := "/api/apps/" + app + "/view/api/_server/fill"
		used := func() int64 {
			return read[struct {
				Storage struct{ UsedBytes, WorkspaceBytes int64 }
			}](t, w.must(t, "admin", "GET", "/api/tenant", "")).Storage.WorkspaceBytes
		}
		var a answer
		calls, full := 0, time.Now().Add(20*time.Second) // much less than a minute
		for a.status != 507 {
			a = w.do(t, "dana", "POST", route, "{}")
			if a.status != 507 && a.status != 200 || time.Now().After(full) {
				t.Fatal(a.status, a.body)
			}
			w.pass(2 * time.Second) // what is known of the room is a second old at most
			calls++
			time.Sleep(50 * time.Millisecond)
		}
		is.True(strings.Contains(a.body, "The storage of the tenant is full"))
		is.True(calls > 5) // there was room for these
		is.True(used() > allowed/2)
		is.Equal(w.do(t, "dana", "POST", route, "{}").status, 507)
		is.Equal(w.do(t, "dana", "GET", route, "").status, 200)
		is.Equal(
			w.do(
				t, "admin", "POST", "/api/uploads?filename=a", strings.Repeat("x", 3<<20),
				"Content-Type: text/plain",
			).status,
			507,
		)
		w.must(t, "eve", "POST", "/api/uploads?filename=a", strings.Repeat("x", 3<<20), "Content-Type: text/plain")

		w.must(t, "dana", "DELETE", route, "")
		w.measure(t, d, app)
		w.pass(2 * time.Second)
		w.must(t, "admin", "POST", "/api/uploads?filename=a", strings.Repeat("x", 3<<20), "Content-Type: text/plain")
		is.True(used() < allowed/4)
		dbtest.CheckStored(t, w.db, "acme")
	})
}

// measure stores the size of the SQL database of an app of acme, as a running server does each
// minute.
func (w *world) measure(t *testing.T, d workspaces.Driver, app string) {
	t.Helper()
	is := is.New(t)
	sizes, err := d.Sizes(t.Context(), "acme", []string{app})
	is.NoErr(err)
	is.NoErr(workspacestore.New(w.db).Measured(t.Context(), "acme", sizes))
}

// TestStorageIsExact after a request to each route, a sweep, and the removal of what a delete has
// left.
func TestStorageIsExact(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s := is.New(t), stocked(t, open)
		for _, tenant := range []string{"acme", "evil"} {
			dbtest.CheckStored(t, s.db, tenant)
		}
		for _, route := range httpapi.Routes() {
			if a := s.call(t, who(route), route); a.status >= 400 {
				t.Fatal(route.Name, a.status, a.body)
			}
		}
		s.pass(500 * 24 * time.Hour)
		is.NoErr(s.app.Sweep(t.Context()))
		for _, tenant := range []string{"acme", "evil"} {
			dbtest.CheckStored(t, s.db, tenant)
		}
	})
}
