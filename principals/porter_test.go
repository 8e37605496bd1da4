package principals_test

import (
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

func (f *fixture) types() (user, team entity.Type) {
	types := principals.Types(principals.Options{Store: f.store, Blobs: f.blobs, Now: func() time.Time { return f.now }})
	return types[0], types[1]
}

func exported(t testing.TB, p entity.Porter, tenant string) []entity.Row {
	t.Helper()
	is := is.New(t)
	ids, err := p.IDs(t.Context(), tenant)
	is.NoErr(err)
	var rows []entity.Row
	for r, err := range p.Export(t.Context(), tenant, ids) {
		is.NoErr(err)
		rows = append(rows, r)
	}
	return rows
}

func userRow(name, text string) []entity.Row {
	return []entity.Row{{Key: entity.Key{Kind: "user", ID: name}, JSON: []byte(text)}}
}

func TestTypes(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		made, err := f.CreateTeam(root(t), principals.Team{Name: "Design"})
		is.NoErr(err)
		user, team := f.types()
		is.True(!user.Commented && team.Commented)
		ref, err := user.Lookup(t.Context(), "acme", "jo")
		is.NoErr(err)
		is.Equal(ref, entity.Ref{Kind: "user", ID: "jo", Name: "jo"})
		for _, key := range []string{made.ID, "design"} {
			ref, err := team.Lookup(t.Context(), "acme", key)
			is.NoErr(err)
			is.Equal(ref, entity.Ref{Kind: "team", ID: made.ID, Name: "Design"})
		}
		for _, key := range []string{"JO", "none", "a b", "\x00", ""} {
			_, err := user.Lookup(t.Context(), "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
			_, err = team.Lookup(t.Context(), "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		known, err := f.Known(t.Context(), "acme", []string{"jo", "none"})
		is.NoErr(err)
		is.Equal(known, map[string]bool{"jo": true})
	})
}

func TestUserPorter(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for n := range 3 {
			name := fmt.Sprintf("u%d", n)
			f.user(t, name)
			_, err := f.UpdateUser(root(t), name, func(u *principals.User) error {
				u.DisplayName, u.Superuser, u.GlobalPermissions.AI, u.Data = &name, n == 0, true, []byte(`{"a":"<b>"}`)
				return nil
			})
			is.NoErr(err)
		}
		user, _ := f.types()
		rows := exported(t, user.Porter, "acme")
		for _, r := range rows {
			for _, secret := range []string{"password", "argon", "superuser", "locked", "avatar"} {
				is.True(!strings.Contains(strings.ToLower(string(r.JSON)), secret))
			}
		}
		land := entity.Landing{Rule: entity.Fail, Owner: "eve"}
		arrivals, warnings, err := user.Porter.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(arrivals, []entity.Arrival{entity.Created, entity.Created, entity.Created})
		is.Equal(len(warnings), 0)
		is.Equal(exported(t, user.Porter, "evil"), rows) // the same bytes
		u, err := f.store.User(ctx, "evil", "u0")
		is.NoErr(err)
		is.Equal([]any{u.Superuser, u.PasswordSetAt == nil, u.GlobalPermissions.AI}, []any{false, true, true})

		_, _, err = user.Porter.Import(ctx, "evil", rows, land)
		is.Equal(errs.MessageOf(err), "user u0 exists already.")
		land.Rule = entity.Overwrite
		asks := `{"superuser": true, "passwordHash": "x", "locked": true, "enabled": false, "SUPERUSER": true, "domain": "corp"}`
		arrivals, _, err = user.Porter.Import(ctx, "acme", userRow("u1", asks), land)
		is.NoErr(err)
		is.Equal(arrivals, []entity.Arrival{entity.Updated})
		u, err = f.store.User(ctx, "acme", "u1")
		is.NoErr(err)
		is.Equal([]any{u.Superuser, u.Enabled, u.Domain, u.PasswordSetAt != nil}, []any{false, false, principals.Local, true})
		for name, text := range map[string]string{"u 9": `{}`, "u9": `{"email": "no"}`, "u8": `{"data": []}`, "u7": `{"enabled": "yes"}`, "u6": `[]`} {
			_, _, err := user.Porter.Import(ctx, "acme", userRow(name, text), land)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "user "+name+": "))
		}
		_, _, err = user.Porter.Import(ctx, "acme", userRow("U1", `{}`), land)
		is.Equal(errs.MessageOf(err), "user U1: the name belongs to u1.")
		_, _, err = user.Porter.Import(ctx, "acme", append(userRow("x", `{}`), userRow("X", `{}`)...), land)
		is.Equal(errs.MessageOf(err), "user X: the name belongs to x.")

		_, err = user.Porter.Remove(ctx, "acme", []string{"u0", "u1"})
		is.Equal(errs.CodeOf(err), errs.Conflict) // u0 is the last superuser
		n, err := user.Porter.Remove(ctx, "acme", []string{"u1", "u2", "none"})
		is.NoErr(err)
		is.Equal(n, 2)
		needs, err := user.Porter.Needs(ctx, "acme", []string{"u0", "u1"})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{"u0": nil})
	})
}

func TestTeamPorter(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		f.user(t, "jo")
		f.user(t, "mia")
		made, err := f.CreateTeam(root(t), principals.Team{Name: "Design"})
		is.NoErr(err)
		_, err = f.SetMember(root(t), made.ID, "jo", actor.Designer)
		is.NoErr(err)
		_, err = f.SetMember(root(t), made.ID, "mia", actor.Admin)
		is.NoErr(err)
		_, team := f.types()
		rows := exported(t, team.Porter, "acme")
		is.True(strings.Contains(string(rows[0].JSON), `"members":{"jo":"designer","mia":"admin"}`))

		land := entity.Landing{Rule: entity.Overwrite, Owner: "eve"}
		evil := as(t, actor.Actor{Tenant: "evil", User: "root", Superuser: true})
		for _, name := range []string{"jo", "stranger"} {
			_, err := f.CreateUser(evil, principals.User{Username: name}, "")
			is.NoErr(err)
		}
		arrivals, warnings, err := team.Porter.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(arrivals, []entity.Arrival{entity.Created})
		is.Equal(warnings, []string{"team " + made.ID + ": its member mia is not a user here and is left out."})
		_, err = f.SetMember(evil, made.ID, "stranger", actor.Admin)
		is.NoErr(err)
		_, err = f.SetMember(evil, made.ID, "jo", actor.Member)
		is.NoErr(err)
		arrivals, _, err = team.Porter.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(arrivals, []entity.Arrival{entity.Updated})
		members, err := f.Members(evil, made.ID)
		is.NoErr(err)
		is.Equal(len(members), 1) // those of the row alone
		is.Equal(members[0].Username+members[0].Role.String(), "jodesigner")

		id := "01932e00-0000-7000-8000-000000000009"
		for text, want := range map[string]string{
			`{"name": "x", "slug": "design"}`:                         "the slug design belongs to " + made.ID + ".",
			`{"name": "x", "slug": "a b"}`:                            "slug must be",
			`{"name": "x", "slug": "x", "members": {"jo": "boss"}}`:   "members: jo: role must be",
			`{"name": "x", "slug": "x", "members": {"j o": "admin"}}`: "members: j o: username must",
			`{"name": "x", "slug": "x", "members": ["jo"]}`:           "members must be an object of strings",
			`{"slug": "x"}`: "name must be",
		} {
			_, _, err := team.Porter.Import(ctx, "evil", []entity.Row{{Key: entity.Key{Kind: "team", ID: id}, JSON: []byte(text)}}, land)
			is.True(err != nil)
			is.True(strings.HasPrefix(errs.MessageOf(err), "team "+id+": "+want))
		}
		n, err := team.Porter.Remove(ctx, "evil", []string{made.ID, id})
		is.NoErr(err)
		is.Equal(n, 1)
		needs, err := team.Porter.Needs(ctx, "acme", []string{made.ID, id})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{made.ID: nil})
	})
}
