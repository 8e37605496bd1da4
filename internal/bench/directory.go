package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/slapd"
)

// directory is a domain of the crowd's tenant whose directory is a slapd of this machine.
type directory struct {
	w      *world
	server *slapd.Server
	token  string
	admin  context.Context
}

func (w *world) newDirectory(ctx context.Context, people, groups, memberships int) (*directory, error) {
	tree := slapd.LDAP()
	tree.Crowd(people, groups, memberships)
	server, err := slapd.Start(ctx, tree)
	if err != nil {
		return nil, err
	}
	d := &directory{w: w, server: server}
	if d.token, d.admin, err = w.newCrowd(ctx); err != nil {
		server.Stop()
		return nil, err
	}
	return d, nil
}

// newStaff is newDirectory with its domain.
func (w *world) newStaff(ctx context.Context, people, groups, memberships int) (*directory, error) {
	d, err := w.newDirectory(ctx, people, groups, memberships)
	if err != nil {
		return nil, err
	}
	if err := d.fresh(); err != nil {
		d.server.Stop()
		return nil, err
	}
	return d, nil
}

// fresh makes the domain anew, without a user.
func (d *directory) fresh() error {
	if _, err := d.w.app.Domains.Get(d.admin, "staff"); err == nil {
		if err := d.w.app.Domains.Delete(d.admin, "staff"); err != nil {
			return err
		}
	}
	name := "Staff"
	_, err := d.w.app.Domains.Create(d.admin, domains.Domain{
		Name:   &name,
		Type:   "LDAP",
		Config: d.server.Config(d.server.URL, nil),
	})
	return err
}

// scan times one scan over HTTP and checks what it did.
func (d *directory) scan(what string, want int) (float64, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+d.w.ours+"/api/domains/staff/driver/_scan", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+d.token)
	begin := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Message string
		Domains []struct{ Users map[string]int }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if len(answer.Domains) != 1 || answer.Domains[0].Users[what] != want {
		return 0, fmt.Errorf("the scan answered %s: %+v", res.Status, answer)
	}
	return time.Since(begin).Seconds(), nil
}

// bareDial returns a connection.
func (d *directory) bareDial(dn, password string) (*goldap.Conn, error) {
	c, err := goldap.DialURL(d.server.URL)
	if err != nil {
		return nil, err
	}
	if err := c.Bind(dn, password); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// bareRead reads all people and groups page by page and keeps nothing.
func (d *directory) bareRead() (float64, error) {
	begin := time.Now()
	c, err := d.bareDial(slapd.ReaderDN, slapd.ReaderPassword)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	for filter, attributes := range map[string][]string{
		"(objectClass=inetOrgPerson)": {"entryUUID", "uid", "cn", "givenName", "sn", "mail"},
		"(objectClass=groupOfNames)":  {"entryUUID", "cn", "member"},
	} {
		r := goldap.NewSearchRequest(
			slapd.BaseDN, goldap.ScopeWholeSubtree, goldap.NeverDerefAliases, 0, 0, false, filter, attributes,
			nil,
		)
		if _, err := c.SearchWithPaging(r, 1000); err != nil {
			return 0, err
		}
	}
	return time.Since(begin).Seconds(), nil
}

// table is what is inserted into one table.
type table struct {
	into string
	n    int
	row  func(i int) []any
}

// bareWrite inserts the rows of users, teams and memberships in bulk, in one transaction, and takes
// them back.
func (d *directory) bareWrite(ctx context.Context, people, groups, memberships int) (float64, error) {
	now := bunx.At(time.Now())
	name := func(i int) string { return fmt.Sprintf("bare%06d", i) }
	team := func(i int) string { return fmt.Sprintf("team%06d", i) }
	tables := []table{
		{`tc_users (tenant_id, username, folded, label, search, domain, display_name, given_name, family_name, email, superuser, enabled,
			may_ai, may_create_jobs, may_view_all_teams, may_view_all_users, may_script, source, source_id, data, user_fields, login_attempts, mfa,
			ai_consent, created_at, updated_at)`, people, func(i int) []any {
			n := name(i)
			return []any{
				crowd, n, n, n, n, "local", n, n, n, n, false, true, false, false, false, false, false, "LDAP",
				n, "{}", "{}", 0, false, false, now, now,
			}
		}},
		{`tc_teams (tenant_id, id, name, slug, label, search, domain, source, source_id, created_at, updated_at)`,
			groups, func(i int) []any {
				n := team(i)
				return []any{crowd, n, n, n, n, n, "local", "LDAP", n, now, now}
			}},
		{`tc_memberships (tenant_id, team_id, username, role, created_at)`, memberships, func(i int) []any {
			return []any{crowd, team((i + i/people) % groups), name(i % people), 1, now}
		}},
	}
	back := errors.New("back")
	begin := time.Now()
	var took float64
	err := bunx.Write(ctx, d.w.db, crowd, func(ctx context.Context, c bunx.Conn) error {
		for _, t := range tables {
			if err := t.insert(ctx, c); err != nil {
				return err
			}
		}
		took = time.Since(begin).Seconds()
		return back
	})
	if !errors.Is(err, back) {
		return 0, err
	}
	return took, nil
}

func (t table) insert(ctx context.Context, c bunx.Conn) error { return t.insertBy(ctx, c, 500) }

// insertBy inserts a number of rows with each statement.
func (t table) insertBy(ctx context.Context, c bunx.Conn, chunk int) error {
	for from := 0; from < t.n; from += chunk {
		to := min(t.n, from+chunk)
		var args []any
		for i := from; i < to; i++ {
			args = append(args, t.row(i)...)
		}
		if _, err := c.Exec(ctx, `INSERT INTO `+t.into+` VALUES `+bunx.Values(
			to-from, len(args)/(to-from),
		), args...); err != nil {
			return err
		}
	}
	return nil
}

// The directory of the issue.
const (
	scanned     = 20_000
	scanGroups  = 200
	scanMembers = 60_000
)

// scanAll scans a directory for the first time, against reading it bare and inserting the rows
// bare.
func scanAll(ctx context.Context, w *world) (result, error) {
	d, err := w.newDirectory(ctx, scanned, scanGroups, scanMembers)
	if err != nil {
		return result{}, err
	}
	defer d.server.Stop()
	ours := func() (float64, error) {
		if err := d.fresh(); err != nil {
			return 0, err
		}
		return d.scan("created", scanned)
	}
	bare := func() (float64, error) {
		read, err := d.bareRead()
		if err != nil {
			return 0, err
		}
		write, err := d.bareWrite(ctx, scanned, scanGroups, scanMembers)
		return read + write, err
	}
	o, b, ratio, err := inTurn(ours, bare)
	return result{ours: seconds(o), bare: seconds(b), ratio: ratio, must: "≤ 6.00", met: ratio <= 6}, err
}

// scanAgain scans a directory in which nothing has changed, against reading it bare.
func scanAgain(ctx context.Context, w *world) (result, error) {
	d, err := w.newStaff(ctx, scanned, scanGroups, scanMembers)
	if err != nil {
		return result{}, err
	}
	defer d.server.Stop()
	if _, err := d.scan("created", scanned); err != nil {
		return result{}, err
	}
	o, b, ratio, err := inTurn(func() (float64, error) { return d.scan("unchanged", scanned) }, d.bareRead)
	return result{ours: seconds(o), bare: seconds(b), ratio: ratio, must: "≤ 3.00", met: ratio <= 3}, err
}

// scanMemory samples how far the heap grows during the first and the second scan of 100,000 people.
func scanMemory(ctx context.Context, w *world) (result, error) {
	const people = 100_000
	d, err := w.newStaff(ctx, people, scanGroups, scanMembers)
	if err != nil {
		return result{}, err
	}
	defer d.server.Stop()
	first, err := peak(func() error { _, err := d.scan("created", people); return err })
	if err != nil {
		return result{}, err
	}
	second, err := peak(func() error { _, err := d.scan("unchanged", people); return err })
	return result{
		ours: fmt.Sprintf("%.0f MiB, again %.0f MiB", first, second), must: "< 200 MiB", met: max(first, second) < 200,
	}, err
}
