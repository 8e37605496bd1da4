package principals_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// ids returns those of some people.
func ids(all []identity) (ids []string) {
	for _, who := range all {
		ids = append(ids, who.ID)
	}
	return ids
}

// TestMembershipsAreNotLost when groups are suddenly empty, or not there.
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
			_, err := f.Sync(t.Context(), "acme", "ldap", less, principals.SyncOptions{})
			is.Equal(code(err), errs.Conflict)
			is.Equal(errs.MessageOf(err), "The scan would "+losses+"; nothing was changed. Look at the directory, or scan with force=true.")
			r, err := f.Sync(t.Context(), "acme", "ldap", less, principals.SyncOptions{DryRun: true})
			is.NoErr(err)
			is.Equal(r.Removed, n)
			is.Equal(r.Warnings[0], "Without force=true the scan would be refused: it would "+losses+".")
			is.Equal(f.roster(t, "all"), was)
		}
		both := snapshot{People: all[:40]}
		_, err := f.Sync(t.Context(), "acme", "ldap", both, principals.SyncOptions{})
		is.True(strings.Contains(errs.MessageOf(err), "disable 20 of 60 users of the domain ldap and remove 40 of 60 memberships"))
		r, err := f.Sync(t.Context(), "acme", "ldap", both, principals.SyncOptions{Source: "LDAP", Force: true})
		is.NoErr(err)
		is.Equal(r.Removed, 40) // those who are gone keep theirs
	})
}

// TestRolesWait for users who are gone or disabled.
func TestRolesWait(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		all := people("jo", "mia", "al")
		whole := snapshot{People: all, Groups: []group{{ID: "g", Name: "All", Members: ids(all)}}}
		f.forced(t, whole)
		for _, name := range []string{"jo", "mia"} {
			_, err := f.SetMember(root(t), "all", name, actor.Designer)
			is.NoErr(err)
		}
		off := people("mia", "al")
		off[0].Disabled = true
		r := f.forced(t, snapshot{People: off, Groups: []group{{ID: "g", Name: "All", Members: ids(off[1:])}}})
		is.Equal(r, principals.SyncReport{Users: counts{Disabled: 2, Unchanged: 1}, Teams: counts{Unchanged: 1}})
		is.Equal(f.roster(t, "all"), "al member, jo designer, mia designer")
		r = f.forced(t, snapshot{People: off})
		is.Equal(r.Removed, 1) // al is there, and in no group
		is.Equal(f.roster(t, "all"), "jo designer, mia designer")
		f.forced(t, whole)
		is.Equal(f.roster(t, "all"), "al member, jo designer, mia designer") // back, with the roles

		f.forced(t, snapshot{People: all[1:], Groups: whole.Groups})
		r = f.forced(t, snapshot{People: all, Groups: []group{{ID: "g", Name: "All", Members: ids(all[1:])}}})
		is.Equal(r.Removed, 1) // back, and not in the group any more
		is.Equal(f.roster(t, "all"), "al member, mia designer")
	})
}

// TestDeletedDomain gets no users from a login or a scan that began before.
func TestDeletedDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		there := true
		s := principals.New(principals.Options{Store: f.store, KnownDomain: func(_ context.Context, tenant, id string) error {
			if tenant != "acme" || id != "ldap" || !there {
				return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
			}
			return nil
		}})
		jo := identity{ID: "1", Username: "jo"}
		_, err := s.Admit(t.Context(), "acme", "ldap", "LDAP", jo)
		is.NoErr(err)
		_, err = s.Sync(t.Context(), "acme", "ldap", snapshot{People: []identity{jo}}, principals.SyncOptions{Source: "LDAP"})
		is.NoErr(err)
		there = false
		is.NoErr(s.RemoveDomain(t.Context(), "acme", "ldap", f.user(t, "heir").Username))
		for _, domain := range []string{"ldap", "other"} {
			_, err = s.Admit(t.Context(), "acme", domain, "LDAP", jo)
			refused(t, err)
			_, err = s.Sync(t.Context(), "acme", domain, snapshot{People: []identity{jo}}, principals.SyncOptions{Source: "LDAP"})
			is.Equal(code(err), errs.NotFound)
			is.Equal(errs.MessageOf(err), "Domain not found.")
		}
		f.gone(t, "jo")
	})
}

// TestTryUnderAnotherName: a password is one of the entry's user, whatever name was typed and however that user is called here.
func TestTryUnderAnotherName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.scan(t, snapshot{People: []identity{{ID: "1", Username: "jo"}, {ID: "2", Username: "mia"}}})
		entries := map[string]identity{"joan": {ID: "1", Username: "joan"}, "jo": {ID: "2", Username: "jo"}, "new": {ID: "3", Username: "new"}}
		try := func(name, password string) error {
			_, err := f.LoginWith(t.Context(), "acme", "ldap", "LDAP", name, func(context.Context) (identity, error) {
				if password != "right" {
					return identity{ID: entries[name].ID}, errs.New(errs.Unauthenticated, "The directory refuses %s.", name)
				}
				return entries[name], nil
			})
			return err
		}
		for n := range 10 {
			is.True(!f.lockedHere(t, "jo"))
			refused(t, try("joan", "wrong"))
			is.Equal(f.get(t, "jo").LoginAttempts, n+1)
		}
		is.True(f.lockedHere(t, "jo"))
		refused(t, try("joan", "right"))
		is.Equal(f.get(t, "jo").Username, "jo") // nor did it rename
		f.gone(t, "joan")

		f.now = f.now.Add(15 * time.Minute)
		refused(t, try("jo", "wrong")) // is mia's in the directory now
		is.Equal(f.get(t, "mia").LoginAttempts, 1)
		is.Equal(f.get(t, "jo").LoginAttempts, 10)
		refused(t, try("new", "wrong")) // is nobody's here
		f.gone(t, "new")
		is.NoErr(try("joan", "right"))
		is.Equal(f.get(t, "joan").LoginAttempts, 0)
	})
}
