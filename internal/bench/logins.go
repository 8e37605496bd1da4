package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	goldap "github.com/go-ldap/ldap/v3"
	"golang.org/x/crypto/argon2"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
	"github.com/tenantcontent/tenantcontent/principals"
)

// loginCost compares a login with the hashing of one password.
func loginCost(ctx context.Context, w *world) (result, error) {
	salt, c := make([]byte, 16), principals.DefaultCost()
	hash := func() (float64, error) {
		begin := time.Now()
		argon2.IDKey([]byte(password), salt, c.Time, c.Memory, c.Threads, 32)
		return time.Since(begin).Seconds(), nil
	}
	ours, bare, ratio, err := inTurn(func() (float64, error) {
		return w.login(ctx, "default", "local", "admin", password)
	}, hash)
	return result{ours: seconds(ours), bare: seconds(bare), ratio: ratio, must: "≤ 1.50", met: ratio <= 1.5}, err
}

// login times one login.
func (w *world) login(ctx context.Context, tenant, domain, username, password string) (float64, error) {
	begin := time.Now()
	_, err := w.app.Sessions.Login(ctx, principals.Credentials{
		Tenant: tenant, Domain: domain, Username: username, Password: password,
	})
	return time.Since(begin).Seconds(), err
}

// manyLogins are 1,000 people.
const manyLogins = 1000

// loginMany logs 1,000 people of the domain local in at once, while one caller goes on reading a
// color.
func loginMany(ctx context.Context, w *world) (result, error) {
	if _, _, err := w.newCrowd(ctx); err != nil {
		return result{}, err
	}
	name := func(i int) string { return fmt.Sprintf("login%06d", i) }
	err := bunx.Write(ctx, w.db, crowd, func(ctx context.Context, c bunx.Conn) error {
		var hash string
		if err := c.One(
			ctx, "User", `SELECT password_hash FROM tc_users WHERE tenant_id = $1 AND username = $2`,
			[]any{crowd, "admin"}, &hash,
		); err != nil {
			return err
		}
		now := bunx.At(time.Now())
		people := table{`tc_users (tenant_id, username, folded, label, search, domain, superuser, enabled, may_ai, may_create_jobs,
			may_view_all_teams, may_view_all_users, may_script, data, user_fields, login_attempts, mfa, ai_consent, created_at, updated_at, password_hash)`,
			manyLogins, func(i int) []any {
				n := name(i)
				return []any{
					crowd, n, n, n, n, "local", false, true, false, false, false, false, false, "{}", "{}", 0,
					false, false, now, now, hash,
				}
			}}
		return people.insert(ctx, c)
	})
	if err != nil {
		return result{}, err
	}
	return w.atOnce(func(i int) error { _, err := w.login(ctx, crowd, "local", name(i), password); return err })
}

// atOnce runs login for 1,000 people at once, which may fail with errs.Unavailable, and reads
// meanwhile.
func (w *world) atOnce(login func(i int) error) (result, error) {
	var wait time.Duration
	full, begin := 0, time.Now()
	grown, err := peak(func() error {
		stop, done := make(chan struct{}), make(chan error)
		go func() { done <- w.readMeanwhile(stop, &wait) }()
		var all sync.WaitGroup
		fails := make([]error, manyLogins)
		for i := range fails {
			all.Go(func() { fails[i] = login(i) })
		}
		all.Wait()
		close(stop)
		for _, err := range fails {
			switch {
			case errs.CodeOf(err) == errs.Unavailable: // the queue is full
				full++
			case err != nil:
				return err
			}
		}
		return <-done
	})
	return result{
		ours: fmt.Sprintf("%s, %.0f MiB, %d told to try again, a read waits %s at most",
			time.Since(begin).Round(time.Millisecond), grown, full, wait.Round(time.Millisecond)),
		must: "< 256 MiB, others served (< 1s)",
		met:  grown < 256 && wait < time.Second,
	}, err
}

// readMeanwhile reads a color again and again, and notes the longest time that took.
func (w *world) readMeanwhile(stop chan struct{}, longest *time.Duration) error {
	c, err := dial(w.ours, w.token)
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		begin := time.Now()
		if _, err := c.do("GET", "/api/colors/color-000001", ""); err != nil {
			return err
		}
		*longest = max(*longest, time.Since(begin))
	}
}

// loginDirectory compares a login that a directory checks with asking it bare: two connections, one
// search, one password.
func loginDirectory(ctx context.Context, w *world) (result, error) {
	d, err := w.newStaff(ctx, manyLogins, 0, 0)
	if err != nil {
		return result{}, err
	}
	defer d.server.Stop()
	name := slapd.UserName(0)
	ours := func() (float64, error) { return w.login(ctx, crowd, "staff", name, slapd.PasswordOf(name)) }
	o, b, ratio, err := inTurn(ours, func() (float64, error) { return d.bareLogin(name) })
	return result{ours: seconds(o), bare: seconds(b), ratio: ratio}, err
}

// bareLogin times how long a directory takes to say that a password is right.
func (d *directory) bareLogin(name string) (float64, error) {
	begin := time.Now()
	c, err := d.bareDial(slapd.ReaderDN, slapd.ReaderPassword)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	found, err := c.Search(goldap.NewSearchRequest(slapd.BaseDN, goldap.ScopeWholeSubtree,
		goldap.NeverDerefAliases, 2, 0, false,
		"(uid="+goldap.EscapeFilter(name)+")", nil, nil))
	if err != nil {
		return 0, err
	}
	if n := len(found.Entries); n != 1 {
		return 0, fmt.Errorf("there are %d entries for %s", n, name)
	}
	theirs, err := d.bareDial(found.Entries[0].DN, slapd.PasswordOf(name))
	if err != nil {
		return 0, err
	}
	took := time.Since(begin).Seconds()
	return took, theirs.Close()
}

// loginManyDirectory logs 1,000 people in at once who have never been here, while one caller goes
// on reading a color.
func loginManyDirectory(ctx context.Context, w *world) (result, error) {
	d, err := w.newStaff(ctx, manyLogins, 0, 0)
	if err != nil {
		return result{}, err
	}
	defer d.server.Stop()
	return w.atOnce(func(i int) error {
		name := slapd.UserName(i)
		_, err := w.login(ctx, crowd, "staff", name, slapd.PasswordOf(name))
		return err
	})
}
