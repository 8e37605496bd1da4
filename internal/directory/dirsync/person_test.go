package dirsync_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestSyncPerson: a user of any domain joins and leaves groups at a login, and nothing else
// changes.
func TestSyncPerson(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		f.user(t, "kim")
		staff, hand := f.team(t, "Staff"), f.team(t, "By hand")
		_, err := f.PutMember(root(t), hand.ID, "jo", actor.Admin)
		is.NoErr(err)
		o := dirsync.PersonOptions{Source: "OIDC", Map: []dirsync.Mapping{
			{Group: "all", Team: staff.Slug, Role: actor.Member},
			{Group: "heads", Team: strings.ToUpper(staff.ID), Role: actor.Publisher},
			{Group: "x", Team: "none", Role: actor.Admin},
		}}
		login := func(name string, groups ...string) []string {
			t.Helper()
			f.now = f.now.Add(time.Hour)
			warnings, err := f.dirsync.SyncPerson(t.Context(), "acme", "okta", name, groups, o)
			is.NoErr(err)
			return warnings
		}
		teams := func(name string) (all []string) {
			t.Helper()
			page, err := f.Memberships(root(t), name, paging.Query{Limit: 100})
			is.NoErr(err)
			for _, m := range page.Rows {
				all = append(all, fmt.Sprint(m.TeamName, " ", m.Role))
			}
			slices.Sort(all)
			return all
		}
		is.Equal(login("jo", "dev", "ops", "all", "", "dev"), []string{"the team none of teams.map does not exist."})
		is.Equal(teams("jo"), []string{"By hand admin", "Staff member", "dev member", "ops member"})
		dev, err := f.Team(root(t), "dev")
		is.NoErr(err)
		is.Equal([]any{dev.Domain, *dev.Source, *dev.SourceID, dev.CreatedAt}, []any{"okta", "OIDC", "dev", f.now})
		_, err = f.UpdateTeam(root(t), dev.ID, func(t *principals.Team) error { t.Name = "Developers"; return nil })
		is.NoErr(err)
		_, err = f.PutMember(root(t), dev.ID, "jo", actor.Designer)
		is.NoErr(err)
		login("kim", "dev", "heads", "all")
		is.Equal(teams("kim"), []string{"Developers member", "Staff publisher"})
		before := f.now
		login("jo", "ops", "all", "dev") // nothing changes
		now, err := f.Team(root(t), dev.ID)
		is.NoErr(err)
		is.True(now.UpdatedAt.Before(before) || now.UpdatedAt.Equal(before))
		is.Equal(teams("jo"), []string{"By hand admin", "Developers designer", "Staff member", "ops member"})

		login("jo", "heads", "ops")
		is.Equal(teams("jo"), []string{"By hand admin", "Staff publisher", "ops member"})
		login("jo", "all", "ops")
		is.Equal(teams("jo"), []string{"By hand admin", "Staff member", "ops member"})
		is.Equal(teams("kim"), []string{"Developers member", "Staff publisher"})
		o.Existing = true
		login("jo", "dev", "new")
		is.Equal(teams("jo"), []string{"By hand admin", "Developers member"})
		login("jo")
		is.Equal(teams("jo"), []string{"By hand admin"})
		now, err = f.Team(root(t), dev.ID)
		is.NoErr(err)
		is.True(!now.DirectoryGone) // other users may be in it

		o.Existing, o.Map = false, nil
		is.Equal(len(login("jo", strings.Repeat("x", 300), "a\nb", "ok")), 2) // not valid as names of teams
		is.Equal(teams("jo"), []string{"By hand admin", "ok member"})

		// Teams of another source in the domain, such as SCIM, are not changed, and neither is
		// another tenant.
		_, err = f.Sync(t.Context(), "acme", "okta", snapshot{
			People: people("sue"),
			Groups: []group{{ID: "g", Name: "Scim", Members: []string{"id of sue"}}},
		},
			dirsync.SyncOptions{Source: "scim", Force: true})
		is.NoErr(err)
		login("sue", "dev")
		is.Equal(teams("sue"), []string{"Developers member", "Scim member"})
		_, err = f.dirsync.SyncPerson(t.Context(), "evil", "okta", "jo", []string{"dev"}, o)
		is.True(err != nil) // the user does not exist there
		_, err = f.dirsync.SyncPerson(t.Context(), "acme", "local", "jo", []string{"dev", "more"}, o)
		is.Equal(code(err), errs.Invalid)
	})
}

// TestMappedTeamOfADirectory: a mapped team of a directory is not changed, nor is one of a provider
// with SCIM, even if its groups have no ids.
func TestMappedTeamOfADirectory(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		_, err := f.Sync(
			t.Context(), "acme", "ldap",
			snapshot{People: people("jo"), Groups: []group{{ID: "g", Name: "Readers"}}},
			dirsync.SyncOptions{Source: "LDAP"},
		)
		is.NoErr(err)
		crew, scim := f.team(t, "Crew"), principals.SourceSCIM
		_, err = f.UpdateTeam(root(t), crew.ID, func(t *principals.Team) error { t.Source = &scim; return nil })
		is.NoErr(err)
		for _, team := range []string{"readers", "crew"} {
			warnings, err :=
				f.dirsync.SyncPerson(t.Context(), "acme", "okta", "jo", []string{"a"}, dirsync.PersonOptions{
					Source: "OIDC", Map: []dirsync.Mapping{{Group: "a", Team: team, Role: actor.Admin}},
				})
			is.NoErr(err)
			is.Equal(
				warnings,
				[]string{"the team " + team +
					" of teams.map has its people from a directory or provider, and is left alone."},
			)
		}
		page, err := f.Memberships(root(t), "jo", paging.Query{Limit: 100})
		is.NoErr(err)
		is.Equal(len(page.Rows), 0)
	})
}

// countedStore counts the calls of a store at a login. Each call is one statement, whatever the
// number of groups, except those that write.
type countedStore struct {
	*bunstore.Store
	reads, writes, transactions int
}

func (c *countedStore) PersonTeams(
	ctx context.Context, tenant, domain, source, username string, sourceIDs, keys []string,
) ([]dirsync.PersonTeam, error) {
	c.reads++
	return c.Store.PersonTeams(ctx, tenant, domain, source, username, sourceIDs, keys)
}

func (c *countedStore) Slugs(ctx context.Context, tenant string) ([]string, error) {
	c.reads++
	return c.Store.Slugs(ctx, tenant)
}

func (c *countedStore) AddMembers(ctx context.Context, tenant string, all []principals.Membership) error {
	c.writes += len(all)
	return c.Store.AddMembers(ctx, tenant, all)
}

func (c *countedStore) DeleteMembers(ctx context.Context, tenant string, all []dirsync.MemberKey) error {
	c.writes += len(all)
	return c.Store.DeleteMembers(ctx, tenant, all)
}

func (c *countedStore) InTx(ctx context.Context, fn func(ctx context.Context) error) error {
	c.transactions++
	return c.Store.InTx(ctx, fn)
}

// TestReadsOfALogin: the number of statements of a login does not depend on the number of unchanged
// groups.
func TestReadsOfALogin(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, store := is.New(t), &countedStore{Store: bunstore.New(f.db)}
		f.user(t, "jo")
		s := dirsync.New(dirsync.Options{Store: store, Principals: f.Unchecked()})
		login := func(groups []string) (asked [3]int) {
			t.Helper()
			store.reads, store.writes, store.transactions = 0, 0, 0
			_, err := s.SyncPerson(t.Context(), "acme", "okta", "jo", groups, dirsync.PersonOptions{Source: "OIDC"})
			is.NoErr(err)
			return [3]int{store.reads, store.writes, store.transactions}
		}
		var groups []string
		var costs [][3][3]int
		for _, n := range []int{3, 100} {
			for len(groups) < n {
				groups = append(groups, fmt.Sprintf("group %03d", len(groups)))
			}
			login(groups)
			costs = append(costs, [3][3]int{login(groups), login(groups[1:]), login(groups)})
		}
		// nothing has changed; the user leaves one group; and joins it again
		is.Equal(costs[0], [3][3]int{{1, 0, 0}, {2, 1, 1}, {2, 1, 1}})
		is.Equal(costs[1], costs[0])
	})
}
