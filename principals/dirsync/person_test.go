package dirsync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/principals/dirsync"
)

// TestSyncPerson: the groups of a login are joined and left, of a user of whatever domain, and nothing else changes.
func TestSyncPerson(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		f.user(t, "kim")
		staff, hand := f.team(t, "Staff"), f.team(t, "By hand")
		_, err := f.SetMember(root(t), hand.ID, "jo", actor.Admin)
		is.NoErr(err)
		o := dirsync.PersonOptions{Source: "OIDC", Map: []dirsync.Mapping{
			{Group: "all", Team: staff.Slug, Role: actor.Member}, {Group: "heads", Team: strings.ToUpper(staff.ID), Role: actor.Publisher},
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
		_, err = f.SetMember(root(t), dev.ID, "jo", actor.Designer)
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
		is.True(!now.DirectoryGone) // others may be in it

		o.Existing, o.Map = false, nil
		is.Equal(len(login("jo", strings.Repeat("x", 300), "a\nb", "ok")), 2) // no names of teams
		is.Equal(teams("jo"), []string{"By hand admin", "ok member"})

		// Teams of another source in the domain are not touched, as of SCIM; nor is another tenant.
		_, err = f.Sync(t.Context(), "acme", "okta", snapshot{People: people("sue"), Groups: []group{{ID: "g", Name: "Scim", Members: []string{"id of sue"}}}},
			dirsync.SyncOptions{Source: "scim", Force: true})
		is.NoErr(err)
		login("sue", "dev")
		is.Equal(teams("sue"), []string{"Developers member", "Scim member"})
		_, err = f.dirsync.SyncPerson(t.Context(), "evil", "okta", "jo", []string{"dev"}, o)
		is.True(err != nil) // who is nobody there
		_, err = f.dirsync.SyncPerson(t.Context(), "acme", "local", "jo", []string{"dev", "more"}, o)
		is.Equal(code(err), errs.Invalid)
	})
}

// TestMappedTeamOfADirectory is left to its directory, or to the provider that keeps it by SCIM, which may give its groups no ids.
func TestMappedTeamOfADirectory(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		_, err := f.Sync(t.Context(), "acme", "ldap", snapshot{People: people("jo"), Groups: []group{{ID: "g", Name: "Readers"}}}, dirsync.SyncOptions{Source: "LDAP"})
		is.NoErr(err)
		crew, scim := f.team(t, "Crew"), principals.SourceSCIM
		_, err = f.UpdateTeam(root(t), crew.ID, func(t *principals.Team) error { t.Source = &scim; return nil })
		is.NoErr(err)
		for _, team := range []string{"readers", "crew"} {
			warnings, err := f.dirsync.SyncPerson(t.Context(), "acme", "okta", "jo", []string{"a"}, dirsync.PersonOptions{
				Source: "OIDC", Map: []dirsync.Mapping{{Group: "a", Team: team, Role: actor.Admin}},
			})
			is.NoErr(err)
			is.Equal(warnings, []string{"the team " + team + " of teams.map has its people from a directory or provider, and is left alone."})
		}
		page, err := f.Memberships(root(t), "jo", paging.Query{Limit: 100})
		is.NoErr(err)
		is.Equal(len(page.Rows), 0)
	})
}
