package httpapi_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// small are the writes that a tenant without room can make: what removes, logs in, manages people
// and settings, exports (whose file is refused if there is no room for it), or is for other
// tenants.
var small = []string{
	"putColor", "exportColors", "exportBundle", "exportEntries", "deployBundle", "deployEntries", "putBundle", "putNotifications", "putNotification",
	"scanDriver", "createDomain", "putDomain", "scanDomain", "testNewDomain", "testDomain", "rollDomainKeys", "createDomainToken",
	"finishSAML", "singleLogoutByForm", "receiveLogout", "login", "logout", "reassignPrincipal", "putTenant", "createToken",
	"createUser", "putUser", "putPassword", "putSuperuser", "putViewedFeed", "createTeam", "putTeam", "putMember",
	"searchSCIMUsers", "createSCIMUser", "putSCIMUser", "patchSCIMUser", "searchSCIMGroups", "createSCIMGroup", "putSCIMGroup", "patchSCIMGroup",
	"restoreApp", "purgeApp", "putAppOwner", "compareApp", "putAppShare", "putAppDependency", "putAppTag", "putAppFavorite", "exportApp",
	"heartbeatAppDraft", "createAppToken", "chatWithApp", "suggestAppIcon", "modernizeAppManifest", "cancelAgentRun",
	"createWebhookToken", "rotateWebhookSecret", "chatWithAssistant", "confirmAssistantCall", "makeAssistantImage", "putAssistantOwner", "putAssistantDataset",
	"putAssistantReference", "putAssistantShare", "createAssistantToken",
}

// TestRoutesThatGrow: each route that writes either stores more, and is refused when the tenant is
// full, or is among those that go on.
func TestRoutesThatGrow(t *testing.T) {
	for _, r := range httpapi.Routes() {
		if r.Method == "GET" || r.Method == "DELETE" || strings.Contains(r.Pattern, "/view/api") || strings.Contains(r.Pattern, "/_hook") {
			continue
		}
		if httpapi.Grows(r) == slices.Contains(small, r.Name) {
			t.Errorf("%s %s (%s): name it in growing of quota.go if it stores more, or else in small here", r.Method, r.Pattern, r.Name)
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
		is, w := is.New(t), newWorld(t, open, func(c *tenantcontent.Config) { c.TenantQuota, c.UserQuota = allowed, 40<<10 })
		big := func(n int) string { return strings.Repeat("x", n) }
		library := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/libraries", `{"name": "Files"}`)).ID
		kept := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/reports", `{"name": "Kept", "slug": "kept"}`)).ID
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
		is.Equal(w.do(t, "dana", "POST", "/api/datasets", `{"name": "D", "slug": "d", "data": {"x": "`+big(8<<10)+`"}}`).status, 507) // larger than what is left
		w.pass(2 * time.Second)

		var form bytes.Buffer
		form.WriteString("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f.bin\"\r\n\r\n" + big(8<<10) + "\r\n--b--\r\n")
		is.Equal(w.do(t, "dana", "POST", "/api/uploads", form.String(), "Content-Type: multipart/form-data; boundary=b").status, 507)

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
			return [2]int64{l.Tenant.UsedBytes, l.Tenant.AllowedBytes}, [2]int64{l.UserUploads.UsedBytes, l.UserUploads.AllowedBytes}
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
		_, err = w.app.Tenants.Update(w.as(t, "acme"), func(t *tenants.Tenant) error { t.Quota = tenants.Quota{}; return nil })
		is.NoErr(err)
		total, _ = used("admin")
		is.Equal(total[1], few)
		for _, c := range [][3]string{
			{"PUT", file, "x"}, {"POST", "/api/reports", `{"name": "New"}`}, {"PUT", "/api/reports/" + kept, `{"name": "New"}`}, {"POST", "/api/apps", `{"name": "App"}`},
			{"POST", "/api/reports/" + kept + "/comments", `{"message": "Hi"}`}, {"PUT", "/api/users/admin/avatar", gif}, {"POST", "/api/colors-export", `{}`},
		} {
			a := w.do(t, "admin", c[0], c[1], c[2])
			is.Equal(a.status, 507)
			is.True(strings.Contains(a.message(t), "of the 100 bytes that it may have"))
		}
		for _, c := range [][3]string{
			{"GET", file, ""}, {"PUT", "/api/users/mia", `{"displayName": "M"}`}, {"PUT", "/api/tenant", `{"name": "Acme Inc."}`}, {"DELETE", "/api/reports/" + kept, ""},
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
