package endtoend_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// counts are the changes of users or teams by a scan.
type counts struct{ Created, Updated, Disabled, Unchanged int }

// scanned is the result of a scan of a domain.
type scanned struct {
	ID           string
	ScannedAt    *string
	Users, Teams counts
	Memberships  struct{ Added, Removed int }
	Warnings     []string
}

// scan scans a domain; the scan must succeed.
func (c *caller) scan(t testing.TB, domain, query string) scanned {
	t.Helper()
	a := c.must(t, "POST", "/api/domains/"+domain+"/driver/_scan"+query, "")
	return read[struct{ Domains []scanned }](t, a).Domains[0]
}

// run is the state of a scan.
type run struct {
	Phase, LastError      string
	FinishedAt            *string
	Users, Written, Total int
}

func (c *caller) run(t testing.TB, domain string) run {
	t.Helper()
	return read[run](t, c.must(t, "GET", "/api/domains/"+domain+"/scan", ""))
}

// staff returns a directory with four people, of whom jo and mia are readers.
func staff() *slapd.Tree {
	tree := slapd.LDAP()
	jo := tree.Person(slapd.Person{Name: "jo", Given: "Jo", Family: "Doe", Mail: "jo@example.org"})
	mia := tree.Person(slapd.Person{Name: "mia", Given: "Mia", Family: "Wong", Mail: "mia@example.org"})
	tree.Person(slapd.Person{Name: "tim"})
	tree.Person(slapd.Person{Name: "zoë"})
	tree.Group("readers", "Those who read", jo, mia)
	return tree
}

// secretOf returns the password of a person in a directory.
func secretOf(name string) string { return slapd.PasswordOf(name) }

// TestDirectory: a tenant connects its directory and its people log in, even before the first scan.
func TestDirectory(t *testing.T) {
	s := slapd.Test(t, staff())
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.TLSURL, nil))
		is.Equal(id, "staff")
		for _, path := range []string{"/api/domains/staff", "/api/domains-list"} {
			a := w.admin.must(t, "GET", path, "")
			is.True(strings.Contains(a.body, `"bindPassword":"********"`) &&
				!strings.Contains(a.body, slapd.ReaderPassword))
		}

		dry := w.admin.scan(t, id, "?dryRun=true")
		is.Equal(dry.Users, counts{Created: 4})
		is.Equal(dry.Teams, counts{Created: 1})
		is.Equal(dry.Memberships, struct{ Added, Removed int }{2, 0})
		is.True(dry.ScannedAt == nil)
		is.Equal(len(w.admin.users(t, id)), 0) // it writes nothing

		jo := w.in(t, "acme", id, "jo", secretOf("jo")) // before the scan
		is.Equal(jo.who(t), "jo")
		is.Equal(w.admin.user(t, "jo").Email, "jo@example.org")

		done := w.admin.scan(t, id, "")
		is.Equal(done.Users, counts{Created: 3, Unchanged: 1}) // the scan recognizes jo
		is.Equal(done.Warnings, []string{})
		is.True(done.ScannedAt != nil)
		is.Equal(w.admin.run(t, id).Phase, "done")
		again := w.admin.scan(t, id, "")
		is.Equal(again.Users, counts{Unchanged: 4})
		is.Equal(again.Teams, counts{Unchanged: 1})
		is.Equal(again.Memberships, struct{ Added, Removed int }{})

		for name, u := range w.admin.users(t, id) {
			is.True(u.Enabled && !u.Superuser && u.SourceID != "")
			is.Equal(w.in(t, "acme", id, name, secretOf(name)).who(t), name)
		}
		is.True(strings.Contains(jo.must(t, "GET", "/api/users/jo/memberships", "").body, "readers"))
		is.Equal(jo.do(t, "POST", "/api/domains/staff/driver/_scan", "").status, http.StatusForbidden)
		w.admin.must(t, "PUT", "/api/users/jo", `{"enabled": false}`)
		w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t)
		jo.do(t, "GET", "/api/session", "").stranger(t)
		w.admin.scan(t, id, "")
		is.True(!w.admin.user(t, "jo").Enabled) // a user that a superuser has disabled is not enabled by scans
		is.True(!strings.Contains(w.log.String(), "secret"))
	})
}

// TestPasswords: a login needs the directory's password, whatever the name is.
func TestPasswords(t *testing.T) {
	is, s, w := is.New(t), slapd.Test(t, staff()), newWorld(t, dbtest.SQLite)
	way := newWay(t, s.URL)
	id := w.admin.domain(t, "Staff", "LDAP", s.Config(way.url, nil))
	for _, password := range []string{
		"wrong", secretOf("mia"), " ", secretOf("jo") + " ", "{SSHA}x", slapd.ReaderPassword,
		strings.Repeat("x", 10_000),
	} {
		w.login(t, "acme", id, "jo", password).stranger(t)
	}
	for _, name := range []string{
		"*", "j*", "jo*", "jo)(uid=*", "*)(objectClass=*", "jo)(&", "jo)(|(uid=*",
		`jo\`, `jo\2a`, `\6a\6f`, "jo\n", "jo\x7f", " jo", "jo ", "j  o",
		"uid=jo,ou=people," + slapd.BaseDN, "cn=reader", "reader", slapd.ReaderDN, slapd.AdminDN,
		"(uid=jo)", "jo@example.org", "ｊｏ", "zoe", strings.Repeat("jo", 5000),
	} {
		w.login(t, "acme", id, name, secretOf("jo")).stranger(t)
		w.login(t, "acme", id, name, slapd.ReaderPassword).stranger(t)
	}
	w.login(t, "acme", id, "jo\x00", secretOf("jo")).refused(t, http.StatusBadRequest) // as for other logins
	is.Equal(len(w.admin.users(t, id)), 0)

	asked := way.taken.Load()
	is.True(asked > 0)
	for _, reason := range []string{"the directory refuses the password", "no entry has this name", "another name"} {
		is.True(strings.Contains(w.log.String(), reason)) // for the operator of the server
	}
	is.True(!strings.Contains(w.log.String(), secretOf("jo")) &&
		!strings.Contains(w.log.String(), slapd.ReaderPassword))
	for _, name := range []string{"jo", "nobody", slapd.ReaderDN, ""} {
		w.login(t, "acme", id, name, "").stranger(t)
	}
	(&caller{w, ""}).do(
		t, "POST", "/api/login/staff", `{"tenant": "acme", "username": "jo"}`,
	).refused(t, http.StatusBadRequest)
	is.Equal(way.taken.Load(), asked) // the directory was not queried

	is.Equal(w.in(t, "acme", id, "JO", secretOf("jo")).who(t), "jo") // a name in the directory's spelling
	is.Equal(w.in(t, "acme", id, "zoe\u0308", secretOf("zoë")).who(t), "zoë")
	for _, elsewhere := range []string{"local", "nowhere", "staff%2F..%2Flocal"} {
		w.login(t, "acme", elsewhere, "jo", secretOf("jo")).stranger(t)
	}
	w.login(t, "evil", id, "jo", secretOf("jo")).stranger(t)
	w.login(t, "nowhere", id, "jo", secretOf("jo")).stranger(t)

	for range 10 {
		w.login(t, "acme", id, "jo", "wrong").stranger(t)
	}
	asked = way.taken.Load()
	w.login(t, "acme", id, "jo", secretOf("jo")).stranger(t) // ten consecutive failures
	is.Equal(way.taken.Load(), asked+1)                      // it is queried as always, but not for this user
}

// way forwards connections to a directory and counts them.
type way struct {
	url   string
	taken atomic.Int32
}

func newWay(t *testing.T, to string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	t.Cleanup(func() { l.Close() })
	w := &way{url: "ldap://" + l.Addr().String()}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			w.taken.Add(1)
			go pass(client, strings.TrimPrefix(to, "ldap://"))
		}
	}()
	return w
}

// pass forwards between two connections until one of them ends.
func pass(client net.Conn, to string) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() { io.Copy(server, client); server.Close() }()
	io.Copy(client, server)
}

// TestUsernamesOfDirectories: users with typical names of directories are created by a scan, log
// in, and are found and mentioned. A name that is not valid here is skipped with a warning.
func TestUsernamesOfDirectories(t *testing.T) {
	names := []string{"o'brien", "anna_corp#EXT#@x", "a&b", "$svc", "mary ann", "zoë", "d'arc+1=(x)*"}
	tree := slapd.LDAP()
	var dns []string
	for _, name := range append(slices.Clone(names), "semi;colon") {
		dns = append(dns, tree.Person(slapd.Person{Name: name}))
	}
	tree.Group("readers", "Those who read", dns...)
	s := slapd.Test(t, tree)
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		before := w.in(t, "acme", id, "O'BRIEN", secretOf("o'brien")) // creates the user with the directory's spelling
		is.Equal(before.who(t), "o'brien")
		done := w.admin.scan(t, id, "")
		is.Equal(done.Users, counts{Created: len(names) - 1, Unchanged: 1})
		is.Equal(done.Memberships.Added, len(names))
		is.Equal(len(done.Warnings), 1)
		is.True(strings.Contains(done.Warnings[0], "semi;colon"))
		is.Equal(w.admin.scan(t, id, "").Users, counts{Unchanged: len(names)})
		team := w.admin.must(t, "GET", "/api/teams?q=readers", "")
		teams := read[struct {
			Embedded map[string][]struct{ ID string } `json:"_embedded"`
		}](t, team).Embedded["inf:team"]
		is.Equal(len(teams), 1)
		for _, name := range names {
			caller := w.in(t, "acme", id, name, secretOf(name))
			is.Equal(caller.who(t), name)
			u := read[struct{ Username, Domain string }](t, caller.must(t, "GET", hal.Href("users", name), ""))
			is.Equal(u.Username, name)
			is.Equal(u.Domain, id)
			told := w.admin.must(t, "POST", hal.Href("teams", teams[0].ID, "comments"), `{"message": "Ask @`+name+`."}`)
			mentions := read[struct{ Mentions []struct{ Username string } }](t, told).Mentions
			is.True(len(mentions) == 1 && mentions[0].Username == name)
		}
		w.login(t, "acme", id, "semi;colon", secretOf("semi;colon")).stranger(t)
	})
}

// TestNamesOfActiveDirectory: a person is the same user with every form of the name, and failures
// with all forms are counted together.
func TestNamesOfActiveDirectory(t *testing.T) {
	is := is.New(t)
	tree := slapd.AD()
	for _, name := range []string{"anna", "mary ann", "o'brien", "a&b", "guest#EXT#"} {
		tree.Person(slapd.Person{Name: name})
	}
	s := slapd.Test(t, tree)
	is.NoErr(s.Set(tree.PersonDN("anna"), "userPrincipalName", "anna.smith@corp.example"))
	way, w := newWay(t, s.URL), newWorld(t, dbtest.SQLite)
	id := w.admin.domain(t, "Corp", "AD", s.Config(way.url, nil))
	for _, name := range []string{`EXAMPLE\anna`, "anna", "ANNA@example.org", "anna.smith@corp.example"} {
		is.Equal(w.in(t, "acme", id, name, secretOf("anna")).who(t), "anna") // the first login creates the user
	}
	done := w.admin.scan(t, id, "")
	is.Equal(done.Users, counts{Created: 4, Unchanged: 1})
	is.Equal(len(done.Warnings), 0)
	for _, name := range []string{"mary ann", "o'brien", "a&b", "guest#EXT#"} {
		for _, form := range []string{name, `EXAMPLE\` + name, name + "@example.org"} {
			is.Equal(w.in(t, "acme", id, form, secretOf(name)).who(t), name)
		}
	}
	w.login(t, "acme", id, `OTHER\anna`, secretOf("anna")).stranger(t)

	for range 4 {
		for _, form := range []string{`EXAMPLE\anna`, "anna.smith@corp.example", "anna@example.org"} {
			w.login(t, "acme", id, form, "wrong").stranger(t)
		}
	}
	for _, form := range []string{"anna", `EXAMPLE\anna`, "anna@example.org", "anna.smith@corp.example"} {
		w.login(t, "acme", id, form, secretOf("anna")).stranger(t) // ten consecutive failures
	}
	is.True(strings.Contains(w.log.String(), "user locked"))
	is.Equal(w.in(t, "acme", id, `EXAMPLE\o'brien`, secretOf("o'brien")).who(t), "o'brien")
}
