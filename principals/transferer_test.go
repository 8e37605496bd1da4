package principals_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/transfertest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

func (f *fixture) types() (user, team entity.Type) {
	types := principals.New(principals.Options{Store: f.store, Blobs: f.blobs, Now: func() time.Time {
		return f.now
	}}).Unchecked().Types()
	return types[0], types[1]
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
		for _, name := range []string{"jo", "JO"} {
			ref, err := user.Lookup(t.Context(), "acme", name)
			is.NoErr(err)
			is.Equal(ref, entity.Ref{Kind: "user", ID: "jo", Name: "jo"})
		}
		for _, key := range []string{made.ID, "design"} {
			ref, err := team.Lookup(t.Context(), "acme", key)
			is.NoErr(err)
			is.Equal(ref, entity.Ref{Kind: "team", ID: made.ID, Name: "Design"})
		}
		for _, key := range []string{"joe", "none", "a b", "\x00", ""} {
			_, err := user.Lookup(t.Context(), "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
			_, err = team.Lookup(t.Context(), "acme", key)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		known, err := f.Unchecked().Known(t.Context(), "acme", []string{"jo", "none"})
		is.NoErr(err)
		is.Equal(known, map[string]bool{"jo": true})
	})
}

func TestUserTransferer(t *testing.T) {
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
		rows := transfertest.Rows(t, user.Transferer, "acme")
		for _, r := range rows {
			for _, secret := range []string{"password", "argon", "superuser", "locked", "avatar"} {
				is.True(!strings.Contains(strings.ToLower(string(r.JSON)), secret))
			}
		}
		land := entity.ImportOptions{Rule: entity.Fail, Owner: "eve"}
		actions, warnings, err := user.Transferer.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Created, entity.Created, entity.Created})
		is.Equal(warnings, []string{
			"3 users came without the global permissions that the archive has: grant them again here.",
		})
		for i, r := range transfertest.Rows(t, user.Transferer, "evil") {
			// otherwise the same bytes
			is.Equal(string(r.JSON), strings.Replace(string(rows[i].JSON), `"ai":true`, `"ai":false`, 1))
		}
		u, err := f.store.User(ctx, "evil", "u0")
		is.NoErr(err)
		is.Equal(
			[]any{u.Superuser, u.PasswordSetAt == nil, u.GlobalPermissions, u.Enabled},
			[]any{false, true, principals.GlobalPermissions{}, true},
		)

		_, _, err = user.Transferer.Import(ctx, "evil", rows, land)
		is.Equal(errs.MessageOf(err), "user u0 exists already.")
		land.Rule = entity.Overwrite
		for name, text := range map[string]string{
			"u/9": `{}`,
			"u9":  `{"email": "no"}`,
			"u8":  `{"data": []}`,
			"u7":  `{"enabled": "yes"}`,
			"u6":  `[]`,
		} {
			_, _, err := user.Transferer.Import(ctx, "acme", userRow(name, text), land)
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.HasPrefix(errs.MessageOf(err), "user "+name+": "))
		}
		_, _, err = user.Transferer.Import(ctx, "acme", userRow("U1", `{}`), land)
		is.Equal(errs.MessageOf(err), "user U1: the name belongs to u1.")
		_, _, err = user.Transferer.Import(ctx, "acme", append(userRow("x", `{}`), userRow("X", `{}`)...), land)
		is.Equal(errs.MessageOf(err), "user X: the name belongs to x.")

		_, err = user.Transferer.Remove(ctx, "acme", []string{"u0", "u1"})
		is.Equal(errs.CodeOf(err), errs.Conflict) // u0 is the last superuser
		n, err := user.Transferer.Remove(ctx, "acme", []string{"u1", "u2", "none"})
		is.NoErr(err)
		is.Equal(n, 2)
		needs, err := user.Transferer.Needs(ctx, "acme", []string{"u0", "u1"})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{"u0": nil})
	})
}

// TestNobodyGetsRights from an archive that whoever made it likes: those who are there neither rise
// nor fall, superusers keep even their e-mail, and those who are new begin with nothing.
// TestTypedEmailsTravel: an address that a user has typed finds nobody for single sign-on after an
// import either, in the same tenant or another one.
func TestTypedEmailsTravel(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for name, by := range map[string]context.Context{
			"typed": as(t, actor.Actor{Tenant: "acme", User: "typed"}),
			"given": root(t),
		} {
			f.user(t, name)
			_, err := f.UpdateUser(by, name, func(u *principals.User) error {
				u.Email = text(name + "@example.com")
				return nil
			})
			is.NoErr(err)
		}
		user, _ := f.types()
		rows := transfertest.Rows(t, user.Transferer, "acme")
		rows = append(rows, userRow("old", `{"email": "old@example.com"}`)...)
		rows = append(rows, userRow("scanned", `{"email": "scanned@example.com", "source": "AD"}`)...)
		for _, tenant := range []string{"acme", "evil"} {
			_, _, err := user.Transferer.Import(
				ctx, tenant, rows, entity.ImportOptions{Rule: entity.Overwrite, Owner: "eve"},
			)
			is.NoErr(err)
			for name, typed := range map[string]bool{"typed": true, "given": false, "old": true, "scanned": false} {
				u, err := f.store.User(ctx, tenant, name)
				is.NoErr(err)
				is.Equal(u.EmailTyped, typed)
				found, err := f.store.UsersWithEmail(ctx, tenant, "local", name+"@example.com")
				is.NoErr(err)
				is.Equal(len(found) == 0, typed)
			}
		}
	})
}

func TestNobodyGetsRights(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx, mail := is.New(t), t.Context(), "boss@acme.example"
		for name, edit := range map[string]func(*principals.User){
			"boss": func(u *principals.User) { u.Superuser, u.Email = true, &mail },
			"jo":   func(u *principals.User) { u.GlobalPermissions.AI = true },
			"left": func(u *principals.User) { u.Enabled = false },
		} {
			f.user(t, name)
			_, err := f.UpdateUser(root(t), name, func(u *principals.User) error { edit(u); return nil })
			is.NoErr(err)
		}
		before, err := f.store.User(ctx, "acme", "boss")
		is.NoErr(err)
		all := `{"superuser": true, "SUPERUSER": true, "enabled": %t, "ai": true, "jobCreation": true, "viewAllTeams": true, "viewAllUsers": true,
			"painlessScriptCreation": true, "globalPermissions": {"ai": true}, "email": "eve@evil.example", "displayName": "Boss", "domain": "corp",
			"source": "corp", "sourceId": "cn=eve", "password": "x", "passwordHash": "x", "locked": %t, "data": {"a": 1}, "createdAt": "2001-01-01T00:00:00Z"}`
		user, _ := f.types()
		for name, enabled := range map[string]bool{
			"boss":    false,
			"jo":      false,
			"left":    true,
			"new":     true,
			"newleft": false,
		} {
			actions, warnings, err := user.Transferer.Import(
				ctx, "acme", userRow(name, fmt.Sprintf(all, enabled, !enabled)),
				entity.ImportOptions{Rule: entity.Overwrite},
			)
			is.NoErr(err)
			u, err := f.store.User(ctx, "acme", name)
			is.NoErr(err)
			is.Equal(u.Locked || u.LockedAt != nil, false)
			want := map[string]struct {
				action  entity.ImportAction
				warning string
				rights  string
			}{
				"boss": {
					entity.Skipped, "user boss is a superuser here and stays as it is.",
					"true true {false false false false false} local",
				},
				"jo": {
					entity.Updated,
					"1 user kept domain, global permissions and whether enabled as they are here, where the " +
						"archive has others.",
					"false true {true false false false false} local",
				},
				"left": {
					entity.Updated,
					"1 user kept domain, global permissions and whether enabled as they are here, where the " +
						"archive has others.",
					"false false {false false false false false} local",
				},
				"new": {
					entity.Created,
					"1 user came without the global permissions that the archive has: grant them again here.",
					"false true {false false false false false} corp",
				},
				"newleft": {
					entity.Created,
					"1 user came without the global permissions that the archive has: grant them again here.",
					"false false {false false false false false} corp",
				},
			}[name]
			is.Equal(actions, []entity.ImportAction{want.action})
			is.Equal(warnings[0], want.warning)
			if want.action != entity.Skipped {
				is.Equal(warnings[1:], []string{
					"1 user got no superuser right, which the archive asks for: no import gives it.",
				})
			}
			is.Equal(fmt.Sprintln(u.Superuser, u.Enabled, u.GlobalPermissions, u.Domain), want.rights+"\n")
			is.Equal(u.PasswordSetAt != nil, want.action != entity.Created) // their own, or none
			if want.action == entity.Updated {
				is.Equal(
					[]any{*u.Email, *u.DisplayName, string(u.Data), u.SourceID == nil},
					[]any{"eve@evil.example", "Boss", `{"a":1}`, true},
				)
			}
		}
		after, err := f.store.User(ctx, "acme", "boss")
		is.NoErr(err)
		is.Equal(after, before) // every field
		_, _, err = user.Transferer.Import(
			ctx, "acme", userRow("BOSS", `{"email": "eve@evil.example"}`),
			entity.ImportOptions{Rule: entity.Overwrite},
		)
		is.Equal(errs.MessageOf(err), "user BOSS: the name belongs to boss.")
	})
}

// TestSecretsOfUsers stay behind, and an import keeps those that are here.
func TestSecretsOfUsers(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for _, name := range []string{"jo", "mia"} {
			f.user(t, name)
			_, err := f.UpdateUser(root(t), name, func(u *principals.User) error {
				u.Data, u.UserFields = []byte(`{"apiKey":"k-`+name+`","n":1.0}`), []byte(`{"x":[{"pwd":"p-`+name+`"}]}`)
				return nil
			})
			is.NoErr(err)
		}
		user, _ := f.types()
		rows := transfertest.Rows(t, user.Transferer, "acme")
		is.True(strings.Contains(
			string(rows[0].JSON),
			`"data":{"apiKey":"********","n":1.0},"userFields":{"x":[{"pwd":"********"}]}`,
		))
		land := entity.ImportOptions{Rule: entity.Overwrite}
		_, err := f.UpdateUser(root(t), "jo", func(u *principals.User) error {
			u.Data = []byte(`{"apiKey":"new","n":2}`)
			return nil
		})
		is.NoErr(err)
		_, err = user.Transferer.Remove(ctx, "acme", []string{"mia"})
		is.NoErr(err)
		_, warnings, err := user.Transferer.Import(ctx, "acme", rows, land)
		is.NoErr(err)
		is.Equal(warnings, []string{
			"2 secrets of 1 user row did not travel: set them again here.",
			"1 secret of 1 user row stayed while what is around them changed: check where they go.", // n is 1.0 again
		})
		for name, want := range map[string]string{
			"jo":  `{"apiKey":"new","n":1.0}{"x":[{"pwd":"p-jo"}]}`,
			"mia": `{"n":1.0}{"x":[{}]}`,
		} {
			u, err := f.store.User(ctx, "acme", name)
			is.NoErr(err)
			is.Equal(string(u.Data)+string(u.UserFields), want)
		}
	})
}

// TestWhatUsersSayTravels, however long their rows are with masks in the places of their secrets.
func TestWhatUsersSayTravels(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		ctx, admin := t.Context(), root(t)
		user, _ := f.types()
		travels := func(t is.T, data, fields []byte) {
			is := is.New(t)
			_, err := f.UpdateUser(admin, "jo", func(u *principals.User) error {
				u.Data, u.UserFields = data, fields
				return nil
			})
			is.NoErr(err)
			transfertest.Travels(ctx, t, user.Transferer, "acme", "evil", "jo")
			for _, tenant := range []string{"acme", "evil"} {
				u, err := f.store.User(ctx, tenant, "jo")
				is.NoErr(err)
				for _, free := range [][2][]byte{{u.Data, data}, {u.UserFields, fields}} {
					bare, _ := entity.KeepSecrets(free[1], nil)
					is.True(string(free[0]) == string(bare)) // all but the secrets
				}
			}
		}
		f.user(t, "jo")
		rapid.Check(t, func(t *rapid.T) {
			travels(t, transfertest.Free().Draw(t, "data"), transfertest.Free().Draw(t, "userFields"))
		})
		for _, fat := range transfertest.Fat(64 << 10) {
			travels(t, fat, fat)
		}
		for data, want := range map[string]string{
			`{"a":"\u0000"}`: "userFields must not have NUL characters or halves of surrogate pairs",
			strings.Repeat(`{"":`, 500) + `{}` +
				strings.Repeat(`}`, 500): "userFields must not be nested more than 500 levels deep",
		} {
			_, err := f.UpdateUser(root(t), "jo", func(u *principals.User) error {
				u.UserFields = []byte(data)
				return nil
			})
			is.New(t).Equal(errs.MessageOf(err), want)
		}
		long := `{"a":"` + strings.Repeat("x", 64<<10) + `"}`
		_, _, err := user.Transferer.Import(
			ctx, "evil", userRow("jo", `{"data":`+long+`}`), entity.ImportOptions{Rule: entity.Overwrite},
		)
		is.New(t).Equal(errs.MessageOf(err), "user jo: data must be a JSON object of at most 65536 bytes")
	})
}

func TestTeamTransferer(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		f.user(t, "jo")
		f.user(t, "mia")
		made, err := f.CreateTeam(root(t), principals.Team{Name: "Design"})
		is.NoErr(err)
		_, err = f.PutMember(root(t), made.ID, "jo", actor.Designer)
		is.NoErr(err)
		_, err = f.PutMember(root(t), made.ID, "mia", actor.Admin)
		is.NoErr(err)
		_, team := f.types()
		rows := transfertest.Rows(t, team.Transferer, "acme")
		is.True(strings.Contains(string(rows[0].JSON), `"members":{"jo":"designer","mia":"admin"}`))

		land := entity.ImportOptions{Rule: entity.Overwrite, Owner: "eve"}
		evil := as(t, actor.Actor{Tenant: "evil", User: "root", Superuser: true})
		for _, name := range []string{"jo", "stranger"} {
			_, err := f.CreateUser(evil, principals.User{Username: name}, "")
			is.NoErr(err)
		}
		actions, warnings, err := team.Transferer.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Created})
		is.Equal(warnings, []string{
			"team " + made.ID + ": its member mia is not a user here and is left out.",
			"team " + made.ID + ": 1 user got a higher role in it than before: jo is designer.",
		})
		_, err = f.PutMember(evil, made.ID, "stranger", actor.Admin)
		is.NoErr(err)
		_, err = f.PutMember(evil, made.ID, "jo", actor.Member)
		is.NoErr(err)
		actions, warnings, err = team.Transferer.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(actions, []entity.ImportAction{entity.Updated})
		is.Equal(warnings[1:], []string{ // jo was but a member
			"team " + made.ID + ": 1 user got a higher role in it than before: jo is designer.",
			"team " + made.ID + ": 1 user got a lower role in it than before: stranger is no member.",
		})
		_, warnings, err = team.Transferer.Import(ctx, "evil", rows, land)
		is.NoErr(err)
		is.Equal(len(warnings), 1) // nobody rises
		u, err := f.store.User(ctx, "evil", "jo")
		is.NoErr(err)
		is.True(!u.Superuser)
		members, err := f.Members(evil, made.ID, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(len(members.Rows), 1) // those of the row alone
		is.Equal(members.Rows[0].Username+members.Rows[0].Role.String(), "jodesigner")

		id := "01932e00-0000-7000-8000-000000000009"
		for text, want := range map[string]string{
			`{"name": "x", "slug": "design"}`:                         "the slug design belongs to " + made.ID + ".",
			`{"name": "x", "slug": "a b"}`:                            "slug must be",
			`{"name": "x", "slug": "x", "members": {"jo": "boss"}}`:   "members: jo: role must be",
			`{"name": "x", "slug": "x", "members": {"j/o": "admin"}}`: "members: j/o: username must",
			`{"name": "x", "slug": "x", "members": ["jo"]}`:           "members must be an object of strings",
			`{"slug": "x"}`: "name must be",
		} {
			_, _, err := team.Transferer.Import(ctx, "evil", []entity.Row{{
				Key:  entity.Key{Kind: "team", ID: id},
				JSON: []byte(text),
			}}, land)
			is.True(err != nil)
			is.True(strings.HasPrefix(errs.MessageOf(err), "team "+id+": "+want))
		}
		crowd := []string{}
		for n := range 12 {
			name := fmt.Sprintf("u%02d", n)
			_, err := f.CreateUser(evil, principals.User{Username: name}, "")
			is.NoErr(err)
			crowd = append(crowd, fmt.Sprintf(`"%s": "admin"`, name))
		}
		text := `{"name": "Crowd", "slug": "crowd", "members": {` + strings.Join(crowd, ",") + `}}`
		_, warnings, err = team.Transferer.Import(ctx, "evil", []entity.Row{{
			Key:  entity.Key{Kind: "team", ID: id},
			JSON: []byte(text),
		}}, land)
		is.NoErr(err)
		is.Equal(len(warnings), 1)
		is.True(strings.HasPrefix(
			warnings[0],
			"team "+id+": 12 users got a higher role in it than before: u00 is admin, u01 is admin, ",
		))
		is.True(strings.HasSuffix(warnings[0], "u09 is admin, …."))
		text = `{"name": "Crowd", "slug": "crowd", "members": {"u00": "admin", "u11": "member", "u10": "designer"}}`
		_, warnings, err = team.Transferer.Import(ctx, "evil", []entity.Row{{
			Key:  entity.Key{Kind: "team", ID: id},
			JSON: []byte(text),
		}}, land)
		is.NoErr(err)
		is.Equal(warnings, []string{"team " + id +
			": 11 users got a lower role in it than before: u01 is no member, u02 is no member, " +
			"u03 is no member, u04 is no member, u05 is no member, u06 is no member, u07 is no member, u08 is no " +
			"member, u09 is no member, " +
			"u10 is designer, …."})
		n, err := team.Transferer.Remove(ctx, "evil", []string{id})
		is.NoErr(err)
		is.Equal(n, 1)
		n, err = team.Transferer.Remove(ctx, "evil", []string{made.ID, id})
		is.NoErr(err)
		is.Equal(n, 1)
		needs, err := team.Transferer.Needs(ctx, "acme", []string{made.ID, id})
		is.NoErr(err)
		is.Equal(needs, map[string][]entity.Key{made.ID: nil})
	})
}

// TestArrivingDomain: who comes from a domain that the tenant has not is of the domain local, or
// whoever makes it later would own them.
func TestArrivingDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		types := principals.New(principals.Options{
			Store: f.store, Blobs: f.blobs, Now: func() time.Time { return f.now },
			Domains: knownDomains(func(_ context.Context, _, id string) error {
				if id != "staff" {
					return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
				}
				return nil
			}),
		}).Unchecked().Types()
		into := entity.ImportOptions{Rule: entity.Overwrite, Owner: "admin", Warnings: &entity.Warnings{}}
		for name, want := range map[string]string{"staff": "staff", "nowhere": principals.Local} {
			_, _, err := types[0].Transferer.Import(
				t.Context(), "acme", userRow("of-"+name, `{"domain": "`+name+`", "enabled": true}`), into,
			)
			is.NoErr(err)
			got, err := f.User(root(t), "of-"+name)
			is.NoErr(err)
			is.Equal(got.Domain, want)
		}
		is.Equal(into.Warnings.Warnings(), []string{
			"1 user came from a domain that is not here and is of the domain local: its people cannot log in by it.",
		})
	})
}
