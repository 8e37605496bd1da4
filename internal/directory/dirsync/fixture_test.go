package dirsync_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

var (
	monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	cheap  = principals.Cost{Memory: 8, Time: 1, Threads: 1}
)

const password = "correct horse"

// fixture has the services over an empty database. The test sets their clock.
type fixture struct {
	*principals.Service
	dirsync *dirsync.Service
	store   principals.Store
	db      *bun.DB
	now     time.Time
	content *content
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		store := bunstore.New(db)
		f := &fixture{
			db:      db,
			store:   store,
			now:     monday,
			content: &content{Registry: entity.NewRegistry(), owned: map[string]int{}},
		}
		now := func() time.Time { return f.now }
		f.Service = principals.New(principals.Options{Store: store, Content: f.content, Now: now, Cost: cheap})
		f.dirsync = dirsync.New(dirsync.Options{Store: store, Principals: f.Unchecked(), Now: now})
		test(t, f)
	})
}

func (f *fixture) Sync(
	ctx context.Context, tenant, domain string, all snapshot, o dirsync.SyncOptions,
) (dirsync.Report, error) {
	return f.dirsync.Sync(ctx, tenant, domain, all, o)
}

// content counts owned entities, by tenant and owner.
type content struct {
	*entity.Registry
	owned   map[string]int
	renamed func(ctx context.Context, tenant string, names map[string]string) error
}

func (c *content) Rename(ctx context.Context, tenant string, names map[string]string) error {
	for was, becomes := range names {
		if n := c.owned[tenant+"/"+was]; n > 0 {
			c.owned[tenant+"/"+becomes] = n
			delete(c.owned, tenant+"/"+was)
		}
	}
	if c.renamed == nil {
		return nil
	}
	return c.renamed(ctx, tenant, names)
}

func as(t *testing.T, a actor.Actor) context.Context { return actor.With(t.Context(), a) }

// root returns the context of a superuser of acme.
func root(t *testing.T) context.Context {
	return as(t, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
}

func (f *fixture) user(t *testing.T, name string) principals.User {
	t.Helper()
	u, err := f.CreateUser(root(t), principals.User{Username: name, Enabled: true}, password)
	is.New(t).NoErr(err)
	return u
}

func (f *fixture) team(t *testing.T, name string) principals.Team {
	t.Helper()
	g, err := f.CreateTeam(root(t), principals.Team{Name: name})
	is.New(t).NoErr(err)
	return g
}

// code returns the code of an error, or "ok".
func code(err error) errs.Code {
	if err == nil {
		return "ok"
	}
	return errs.CodeOf(err)
}

type (
	snapshot = dirsync.Snapshot
	identity = principals.Identity
	group    = dirsync.Group
	counts   = dirsync.Counts
)

// people returns entries with the ids "id of <name>".
func people(names ...string) (all []identity) {
	for _, name := range names {
		all = append(all, identity{ID: "id of " + name, Username: name})
	}
	return all
}

// scan syncs the domain ldap of acme.
func (f *fixture) scan(t *testing.T, snap snapshot) dirsync.Report {
	t.Helper()
	r, err := f.Sync(t.Context(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP"})
	is.New(t).NoErr(err)
	return r
}

// forced is scan with force: with few people, most may be missing.
func (f *fixture) forced(t *testing.T, snap snapshot) dirsync.Report {
	t.Helper()
	r, err := f.Sync(t.Context(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP", Force: true})
	is.New(t).NoErr(err)
	return r
}

func (f *fixture) get(t *testing.T, name string) principals.User {
	t.Helper()
	u, err := f.User(root(t), name)
	is.New(t).NoErr(err)
	return u
}

func (f *fixture) gone(t *testing.T, name string) {
	t.Helper()
	_, err := f.User(root(t), name)
	is.New(t).Equal(code(err), errs.NotFound)
}

func (f *fixture) edit(t *testing.T, name string, edit func(*principals.User)) {
	t.Helper()
	_, err := f.UpdateUser(root(t), name, func(u *principals.User) error { edit(u); return nil })
	is.New(t).NoErr(err)
}

// roster returns a team's members with their roles.
func (f *fixture) roster(t *testing.T, team string) string {
	t.Helper()
	all, err := f.Members(root(t), team, paging.Query{Limit: paging.MaxLimit})
	is.New(t).NoErr(err)
	names := []string{}
	for _, m := range all.Rows {
		names = append(names, m.Username+" "+m.Role.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func text(s string) *string { return &s }
