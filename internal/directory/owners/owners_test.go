package owners_test

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/owners"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// world is an App with two tenants that have a user jo each, and a Finder over its services.
type world struct {
	*tenantcontent.App
	finder  *owners.Finder
	changes uint64
}

func newWorld(t *testing.T, open dbtest.Opener) *world {
	t.Helper()
	is := is.New(t)
	app, err := tenantcontent.Open(tenantcontent.Config{DB: open(t), SecretKey: tenantcontent.NewSecretKey()})
	is.NoErr(err)
	t.Cleanup(func() { is.NoErr(app.Close()) })
	w := &world{App: app}
	w.finder = owners.New(owners.Options{
		Tenants: app.Tenants.Unchecked(), Principals: app.Principals, ActorOf: app.Sessions.Unchecked().ActorOf,
		Changes: func(string) uint64 { return w.changes },
	})
	for _, tenant := range []string{"one", "two"} {
		_, err := app.AddTenant(t.Context(), tenants.Tenant{ID: tenant, Name: tenant}, "a long password")
		is.NoErr(err)
		name, email := "Jo of "+tenant, "jo@"+tenant+".example"
		_, err = app.Principals.CreateUser(root(t.Context(), tenant), principals.User{
			Username: "jo", Enabled: true, DisplayName: &name, Email: &email,
		}, "a long password")
		is.NoErr(err)
	}
	return w
}

func root(ctx context.Context, tenant string) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
}

func TestOwnerIsAUserWithTheRightsOfTheMoment(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		o, err := w.finder.Owner(t.Context(), "one", "jo")
		is.NoErr(err)
		is.Equal(o.Actor.Tenant, "one")
		is.Equal(o.Actor.User, "jo")
		is.True(!o.Actor.Superuser)
		is.Equal(o.User.DisplayName, "Jo of one") // not that of the tenant two
		is.Equal(o.User.Email, "jo@one.example")

		_, err = w.Principals.UpdateUser(root(t.Context(), "one"), "jo", func(u *principals.User) error {
			u.Enabled = false
			return nil
		})
		is.NoErr(err)
		w.changes++
		_, err = w.finder.Owner(t.Context(), "one", "jo")
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		_, err = w.finder.Owner(t.Context(), "two", "jo")
		is.NoErr(err)
		for _, principal := range []string{"nobody", uuid.NewString()} {
			_, err = w.finder.Owner(t.Context(), "two", principal)
			is.True(err != nil)
		}
		_, err = w.finder.Owner(t.Context(), "two", "")
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
	})
}

func TestTeamIsAMemberOfItself(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		team, err := w.Principals.CreateTeam(root(t.Context(), "one"), principals.Team{Name: "Sales"})
		is.NoErr(err)
		o, err := w.finder.Owner(t.Context(), "one", team.ID)
		is.NoErr(err)
		is.Equal(o.User.Type, "Team")
		is.Equal(o.User.Name, "Sales")
		is.Equal(o.Actor.Teams, map[string]actor.Role{team.ID: actor.Member})
		is.True(!o.Actor.Superuser && !o.Actor.AI)
		_, err = w.finder.Owner(t.Context(), "two", team.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)

		agent, err := w.finder.Agent(t.Context(), "one", team.ID)
		is.NoErr(err)
		is.True(agent.AI) // its members decide what its agents do
		agent, err = w.finder.Agent(t.Context(), "one", "jo")
		is.NoErr(err)
		is.True(!agent.AI)
	})
}
