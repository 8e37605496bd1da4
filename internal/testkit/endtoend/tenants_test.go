package endtoend_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// seen returns all that a tenant's superuser sees of users, teams and domains.
func (c *caller) seen(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{
		"/api/users?limit=1000", "/api/teams?limit=1000", "/api/domains-list", "/api/domains-content",
		"/api/principal-list", "/api/reports",
	} {
		all[path] = c.must(t, "GET", path, "").body
	}
	return all
}

// sees checks that it has not changed.
func (c *caller) sees(t testing.TB, was map[string]string) {
	t.Helper()
	for path, now := range c.seen(t) {
		if now != was[path] {
			t.Errorf("%s: %s\nwas %s", path, now, was[path])
		}
	}
}

// TestTenants: two tenants with the same directory, the same domain id and the same people are
// independent.
func TestTenants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, open)
		eve := w.in(t, "evil", "local", "admin", password)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.admin.scan(t, id, "")
		jo := w.in(t, "acme", id, "jo", secretOf("jo"))
		b := w.settle(t, id, "jo", jo)
		was := w.admin.seen(t)

		for _, path := range []string{
			"/api/domains/staff/driver/_scan", "/api/domain-drivers/LDAP/_scan?domain=staff",
		} {
			is.True(eve.do(t, "POST", path, "").status >= 400)
		}
		is.Equal(eve.do(t, "GET", "/api/domains/staff", "").status, http.StatusNotFound)
		is.Equal(eve.do(t, "GET", "/api/domains/staff/scan", "").status, http.StatusNotFound)
		is.Equal(eve.do(t, "DELETE", "/api/domains/staff", "").status, http.StatusNotFound)
		is.Equal(eve.do(t, "PUT", "/api/domains/staff", `{"id": "staff", "type": "LDAP"}`).status, http.StatusNotFound)
		w.login(t, "evil", id, "jo", secretOf("jo")).stranger(t)
		is.Equal(
			len(read[struct{ Domains []scanned }](
				t, eve.must(t, "POST", "/api/domain-drivers/LDAP/_scan", ""),
			).Domains),
			0,
		)

		is.Equal(eve.domain(t, "Staff", "LDAP", s.Config(s.URL, nil)), id)
		is.Equal(eve.scan(t, id, "").Users, counts{Created: 4})
		is.NoErr(s.Rename(personDN("jo"), "uid=joanna"))
		is.NoErr(s.Delete(personDN("mia")))
		is.Equal(eve.scan(t, id, "").Users, counts{Updated: 1, Disabled: 1, Unchanged: 2})
		theirs := w.in(t, "evil", id, "joanna", secretOf("jo"))
		is.Equal(theirs.do(t, "GET", "/api/reports/"+b.report, "").status, http.StatusNotFound)
		w.admin.sees(t, was)
		eve.must(t, "DELETE", "/api/domains/staff", "")
		theirs.do(t, "GET", "/api/session", "").stranger(t)
		w.admin.sees(t, was)
		jo.has(t, "jo", b)
		is.Equal(w.admin.scan(t, id, "").Users, counts{Updated: 1, Disabled: 1, Unchanged: 2})
		jo.has(t, "joanna", b)
	})
}

// TestDeleteDomain: a domain is deleted with its users and teams. Their content is assigned to the
// user that deletes it.
func TestDeleteDomain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.admin.scan(t, id, "")
		jo, mia := w.in(t, "acme", id, "jo", secretOf("jo")), w.in(t, "acme", id, "mia", secretOf("mia"))
		b := w.settle(t, id, "jo", jo)
		team := w.admin.team(t, id)

		is.Equal(jo.do(t, "DELETE", "/api/domains/staff", "").status, http.StatusForbidden)
		w.admin.must(t, "PUT", "/api/users/mia/superuser", `{"superuser": true}`)
		mia.do(t, "DELETE", "/api/domains/staff", "").refused(t, http.StatusConflict) // she would be deleted, too
		jo.has(t, "jo", b)
		w.admin.do(t, "DELETE", "/api/domains/local", "").refused(t, http.StatusBadRequest)

		w.admin.must(t, "DELETE", "/api/domains/staff", "")
		report := read[struct{ OwnerID, NaturalID string }](t, w.admin.must(t, "GET", "/api/reports/"+b.report, ""))
		is.Equal(report.OwnerID, "admin")
		is.Equal(report.NaturalID, "admin:sales")
		is.Equal(len(w.admin.users(t, id)), 0)
		for _, path := range []string{
			"/api/domains/staff", "/api/users/jo", "/api/teams/" + team, "/api/domains/staff/scan",
			"/api/uploads/" + b.upload,
		} {
			is.Equal(w.admin.do(t, "GET", path, "").status, http.StatusNotFound)
		}
		for _, c := range []*caller{jo, mia, {w, b.token}} {
			c.do(t, "GET", "/api/session", "").stranger(t)
		}
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t)

		is.Equal(w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil)), id)
		is.Equal(w.admin.scan(t, id, "").Users, counts{Created: 4})
		again := w.in(t, "acme", id, "jo", secretOf("jo"))
		is.Equal(again.do(t, "PUT", "/api/reports/"+b.report, `{"description": "mine"}`).status, http.StatusForbidden)
		is.Equal(again.do(t, "PUT", "/api/comments/"+b.comment, `{"message": "mine"}`).status, http.StatusForbidden)
		// another jo wrote it
		is.True(strings.Contains(again.must(t, "GET", "/api/comments/"+b.comment, "").body, `"inf:user":null`))
		jo.do(t, "GET", "/api/session", "").stranger(t)
	})
}

// TestActiveDirectory: names, the flag of disabled accounts, and nested groups.
func TestActiveDirectory(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		tree := slapd.AD()
		jo := tree.Person(slapd.Person{Name: "jo", Given: "Jo", Family: "Doe", Mail: "jo@example.org"})
		mia := tree.Person(slapd.Person{Name: "mia"})
		old := tree.Person(slapd.Person{Name: "old", Disabled: true})
		tree.Group("everybody", "", mia, tree.Group("writers", "", jo, old))
		is, s, w := is.New(t), slapd.Test(t, tree), newWorld(t, open)
		id := w.admin.domain(t, "Office", "AD", s.Config(s.URL, map[string]any{"startTLS": true}))
		done := w.admin.scan(t, id, "")
		is.Equal(done.Teams, counts{Created: 2})
		is.Equal(done.Memberships.Added, 5) // jo and old are members of all, too
		is.Equal(done.Warnings, []string{})
		users := w.admin.users(t, id)
		is.Equal(len(users), 3)
		is.True(users["jo"].Enabled && users["mia"].Enabled && !users["old"].Enabled)
		is.Equal(users["jo"].DisplayName, "Jo Doe")
		is.Equal(w.in(t, "acme", id, "jo", secretOf("jo")).who(t), "jo")
		w.login(t, "acme", id, "jo", "").stranger(t)
		w.login(t, "acme", id, "old", secretOf("old")).stranger(t)

		session := w.in(t, "acme", id, "mia", secretOf("mia"))
		is.NoErr(s.Set(mia, "userAccountControl", "514"))
		is.NoErr(s.Set(old, "userAccountControl", "512"))
		is.NoErr(s.Set(jo, "sAMAccountName", "joanna"))
		is.Equal(w.admin.scan(t, id, "").Users, counts{Updated: 2, Disabled: 1})
		session.do(t, "GET", "/api/session", "").stranger(t)
		is.Equal(w.in(t, "acme", id, "old", secretOf("old")).who(t), "old")
		is.Equal(w.in(t, "acme", id, "joanna", secretOf("jo")).who(t), "joanna")
	})
}
