package principals_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

type (
	snapshot = dirsync.Snapshot
	identity = principals.Identity
	group    = dirsync.Group
)

// people are entries with the ids "id of <name>".
func people(names ...string) (all []identity) {
	for _, name := range names {
		all = append(all, identity{ID: "id of " + name, Username: name})
	}
	return all
}

// scan syncs the domain ldap of acme.
func (f *fixture) scan(t *testing.T, snap snapshot) {
	t.Helper()
	f.scanInto(t, "acme", "ldap", snap)
}

// scanInto syncs a domain.
func (f *fixture) scanInto(t *testing.T, tenant, domain string, snap snapshot) {
	t.Helper()
	s := dirsync.New(dirsync.Options{Store: bunstore.New(f.db), Principals: f.Unchecked(), Now: func() time.Time {
		return f.now
	}})
	_, err := s.Sync(t.Context(), tenant, domain, snap, dirsync.SyncOptions{Source: "LDAP"})
	is.New(t).NoErr(err)
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

// TestDeletedDomain gets no users from a login that began before.
func TestDeletedDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		there := true
		s := principals.New(principals.Options{Store: f.store,
			Domains: knownDomains(func(_ context.Context, tenant, id string) error {
				if tenant != "acme" || id != "ldap" || !there {
					return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
				}
				return nil
			})})
		jo := identity{ID: "1", Username: "jo"}
		_, err := s.Unchecked().Admit(t.Context(), "acme", principals.Source{Domain: "ldap", Driver: "LDAP"}, jo)
		is.NoErr(err)
		there = false
		is.NoErr(s.Unchecked().RemoveDomain(t.Context(), "acme", "ldap", f.user(t, "heir").Username))
		for _, domain := range []string{"ldap", "other"} {
			_, err = s.Unchecked().Admit(t.Context(), "acme", principals.Source{Domain: domain, Driver: "LDAP"}, jo)
			refused(t, err)
		}
		f.gone(t, "jo")
	})
}

// TestTryUnderAnotherName: a password is one of the entry's user, whatever name was typed and
// however that user is called here.
func TestTryUnderAnotherName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.scan(t, snapshot{People: []identity{{ID: "1", Username: "jo"}, {ID: "2", Username: "mia"}}})
		entries := map[string]identity{
			"joan": {ID: "1", Username: "joan"},
			"jo":   {ID: "2", Username: "jo"},
			"new":  {ID: "3", Username: "new"},
		}
		try := func(name, password string) error {
			_, err := f.Unchecked().LoginWith(t.Context(), "acme", principals.Source{
				Domain: "ldap", Driver: "LDAP",
			}, name, func(context.Context) (identity, error) {
				if password != "right" {
					return identity{ID: entries[name].ID}, errs.New(
						errs.Unauthenticated, "The directory refuses %s.", name,
					)
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

func TestNoForeignDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for _, domain := range []string{"local", "a b", "\x00"} {
			_, err := f.Unchecked().Admit(ctx, "acme", principals.Source{
				Domain: domain, Driver: "LDAP",
			}, identity{ID: "1", Username: "jo"})
			is.Equal(code(err), errs.Invalid)
			is.Equal(code(f.Unchecked().RemoveDomain(ctx, "acme", domain, "root")), errs.Invalid)
		}
	})
}
