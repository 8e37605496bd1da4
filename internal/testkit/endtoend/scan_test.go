package endtoend_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// crowd returns a directory with many people.
func crowd(people int) *slapd.Tree {
	tree := slapd.LDAP()
	tree.Crowd(people, 2, people)
	return tree
}

// retire deletes some people of a crowd.
func retire(t *testing.T, s *slapd.Server, from, to int) {
	t.Helper()
	is.New(t).NoErr(s.Change(func(c *ldap.Conn) error {
		for i := from; i < to; i++ {
			if err := c.Del(ldap.NewDelRequest(personDN(slapd.UserName(i)), nil)); err != nil {
				return err
			}
		}
		return nil
	}))
}

// stuck waits until a proxy that forwards 250 entries has received another one.
func stuck(t *testing.T, p *slapd.Proxy) bool {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) &&
		t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		if p.Entries() > 250 {
			return true
		}
	}
	return false
}

// TestGuard: a scan that would disable many people at once is refused until it is confirmed.
func TestGuard(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, crowd(100)), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		w.admin.scan(t, id, "")
		was := w.admin.users(t, id)
		is.Equal(len(was), 100)

		retire(t, s, 0, 30)
		dry := w.admin.scan(t, id, "?dryRun=true")
		is.Equal(dry.Users, counts{Disabled: 30, Unchanged: 70})
		is.Equal(
			dry.Warnings[0],
			"Without force=true the scan would be refused: it would disable 30 of 100 users of the domain staff.",
		)
		for _, path := range []string{"/api/domains/staff/driver/_scan", "/api/domain-drivers/LDAP/_scan"} {
			refused := w.admin.do(t, "POST", path, "").refused(t, http.StatusConflict)
			is.True(strings.Contains(refused, "would disable 30 of 100 users of the domain staff"))
			is.Equal(w.admin.run(t, id).LastError, refused)
		}
		is.Equal(w.admin.users(t, id), was)

		is.Equal(w.admin.scan(t, id, "?force=true&dryRun=true").Users, counts{Disabled: 30, Unchanged: 70})
		is.Equal(w.admin.users(t, id), was)
		is.Equal(w.admin.scan(t, id, "?force=true").Users, counts{Disabled: 30, Unchanged: 70})
		for name, u := range w.admin.users(t, id) {
			is.Equal(u.Enabled, name > slapd.UserName(29))
		}
		is.Equal(w.admin.run(t, id).LastError, "")

		retire(t, s, 30, 80)
		is.Equal(w.admin.scan(t, id, "?force=true").Users, counts{Disabled: 50, Unchanged: 50})
		retire(t, s, 80, 90) // ten of the remaining twenty: more than a fifth, but not more than ten or half
		is.Equal(w.admin.scan(t, id, "").Users, counts{Disabled: 10, Unchanged: 90})
	})
}

// TestAway: a scan of a directory that is unreachable, closes the connection or does not answer
// changes nothing, and returns an error.
func TestAway(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, crowd(500)), newWorld(t, open)
		small := map[string]any{"pageSize": 100}
		config := s.Config(s.URL, small)
		id := w.admin.domain(t, "Staff", "LDAP", config)
		w.admin.scan(t, id, "")
		was, teams := w.admin.users(t, id), w.admin.must(t, "GET", "/api/teams", "").body
		retire(t, s, 0, 5)
		is.NoErr(s.Rename(personDN(slapd.UserName(7)), "uid=sam"))
		fails := func(why string) {
			t.Helper()
			said := w.admin.do(
				t, "POST", "/api/domains/staff/driver/_scan?force=true", "",
			).refused(t, http.StatusBadGateway)
			if !strings.Contains(said, why) {
				t.Errorf("said %q, want %q", said, why)
			}
			after := w.admin.run(t, id)
			is.Equal(after.Phase, "failed")
			is.Equal(after.LastError, said)
			is.True(after.FinishedAt != nil)
			is.Equal(w.admin.users(t, id), was)
			is.Equal(w.admin.must(t, "GET", "/api/teams", "").body, teams)
		}

		cut, err := s.Cut(250) // in the middle of page 3
		is.NoErr(err)
		defer cut.Close()
		w.admin.reconfigure(t, id, "LDAP", s.Config(cut.URL, small))
		fails("broke off")
		silent, err := s.Stall(250)
		is.NoErr(err)
		defer silent.Close()
		w.admin.reconfigure(t, id, "LDAP", s.Config(silent.URL, map[string]any{"pageSize": 100, "timeoutMs": 1000}))
		fails("does not answer in time")
		w.admin.reconfigure(t, id, "LDAP", s.Config(s.URL, map[string]any{"bindPassword": "not it"}))
		fails("refuses the bind")
		w.admin.reconfigure(t, id, "LDAP", s.Config(s.TLSURL, map[string]any{"caCert": nil}))
		fails("TLS")

		dying, err := s.Stall(250)
		is.NoErr(err)
		defer dying.Close()
		w.admin.reconfigure(t, id, "LDAP", s.Config(dying.URL, nil))
		go func() { // it is killed while it sends page 3
			stuck(t, dying)
			s.Stop()
			dying.Close()
		}()
		fails("broke off")
		w.admin.reconfigure(t, id, "LDAP", config)
		fails("cannot be reached")

		name := slapd.UserName(20)
		said := w.login(t, "acme", id, name, secretOf(name)).refused(t, http.StatusBadGateway)
		is.True(!strings.Contains(said, "127.0.0.1")) // not shown without a login
		is.Equal(w.in(t, "acme", "local", "admin", password).who(t), "admin")
		w.login(t, "acme", id, name, "").stranger(t)
	})
}

// TestScansAtOnce: a domain has one scan at a time, even with two processes, and all callers see
// its state.
func TestScansAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, db, key := is.New(t), slapd.Test(t, crowd(500)), open(t), tenantcontent.NewSecretKey()
		w, other := serve(t, db, key, nil), serve(t, db, key, nil)
		silent, err := s.Stall(250)
		is.NoErr(err)
		defer silent.Close()
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(silent.URL, nil))
		second := w.admin.domain(
			t, "Second", "LDAP",
			s.Config(s.URL, map[string]any{"userFilter": "(uid=" + slapd.UserName(1) + ")"}),
		)
		ended := make(chan answer)
		go func() { ended <- w.admin.do(t, "POST", "/api/domains/staff/driver/_scan", "") }()
		is.True(stuck(t, silent))
		for w.admin.run(t, id).Users == 0 { // entries are counted by the hundred
			time.Sleep(time.Millisecond)
		}
		for _, admin := range []*caller{w.admin, other.admin} {
			for _, path := range []string{
				"/api/domains/staff/driver/_scan", "/api/domain-drivers/LDAP/_scan",
				"/api/domains/staff/driver/_scan?dryRun=true",
			} {
				is.True(strings.Contains(
					admin.do(t, "POST", path, "").refused(t, http.StatusConflict), "being scanned",
				))
			}
			is.True(strings.Contains(
				admin.do(t, "DELETE", "/api/domains/staff", "").refused(t, http.StatusConflict),
				"being scanned",
			))
			state := admin.run(t, id)
			is.Equal(state.Phase, "reading")
			is.True(state.FinishedAt == nil && state.LastError == "")
		}
		// another domain of the tenant is free
		is.Equal(w.admin.scan(t, second, "").Users, counts{Created: 1})
		is.Equal(other.admin.scan(t, second, "").Users, counts{Unchanged: 1})
		silent.Close()
		a := <-ended
		a.refused(t, http.StatusBadGateway)
		is.Equal(len(w.admin.users(t, id)), 0)

		w.admin.reconfigure(t, id, "LDAP", s.Config(s.URL, nil))
		var all sync.WaitGroup
		answers := make([]answer, 8)
		for i := range answers {
			all.Go(func() {
				answers[i] = []*caller{w.admin, other.admin}[i%2].do(t, "POST", "/api/domains/staff/driver/_scan", "")
			})
		}
		all.Wait()
		made := 0
		for _, a := range answers {
			if a.status == http.StatusConflict || a.status == http.StatusServiceUnavailable {
				// this one is running, or both are
				continue
			}
			is.Equal(a.status, http.StatusOK)
			made += read[struct{ Domains []scanned }](t, a).Domains[0].Users.Created
		}
		is.Equal(made, 499) // once each; user000002 belongs to the other domain
	})
}

// TestLoginsMeanwhile: people log in for the first time, several concurrently, while a scan adds
// them. Each becomes one user, and all logins succeed.
func TestLoginsMeanwhile(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, w := is.New(t), slapd.Test(t, crowd(200)), newWorld(t, open)
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(s.URL, nil))
		var all sync.WaitGroup
		for i := range 5 {
			for range 4 {
				all.Go(func() {
					name := slapd.UserName(40 * i)
					a := w.login(t, "acme", id, name, secretOf(name))
					for late := time.Now().Add(time.Minute); a.status == http.StatusServiceUnavailable &&
						time.Now().Before(late); {
						// at most eight of a domain at once; a login that waited too long is
						// repeated
						a = w.login(t, "acme", id, name, secretOf(name))
					}
					if a.status != http.StatusOK {
						t.Errorf("%s: %d %s", name, a.status, a.body)
					}
				})
			}
		}
		var scan answer
		all.Go(func() { scan = w.admin.do(t, "POST", "/api/domains/staff/driver/_scan", "") })
		all.Wait()
		is.Equal(scan.status, http.StatusOK)
		is.Equal(len(w.admin.users(t, id)), 200)
		is.Equal(w.admin.scan(t, id, "").Users, counts{Unchanged: 200})
	})
}

// TestProgress: the progress of a long scan can be read while it runs.
func TestProgress(t *testing.T) {
	const people = 5_000
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, s, db := is.New(t), slapd.Test(t, crowd(people)), open(t)
		w := serve(t, db, tenantcontent.NewSecretKey(), nil)
		silent, err := s.Stall(1250)
		is.NoErr(err)
		defer silent.Close()
		id := w.admin.domain(t, "Staff", "LDAP", s.Config(silent.URL, nil))
		ended := make(chan answer, 1)
		scan := func() { ended <- w.admin.do(t, "POST", "/api/domains/staff/driver/_scan", "") }
		go scan()
		// by the hundred
		w.admin.reaches(t, id, ended, func(r run) bool { return r.Phase == "reading" && r.Users == 1200 })
		silent.Close()
		(<-ended).refused(t, http.StatusBadGateway)

		w.admin.reconfigure(t, id, "LDAP", s.Config(s.URL, nil))
		release := func() {} // SQLite has one writer, which is not blocked here, and takes seconds
		if db.Dialect().Name() == dialect.PG {
			release = reserve(t, db, slapd.UserName(people-1))
		}
		go scan()
		w.admin.reaches(t, id, ended, func(r run) bool {
			return r.Phase == "writing" && r.Users == people && r.Written > 0 && r.Written < r.Total
		})
		release()
		a := <-ended
		is.Equal(a.status, http.StatusOK)
		is.Equal(read[struct{ Domains []scanned }](t, a).Domains[0].Users, counts{Created: people})
		done := w.admin.run(t, id)
		is.Equal(done.Phase, "done")
		is.Equal(done.Users, people)
		is.True(done.Total > people && done.Written == done.Total)
	})
}

// reaches reads the state of a scan until it is a certain one, which must happen before the end.
func (c *caller) reaches(t *testing.T, domain string, ended <-chan answer, certain func(run) bool) {
	t.Helper()
	for last := (run{}); len(ended) == 0; {
		now := c.run(t, domain)
		if certain(now) {
			return
		}
		if now.Phase == last.Phase && (now.Users < last.Users || now.Written < last.Written) ||
			now.Written > now.Total {
			t.Fatalf("%+v after %+v", now, last)
		}
		last = now
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the scan has ended, and was never seen so")
}

// reserve blocks transactions that add a user with a name, until release is called.
func reserve(t *testing.T, db *bun.DB, name string) (release func()) {
	t.Helper()
	held, let, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	free := errors.New("not kept")
	go func() {
		ended <- bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(
				ctx, "INSERT INTO tc_principals (tenant_id, id, type, label) VALUES ('acme', $1, 'User', $1)",
				name,
			)
			if err != nil {
				return err
			}
			close(held)
			<-let
			return free
		})
	}()
	select {
	case <-held:
	case err := <-ended:
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		close(let)
		is.New(t).True(errors.Is(<-ended, free))
	})
	t.Cleanup(release)
	return release
}
