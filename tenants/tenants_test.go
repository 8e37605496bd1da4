package tenants_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

var now = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)

// ring is a Sealer that shows what it sealed: the last key seals, all open.
type ring []string

func (r ring) Seal(tenant, table, column, row string, plain []byte) (string, error) {
	return strings.Join([]string{r[len(r)-1], tenant, table, column, row, string(plain)}, "|"), nil
}

func (r ring) Open(tenant, table, column, row, sealed string) ([]byte, error) {
	for _, key := range r {
		if plain, ok := strings.CutPrefix(
			sealed, strings.Join([]string{key, tenant, table, column, row, ""}, "|"),
		); ok {
			return []byte(plain), nil
		}
	}
	return nil, errors.New("no key")
}

func (r ring) Beginning() int { return len(r[0]) }

func (r ring) Current(sealed string) bool { return strings.HasPrefix(sealed, r[len(r)-1]+"|") }

// each runs a test on each database, with a store and how to make a service over it with some keys.
func each(t *testing.T, test func(t *testing.T, with func(keys ...string) *tenants.Service)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		store := bunstore.New(open(t))
		test(t, func(keys ...string) *tenants.Service {
			return tenants.New(tenants.Options{Store: store, Keys: ring(keys),
				OpenLicenses: true, Now: func() time.Time {
					return now
				}})
		})
	})
}

func as(t *testing.T, a actor.Actor) context.Context { return actor.With(t.Context(), a) }

func TestAddAndRead(t *testing.T) {
	each(t, func(t *testing.T, with func(...string) *tenants.Service) {
		is, s := is.New(t), with("a")
		got, err := s.Unchecked().Add(t.Context(), tenants.Tenant{ID: "new-1"})
		is.NoErr(err)
		want := tenants.Tenant{
			ID: "new-1", Name: "new-1", CreatedAt: now, UpdatedAt: now,
			Settings: tenants.Settings{Licenses: []string{}, DefaultDomain: "local", DeployFrom: tenants.Sources()},
		}
		is.Equal(got, want)
		got, err = s.Unchecked().Lookup(t.Context(), "new-1")
		is.NoErr(err)
		is.Equal(got, want)
		got, err = s.Get(as(t, actor.Actor{Tenant: "new-1", User: "jo"}))
		is.NoErr(err)
		is.Equal(got, want)
		_, err = s.Get(t.Context())
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		_, err = s.Unchecked().Add(t.Context(), tenants.Tenant{ID: "new-1"})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		for _, bad := range []string{"", "-a", "A", "a_b", "a.b", strings.Repeat("a", 64), "ä", "a\x00", "a\n"} {
			_, err = s.Unchecked().Add(t.Context(), tenants.Tenant{ID: bad})
			is.Equal(errs.CodeOf(err), errs.Invalid)
			_, err = s.Unchecked().Lookup(t.Context(), bad)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
	})
}

func TestUpdate(t *testing.T) {
	each(t, func(t *testing.T, with func(...string) *tenants.Service) {
		is, s := is.New(t), with("a")
		admin := as(t, actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{"t": actor.Admin}})
		super := as(t, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
		_, err := s.Update(admin, func(*tenants.Tenant) error { t.Fatal("called"); return nil })
		is.Equal(errs.CodeOf(err), errs.Forbidden)
		got, err := s.Update(super, func(t *tenants.Tenant) error {
			*t = tenants.Tenant{
				ID:       "evil",
				Name:     " New ",
				Settings: tenants.Settings{AI: true, Licenses: []string{"apps"}},
			}
			return nil
		})
		is.NoErr(err)
		is.Equal(got.ID, "acme") // never changes
		is.Equal(got.Name, "New")
		is.Equal(got.UpdatedAt, now)
		is.True(!got.CreatedAt.IsZero())
		is.True(got.Settings.Licensed("apps") && !got.Settings.Licensed("x"))

		many := make([]string, 1001)
		for i := range many {
			many[i] = "a"
		}
		for name, bad := range map[string]func(*tenants.Tenant){
			"name":                   func(t *tenants.Tenant) { t.Name = " " },
			"name ":                  func(t *tenants.Tenant) { t.Name = strings.Repeat("ü", 256) },
			"name must be":           func(t *tenants.Tenant) { t.Name = "a\x00" },
			"settings.licenses[1]":   func(t *tenants.Tenant) { t.Settings.Licenses = []string{"apps", "\xff"} },
			"settings.defaultDomain": func(t *tenants.Tenant) { t.Settings.DefaultDomain = "a b" },
			"settings.deployFrom[0]": func(t *tenants.Tenant) { t.Settings.DeployFrom = tenants.Sources("A") },
			"settings may":           func(t *tenants.Tenant) { t.Settings.DeployFrom = tenants.Sources(many...) },
		} {
			_, err := s.Update(super, func(t *tenants.Tenant) error { bad(t); return nil })
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), name)) // it names the field
		}
		evil, err := s.Unchecked().Lookup(t.Context(), "evil")
		is.NoErr(err)
		is.Equal(evil.Name, "evil")
	})
}

// TestDefaultDomain: a new default domain must be one of the tenant's, and one that goes is local
// again.
func TestDefaultDomain(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		away := errors.New("away")
		s := tenants.New(tenants.Options{
			Store: bunstore.New(open(t)), Keys: ring{"a"}, Now: func() time.Time { return now },
			KnownDomain: func(_ context.Context, tenant, id string) error {
				switch tenant + " " + id {
				case "acme ldap":
					return nil
				case "acme away":
					return away
				}
				return errs.New(errs.Invalid, "domain must be known")
			},
		})
		set := func(tenant, domain string) error {
			super := as(t, actor.Actor{Tenant: tenant, User: "jo", Superuser: true})
			got, err := s.Update(super, func(t *tenants.Tenant) error { t.Settings.DefaultDomain = domain; return nil })
			is.Equal(got.Settings.DefaultDomain == domain, err == nil)
			return err
		}
		has := func(tenant, want string) {
			t.Helper()
			got, err := s.Unchecked().DefaultDomain(t.Context(), tenant)
			is.NoErr(err)
			is.Equal(got, want)
		}
		for _, tenant := range []string{"acme", "evil"} {
			err := set(tenant, "nowhere")
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), "settings.defaultDomain must be the id of a domain of the tenant")
			is.NoErr(set(tenant, "local"))
		}
		is.Equal(set("acme", "away"), away)
		is.NoErr(set("acme", "ldap"))
		is.Equal(errs.CodeOf(set("evil", "ldap")), errs.Invalid) // another tenant's
		has("acme", "ldap")

		_, err := s.Unchecked().Add(
			t.Context(), tenants.Tenant{ID: "old", Settings: tenants.Settings{DefaultDomain: "gone"}},
		)
		is.NoErr(err)
		is.NoErr(set("old", "gone")) // one that does not change is not looked at

		is.NoErr(s.Unchecked().ForgetDomain(t.Context(), "acme", "other"))
		is.NoErr(s.Unchecked().ForgetDomain(t.Context(), "evil", "ldap"))
		has("acme", "ldap")
		is.NoErr(s.Unchecked().ForgetDomain(t.Context(), "acme", "ldap"))
		has("acme", "local")
		is.Equal(errs.CodeOf(s.Unchecked().ForgetDomain(t.Context(), "nobody", "ldap")), errs.NotFound)
	})
}

func TestKeys(t *testing.T) {
	each(t, func(t *testing.T, with func(...string) *tenants.Service) {
		is, ctx := is.New(t), t.Context()
		_, err := with("a").Unchecked().Add(ctx, tenants.Tenant{ID: "new"})
		is.NoErr(err)
		is.Equal(errs.CodeOf(with("a").Unchecked().CheckKeys(ctx)), errs.Invalid) // acme and evil were made outside Add
		n, err := with("a").Unchecked().Rekey(ctx)
		is.NoErr(err)
		is.Equal(n, 2)
		is.NoErr(with("a").Unchecked().CheckKeys(ctx))

		is.Equal(errs.CodeOf(with("b").Unchecked().CheckKeys(ctx)), errs.Invalid)
		_, err = with("b").Unchecked().Rekey(ctx)
		is.Equal(errs.CodeOf(err), errs.Invalid) // and nothing is lost:
		is.NoErr(with("a", "b").Unchecked().CheckKeys(ctx))
		n, err = with("a", "b").Unchecked().Rekey(ctx)
		is.NoErr(err)
		is.Equal(n, 3)
		is.NoErr(with("b").Unchecked().CheckKeys(ctx))
		n, err = with("a", "b").Unchecked().Rekey(ctx)
		is.NoErr(err)
		is.Equal(n, 0) // all are under the current key
	})
}

// TestLicenses: the licenses of a tenant are set by the operator, and by its superusers only with
// Options.OpenLicenses.
func TestLicenses(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, store := is.New(t), bunstore.New(open(t))
		s := tenants.New(tenants.Options{Store: store, Keys: ring{"a"}, Now: func() time.Time { return now }})
		u := s.Unchecked()
		for _, id := range []string{"acme", "evil"} { // they are there already
			before, err := u.Lookup(t.Context(), id)
			is.NoErr(err)
			is.Equal(len(before.Settings.Licenses), 0)
		}
		change := func(add, remove string) ([]string, error) {
			got, err := u.ChangeLicenses(t.Context(), "acme", strings.Fields(add), strings.Fields(remove))
			return got.Settings.Licenses, err
		}
		for _, step := range []struct{ add, remove, want string }{
			{"apps", "", "apps"}, {"apps", "", "apps"},
			{"x apps x", "", "apps x"}, {"y", "apps", "x y"}, {"apps", "x y", "apps"},
		} {
			got, err := change(step.add, step.remove)
			is.NoErr(err)
			is.Equal(got, strings.Fields(step.want))
		}
		var many strings.Builder
		for i := range 101 {
			fmt.Fprintf(&many, "l%d ", i)
		}
		for says, bad := range map[string][2][]string{
			`does not have the license "app"`:      {nil, {"app"}},
			`cannot be added and removed at once`:  {{"apps"}, {"apps"}},
			`must be 1 to 64 characters without`:   {{"a\n"}, nil},
			`without control characters, not ""`:   {{""}, nil},
			`settings may have at most 100 licens`: {strings.Fields(many.String()), nil},
		} {
			_, err := u.ChangeLicenses(t.Context(), "acme", bad[0], bad[1])
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.Contains(errs.MessageOf(err), says))
		}
		_, err := u.ChangeLicenses(t.Context(), "nobody", []string{"apps"}, nil)
		is.Equal(errs.CodeOf(err), errs.NotFound)

		super := as(t, actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
		set := func(all ...string) error {
			_, err := s.Update(super, func(t *tenants.Tenant) error { t.Settings.Licenses = all; return nil })
			return err
		}
		is.NoErr(set("apps"))
		is.NoErr(set("apps", "apps"))
		for _, other := range [][]string{nil, {}, {"apps", "x"}, {"x"}, {"APPS"}} {
			err := set(other...)
			is.Equal(errs.CodeOf(err), errs.Forbidden)
			is.True(strings.Contains(errs.MessageOf(err), "tenantcontent tenant license acme --add"))
		}
		got, err := s.Get(super)
		is.NoErr(err)
		is.Equal(got.Settings.Licenses, []string{"apps"})
		evil, err := u.Lookup(t.Context(), "evil")
		is.NoErr(err)
		is.Equal(len(evil.Settings.Licenses), 0)
	})
}
