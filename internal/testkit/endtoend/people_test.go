package endtoend_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// personDN returns the DN of a person in the directory of staff.
func personDN(name string) string { return slapd.LDAP().PersonDN(name) }

// team returns the id of the only team of a domain.
func (c *caller) team(t testing.TB, domain string) string {
	t.Helper()
	list := read[struct {
		Embedded map[string][]struct{ ID, Domain string } `json:"_embedded"`
	}](t, c.must(t, "GET", "/api/teams", ""))
	id := ""
	for _, team := range list.Embedded["inf:team"] {
		if team.Domain == domain {
			is.New(t).Equal(id, "")
			id = team.ID
		}
	}
	is.New(t).True(id != "")
	return id
}

// belongings are the ids of content of a user.
type belongings struct{ report, comment, upload, token string }

// settle makes a user a designer in their team, and creates one of each as the user.
func (w *world) settle(t testing.TB, domain, name string, c *caller) (b belongings) {
	t.Helper()
	team := w.admin.team(t, domain)
	w.admin.must(t, "PUT", "/api/teams/"+team+"/members/"+name, `{"role": "designer"}`)
	b.report = c.create(t, "/api/reports", `{"name": "Sales", "slug": "sales"}`)
	b.comment = c.create(t, "/api/reports/"+b.report+"/comments", `{"message": "Look, @mia and @`+name+`"}`)
	b.upload = c.create(t, "/api/uploads?filename=f.txt", `"hello"`)
	b.token = read[struct{ Key string }](t, c.must(t, "POST", "/api/tokens", `{"notes": "nightly"}`)).Key
	return b
}

// has checks that all of it belongs to the user of the caller.
func (c *caller) has(t testing.TB, name string, b belongings) {
	t.Helper()
	is := is.New(t)
	is.Equal(c.who(t), name)
	is.Equal((&caller{c.w, b.token}).who(t), name)
	report := read[struct{ OwnerID, NaturalID string }](t, c.must(t, "GET", "/api/reports/"+b.report, ""))
	is.Equal(report.OwnerID, name)
	is.Equal(report.NaturalID, name+":sales")
	c.must(t, "PUT", "/api/reports/"+b.report, `{"description": "mine"}`)
	is.Equal(read[struct{ UserID string }](t, c.must(t, "GET", "/api/comments/"+b.comment, "")).UserID, name)
	c.must(t, "GET", "/api/uploads/"+b.upload, "")
	member := read[struct{ Role string }](
		t, c.must(t, "GET", "/api/teams/"+c.w.admin.team(t, "staff")+"/members/"+name, ""),
	)
	is.Equal(member.Role, "designer")
}

// hire adds a person to a running directory.
func hire(t testing.TB, s *slapd.Server, name, password string) {
	t.Helper()
	r := ldap.NewAddRequest(personDN(name), nil)
	for attribute, value := range map[string]string{
		"objectClass":  "inetOrgPerson",
		"uid":          name,
		"cn":           name,
		"sn":           name,
		"userPassword": password,
	} {
		r.Attribute(attribute, []string{value})
	}
	is.New(t).NoErr(s.Change(func(c *ldap.Conn) error { return c.Add(r) }))
}

// TestRename: a person who is renamed in the directory is the same user with the new name, stays
// logged in and keeps all content. People can exchange names.
func TestRename(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.admin.scan(t, id, "")
		jo, mia := w.in(t, "acme", id, "jo", secretOf("jo")), w.in(t, "acme", id, "mia", secretOf("mia"))
		b := w.settle(t, id, "jo", jo)
		jo.has(t, "jo", b)
		was := w.admin.user(t, "jo")

		is.NoErr(s.Rename(personDN("jo"), "uid=joanna"))
		renamed := w.admin.scan(t, id, "")
		is.Equal(renamed.Users, counts{Updated: 1, Unchanged: 3})
		is.Equal(renamed.Memberships, struct{ Added, Removed int }{})
		jo.has(t, "joanna", b) // the old session and the old token have the new name
		w.in(t, "acme", id, "joanna", secretOf("jo")).has(t, "joanna", b)
		is.Equal(w.admin.do(t, "GET", "/api/users/jo", "").status, http.StatusNotFound)
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t)
		was.Username = "joanna"
		is.Equal(w.admin.user(t, "joanna"), was)
		is.Equal(w.admin.scan(t, id, "").Users, counts{Unchanged: 4})

		// A login is enough, too: here with a name that another person has just given up.
		is.NoErr(s.Rename(personDN("joanna"), "uid=jo"))
		w.in(t, "acme", id, "jo", secretOf("jo")).has(t, "jo", b)

		is.NoErr(s.Rename(personDN("jo"), "uid=between"))
		is.NoErr(s.Rename(personDN("mia"), "uid=jo"))
		is.NoErr(s.Rename(personDN("between"), "uid=mia"))
		is.Equal(w.admin.scan(t, id, "").Users, counts{Updated: 2, Unchanged: 2})
		jo.has(t, "mia", b)
		is.Equal(mia.who(t), "jo")
		is.Equal(mia.do(t, "PUT", "/api/reports/"+b.report, `{"description": "not mine"}`).status, http.StatusForbidden)
		is.Equal(mia.do(t, "GET", "/api/uploads/"+b.upload, "").status, http.StatusNotFound)
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t) // mia now has that name
		is.Equal(w.in(t, "acme", id, "jo", secretOf("mia")).who(t), "jo")
	})
}

// TestGone: a person who leaves is logged out by the scan, and a new person with that name is not
// the same user.
func TestGone(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.admin.scan(t, id, "")
		jo := w.in(t, "acme", id, "jo", secretOf("jo"))
		b := w.settle(t, id, "jo", jo)
		token := &caller{w, b.token}
		is.Equal(token.who(t), "jo")

		is.NoErr(s.Delete(personDN("jo")))
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t) // before any scan
		gone := w.admin.scan(t, id, "")
		is.Equal(gone.Users, counts{Disabled: 1, Unchanged: 3})
		is.Equal(gone.Memberships, struct{ Added, Removed int }{}) // the memberships are kept
		is.True(!w.admin.user(t, "jo").Enabled)
		jo.do(t, "GET", "/api/session", "").stranger(t)
		token.do(t, "GET", "/api/session", "").stranger(t)
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t)
		// no content is lost
		is.Equal(read[struct{ OwnerID string }](t, w.admin.must(t, "GET", "/api/reports/"+b.report, "")).OwnerID, "jo")
		is.Equal(w.admin.scan(t, id, "").Users, counts{Unchanged: 4})

		hire(t, s, "jo", "another's")
		taken := w.admin.scan(t, id, "")
		is.Equal(taken.Users, counts{Unchanged: 4})
		is.Equal(len(taken.Warnings), 1)
		is.True(strings.HasPrefix(taken.Warnings[0], "jo ("))
		w.login(t, "acme", id, "jo", "another's").stranger(t)
		is.True(!w.admin.user(t, "jo").Enabled)

		w.admin.must(t, "PUT", "/api/users/jo", `{"sourceId": null}`) // a superuser confirms that it is the same person
		is.Equal(w.admin.scan(t, id, "").Users, counts{Updated: 1, Unchanged: 3})
		back := w.in(t, "acme", id, "jo", "another's")
		back.must(t, "PUT", "/api/reports/"+b.report, `{"description": "mine again"}`)

		a := w.admin.must(t, "POST", "/api/principals/jo/_reassign", `{"to": "mia"}`)
		is.True(strings.Contains(a.body, b.report))
		is.Equal(read[struct{ OwnerID string }](t, w.admin.must(t, "GET", "/api/reports/"+b.report, "")).OwnerID, "mia")
	})
}

// TestTaken: a name of a local user cannot be used by the directory.
func TestTaken(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, open)
		w.admin.must(t, "POST", "/api/users", `{"username": "Mia", "password": "`+password+`", "superuser": true}`)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.login(t, "acme", id, "mia", secretOf("mia")).stranger(t)
		w.login(t, "acme", id, "Mia", secretOf("mia")).stranger(t)

		done := w.admin.scan(t, id, "")
		is.Equal(done.Users, counts{Created: 3})
		is.Equal(done.Memberships, struct{ Added, Removed int }{1, 0})
		is.Equal(len(done.Warnings), 1)
		is.True(strings.Contains(done.Warnings[0], "the user Mia of the domain local"))
		is.True(strings.Contains(w.log.String(), "the name is that of the user Mia of the domain local"))
		w.login(t, "acme", id, "mia", secretOf("mia")).stranger(t)
		mia := w.admin.user(t, "Mia")
		is.Equal(mia.Domain, "local")
		is.True(mia.Superuser && mia.SourceID == "" && mia.Email == "")
		is.Equal(w.in(t, "acme", "local", "mia", password).who(t), "Mia")

		is.NoErr(s.Rename(personDN("jo"), "uid=admin")) // nor by a rename
		done = w.admin.scan(t, id, "")
		is.Equal(len(done.Warnings), 2)
		is.Equal(done.Users, counts{Unchanged: 3})
		is.Equal(w.in(t, "acme", id, "admin", secretOf("jo")).who(t), "jo") // the user keeps the old one
	})
}
