package dirsync_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
)

// ids returns the ids of some people.
func ids(all []identity) (ids []string) {
	for _, who := range all {
		ids = append(ids, who.ID)
	}
	return ids
}

// TestMembershipsAreNotLost: too many memberships are not removed if groups are suddenly empty or
// missing.
func TestMembershipsAreNotLost(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var names []string
		for n := range 60 {
			names = append(names, fmt.Sprintf("u%02d", n))
		}
		all := people(names...)
		snap := func(members int) snapshot {
			return snapshot{People: all, Groups: []group{{ID: "g", Name: "All", Members: ids(all[:members])}}}
		}
		f.scan(t, snap(60))
		is.Equal(f.scan(t, snap(48)).Removed, 12) // 20 % of 60
		is.Equal(f.scan(t, snap(38)).Removed, 10) // not more than ten
		f.scan(t, snap(60))
		was := f.roster(t, "all")
		for _, less := range []snapshot{snap(47), {People: all}} {
			n := 13
			if less.Groups == nil {
				n = 60
			}
			losses := fmt.Sprintf("remove %d of 60 memberships in the teams of the domain ldap", n)
			_, err := f.Sync(t.Context(), "acme", "ldap", less, dirsync.SyncOptions{})
			is.Equal(code(err), errs.Conflict)
			is.Equal(
				errs.MessageOf(err),
				"The scan would "+losses+"; nothing was changed. Look at the directory, or scan with force=true.",
			)
			r, err := f.Sync(t.Context(), "acme", "ldap", less, dirsync.SyncOptions{DryRun: true})
			is.NoErr(err)
			is.Equal(r.Removed, n)
			is.Equal(r.Warnings[0], "Without force=true the scan would be refused: it would "+losses+".")
			is.Equal(f.roster(t, "all"), was)
		}
		both := snapshot{People: all[:40]}
		_, err := f.Sync(t.Context(), "acme", "ldap", both, dirsync.SyncOptions{})
		is.True(strings.Contains(
			errs.MessageOf(err), "disable 20 of 60 users of the domain ldap and remove 40 of 60 memberships",
		))
		r, err := f.Sync(t.Context(), "acme", "ldap", both, dirsync.SyncOptions{Source: "LDAP", Force: true})
		is.NoErr(err)
		is.Equal(r.Removed, 40) // missing users keep theirs
	})
}

// TestRolesWait: roles are kept for users who are missing or disabled.
func TestRolesWait(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		all := people("jo", "mia", "al")
		whole := snapshot{People: all, Groups: []group{{ID: "g", Name: "All", Members: ids(all)}}}
		f.forced(t, whole)
		for _, name := range []string{"jo", "mia"} {
			_, err := f.PutMember(root(t), "all", name, actor.Designer)
			is.NoErr(err)
		}
		off := people("mia", "al")
		off[0].Disabled = true
		r := f.forced(t, snapshot{People: off, Groups: []group{{ID: "g", Name: "All", Members: ids(off[1:])}}})
		is.Equal(r, dirsync.Report{Users: counts{Disabled: 2, Unchanged: 1}, Teams: counts{Unchanged: 1}})
		is.Equal(f.roster(t, "all"), "al member, jo designer, mia designer")
		r = f.forced(t, snapshot{People: off})
		is.Equal(r.Removed, 1) // al is present, but in no group
		is.Equal(f.roster(t, "all"), "jo designer, mia designer")
		f.forced(t, whole)
		is.Equal(f.roster(t, "all"), "al member, jo designer, mia designer") // present again, with the roles

		f.forced(t, snapshot{People: all[1:], Groups: whole.Groups})
		r = f.forced(t, snapshot{People: all, Groups: []group{{ID: "g", Name: "All", Members: ids(all[1:])}}})
		is.Equal(r.Removed, 1) // present again, but not in the group
		is.Equal(f.roster(t, "all"), "al member, mia designer")
	})
}
