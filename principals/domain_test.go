package principals_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

func TestRemoveDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		forgotten := map[entity.Key]bool{}
		f.content.hooks.Deleted = func(_ context.Context, tenant string, gone ...entity.Key) error {
			is.Equal(tenant, "acme")
			for _, key := range gone {
				forgotten[key] = true
			}
			return nil
		}
		s := f.Service
		_, err := s.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: "acme", Username: "root", Password: password,
		})
		is.NoErr(err)
		var names []string
		for n := range 1203 { // several batches
			names = append(names, fmt.Sprintf("u%04d", n))
		}
		snap := snapshot{
			People: people(names...),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of u0001"}}, {ID: "h", Name: "Other"}},
		}
		f.scan(t, snap)
		for tenant, domain := range map[string]string{"evil": "ldap", "acme": "saml"} {
			f.scanInto(t, tenant, domain, snapshot{People: people("eve")})
		}
		all, err := s.Team(root(t), "all")
		is.NoErr(err)
		own := f.team(t, "Own")
		_, err = s.PutMember(root(t), own.ID, "u0001", actor.Admin)
		is.NoErr(err)
		_, err = s.PutPicture(root(t), "u0001", strings.NewReader("picture"))
		is.NoErr(err)
		picture := *f.get(t, "u0001").AvatarID
		for owner, n := range map[string]int{
			"acme/u0001":     2,
			"acme/u1202":     3,
			"acme/" + all.ID: 4,
			"acme/eve":       7,
			"evil/u0001":     8,
		} {
			f.content.owned[owner] = n
		}

		content, err := s.Unchecked().DomainContent(ctx, "acme")
		is.NoErr(err)
		is.Equal(content, map[string]principals.DomainCounts{
			"local": {Users: 1, Teams: 1},
			"ldap":  {Users: 1203, Teams: 2, Identified: 1205},
			"saml":  {Users: 1, Identified: 1},
		})
		for to, want := range map[string]errs.Code{
			"u0002": errs.Conflict, all.ID: errs.Conflict, "": errs.Invalid,
			"*": errs.Invalid, "nobody": errs.Invalid, "\x00": errs.Invalid,
		} {
			is.Equal(code(s.Unchecked().RemoveDomain(ctx, "acme", "ldap", to)), want)
		}
		f.content.stuck = true
		// what cannot change hands
		is.Equal(code(s.Unchecked().RemoveDomain(ctx, "acme", "ldap", "root")), errs.Conflict)
		f.content.stuck = false
		is.Equal(code(s.Unchecked().RemoveDomain(ctx, "none", "ldap", "root")), errs.NotFound)
		f.get(t, "u0001")

		is.NoErr(s.Unchecked().RemoveDomain(ctx, "acme", "ldap", "root"))
		content, err = s.Unchecked().DomainContent(ctx, "acme")
		is.NoErr(err)
		is.Equal(
			content,
			map[string]principals.DomainCounts{"local": {Users: 1, Teams: 1}, "saml": {Users: 1, Identified: 1}},
		)
		is.Equal(f.content.owned, map[string]int{"acme/root": 9, "acme/eve": 7, "evil/u0001": 8})
		is.Equal(len(forgotten), 1206)
		is.True(forgotten[entity.Key{Kind: "domain", ID: "ldap"}] &&
			forgotten[entity.Key{Kind: "user", ID: "u0001"}] && forgotten[entity.Key{Kind: "team", ID: all.ID}])
		is.Equal(f.roster(t, own.ID), "")
		_, err = f.blobs.Open(ctx, "acme", picture)
		is.Equal(code(err), errs.NotFound)
		_, err = f.store.User(ctx, "evil", "eve")
		is.NoErr(err)
		is.NoErr(s.Unchecked().RemoveDomain(ctx, "acme", "ldap", own.ID)) // nothing is left, and a team can get it
	})
}

// TestRemoveDomainKeepsASuperuser, and is nothing at all when it cannot.
func TestRemoveDomainKeepsASuperuser(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		f.scan(t, snapshot{People: people("boss", "jo")})
		f.user(t, "local")
		is.NoErr(f.Unchecked().RemoveDomain(ctx, "acme", "ldap", "local")) // there was none before
		f.scan(t, snapshot{People: people("boss", "jo")})
		f.edit(t, "boss", func(u *principals.User) { u.Superuser = true })
		f.content.owned["acme/boss"] = 1
		err := f.Unchecked().RemoveDomain(ctx, "acme", "ldap", "local")
		is.Equal(code(err), errs.Conflict)
		f.get(t, "jo")
		f.edit(t, "local", func(u *principals.User) { u.Superuser = true })
		is.NoErr(f.Unchecked().RemoveDomain(ctx, "acme", "ldap", "local"))
		f.gone(t, "jo")
	})
}

// TestKnownDomains: users and teams get domains that exist.
func TestKnownDomains(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, asked := is.New(t), 0
		s := principals.New(principals.Options{
			Store: f.store, Cost: cheap, Now: func() time.Time { return f.now },
			Domains: knownDomains(func(ctx context.Context, tenant, id string) error {
				_, err := f.store.DomainCounts(ctx, tenant) // it can read
				is.NoErr(err)
				is.Equal(tenant, "acme")
				if asked++; id != "ldap" {
					return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
				}
				return nil
			}),
		})
		user := func(name, domain string) error {
			_, err := s.CreateUser(root(t), principals.User{Username: name, Domain: domain}, "")
			return err
		}
		team := func(slug, domain string) error {
			_, err := s.CreateTeam(root(t), principals.Team{Name: "x", Slug: slug, Domain: domain})
			return err
		}
		moveUser := func(name, domain string) error {
			_, err := s.UpdateUser(root(t), name, func(u *principals.User) error { u.Domain = domain; return nil })
			return err
		}
		moveTeam := func(slug, domain string) error {
			_, err := s.UpdateTeam(root(t), slug, func(t *principals.Team) error { t.Domain = domain; return nil })
			return err
		}
		for _, c := range []struct {
			do           func(name, domain string) error
			name, domain string
			want         errs.Code
			asks         int
		}{
			{user, "a", "", "ok", 0}, {user, "b", "local", "ok", 0},
			{user, "c", "ldap", "ok", 1}, {user, "d", "saml", errs.Invalid, 1},
			{moveUser, "a", "ldap", "ok", 1}, {moveUser, "a", "ldap", "ok", 0},
			{moveUser, "a", "saml", errs.Invalid, 1}, {moveUser, "a", "local", errs.Invalid, 0},
			{team, "a", "", "ok", 0}, {team, "c", "ldap", "ok", 1}, {team, "d", "saml", errs.Invalid, 1},
			{moveTeam, "a", "ldap", "ok", 1}, {moveTeam, "a", "ldap", "ok", 0},
			{moveTeam, "a", "saml", errs.Invalid, 1}, {moveTeam, "a", "", "ok", 0},
		} {
			asked = 0
			is.Equal(code(c.do(c.name, c.domain)), c.want)
			is.Equal(asked, c.asks)
		}
		f.gone(t, "d")
		is.Equal(f.get(t, "a").Domain, "ldap") // local needs a password
	})
}

// knownDomains are the Domains of tests: those that it returns no error for, which their users can
// log in at.
type knownDomains func(ctx context.Context, tenant, id string) error

// CheckKnown implements principals.Domains.
func (f knownDomains) CheckKnown(ctx context.Context, tenant, id string) error {
	return f(ctx, tenant, id)
}

// CheckUsable implements principals.Domains.
func (knownDomains) CheckUsable(context.Context, string, string) error { return nil }

// CheckUser implements principals.Domains.
func (knownDomains) CheckUser(context.Context, string, principals.Move) error { return nil }

// CheckEmail implements principals.Domains.
func (knownDomains) CheckEmail(context.Context, string, string) error { return nil }
