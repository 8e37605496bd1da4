package actor_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestFromFailsClosed(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"no actor":  t.Context(),
		"no tenant": actor.With(t.Context(), actor.Actor{User: "jo", Superuser: true}),
		"no user":   actor.With(t.Context(), actor.Actor{Tenant: "acme", Superuser: true}),
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			_, err := actor.From(ctx)
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
			_, err = actor.Allowed(ctx, "")
			is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		})
	}
}

func TestPermissions(t *testing.T) {
	team := func(r actor.Role) actor.Actor {
		return actor.Actor{Tenant: "acme", User: "jo", Teams: map[string]actor.Role{"a": actor.Member, "b": r}}
	}
	for _, c := range []struct {
		name       string
		actor      actor.Actor
		colorWrite bool
		superuser  bool
	}{
		{"nobody", actor.Actor{}, false, false},
		{"member", team(actor.Member), false, false},
		{"designer", team(actor.Designer), true, false},
		{"data wizard", team(actor.DataWizard), true, false},
		{"publisher", team(actor.Publisher), true, false},
		{"admin", team(actor.Admin), true, false},
		{"superuser without a team", actor.Actor{Superuser: true}, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(c.actor.Can(actor.ColorWrite), c.colorWrite)
			is.Equal(c.actor.Can(actor.Superuser), c.superuser)
			is.Equal(c.actor.Can("unheard:of"), c.superuser) // only superusers have an unknown permission
			is.True(c.actor.Can(""))
			is.Equal(c.actor.Require(actor.Superuser) == nil, c.superuser)
		})
	}
}

func TestReadOnlyMayNothingThatWrites(t *testing.T) {
	is := is.New(t)
	a := actor.Actor{Tenant: "acme", User: "jo", Superuser: true, ReadOnly: true}
	is.True(a.Can(""))
	is.True(!a.Can(actor.ColorWrite))
	is.Equal(errs.MessageOf(a.Require(actor.Superuser)), "This token can only read.")
}

func TestRoleNames(t *testing.T) {
	is := is.New(t)
	for r := actor.Member; r <= actor.Admin; r++ {
		got, err := actor.ParseRole(r.String())
		is.NoErr(err)
		is.Equal(got, r)
	}
	for _, bad := range []string{"", "Admin", "owner", "ADMIN"} {
		_, err := actor.ParseRole(bad)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	is.Equal(actor.Role(99).String(), "")
}

func TestCapped(t *testing.T) {
	is := is.New(t)
	of := func(r actor.Role) actor.Actor { return actor.Actor{Teams: map[string]actor.Role{"x": r}} }
	admin := actor.Actor{
		Tenant:  "acme",
		User:    "jo",
		AI:      true,
		Session: "s",
		Teams:   map[string]actor.Role{"a": actor.Admin, "b": actor.Member},
	}
	got := admin.Capped(of(actor.Designer))
	is.Equal(got, actor.Actor{
		Tenant:  "acme",
		User:    "jo",
		Session: "s",
		Teams:   map[string]actor.Role{"a": actor.Designer, "b": actor.Member},
	})
	is.Equal(admin.Teams["a"], actor.Admin) // Capped returns a copy
	is.Equal(got.Capped(of(actor.Admin)), got)
	// the memberships remain
	is.Equal(admin.Capped(actor.Actor{}).Teams, map[string]actor.Role{"a": actor.NoRole, "b": actor.NoRole})
	is.Equal(admin.Capped(actor.Actor{Superuser: true}), admin)

	root := actor.Actor{Tenant: "acme", User: "root", Superuser: true, Teams: map[string]actor.Role{"a": actor.Member}}
	got = root.Capped(of(actor.Publisher))
	is.Equal(got, actor.Actor{
		Tenant: "acme",
		User:   "root",
		Wide:   actor.Publisher,
		Teams:  map[string]actor.Role{"a": actor.Member},
	})
	is.Equal(got.Role(), actor.Publisher)
	is.True(!got.Owns("a") && !got.Owns("b") && got.Owns("root"))
	is.Equal(got.Capped(of(actor.Member)).Role(), actor.Member)
	is.Equal(got.Capped(actor.Actor{Superuser: true}), got)
	root.AI = true
	is.Equal(root.Capped(actor.Actor{Superuser: true, AI: true}), root)
}
