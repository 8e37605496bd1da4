package principals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

var (
	monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)
	cheap  = principals.Cost{Memory: 8, Time: 1, Threads: 1}
)

const password = "correct horse"

// fixture is a service over an empty database, whose clock the test moves.
type fixture struct {
	*principals.Service
	store   principals.Store
	blobs   blobs.Store
	now     time.Time
	content *content
	db      *bun.DB
}

// each runs a test on each database.
func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		f := &fixture{
			db:      db,
			store:   bunstore.New(db),
			blobs:   blobstore.New(db),
			now:     monday,
			content: &content{owned: map[string]int{}},
		}
		f.Service = principals.New(principals.Options{
			Store: f.store, Blobs: f.blobs, Content: f.content, Now: func() time.Time { return f.now }, Cost: cheap,
		})
		test(t, f)
	})
}

func as(t *testing.T, a actor.Actor) context.Context { return actor.With(t.Context(), a) }

// root is a superuser of acme.
func root(t *testing.T) context.Context {
	return as(t, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
}

// self is a user without a team.
func self(t *testing.T, name string) context.Context {
	return as(t, actor.Actor{Tenant: "acme", User: name})
}

func (f *fixture) user(t *testing.T, name string) principals.User {
	t.Helper()
	u, err := f.CreateUser(root(t), principals.User{Username: name, Enabled: true}, password)
	is.New(t).NoErr(err)
	return u
}

func (f *fixture) team(t *testing.T, name string) principals.Team {
	t.Helper()
	g, err := f.CreateTeam(root(t), principals.Team{Name: name})
	is.New(t).NoErr(err)
	return g
}

// code is an error's code, "ok" for none.
func code(err error) errs.Code {
	if err == nil {
		return "ok"
	}
	return errs.CodeOf(err)
}

func TestPermissions(t *testing.T) {
	const ok, no, none = "ok", errs.Forbidden, errs.NotFound
	type call = func(ctx context.Context, s *principals.Service, name, team string) error
	profile := func(u *principals.User) error { n := "New"; u.DisplayName = &n; return nil }
	table := []struct {
		name                             string
		call                             call
		member, admin, self, super, evil errs.Code
	}{
		{"Users", func(ctx context.Context, s *principals.Service, _, _ string) error {
			_, err := s.Users(ctx, paging.Query{})
			return err
		}, ok, ok, ok, ok, ok},
		{"User", func(ctx context.Context, s *principals.Service, name, _ string) error {
			_, err := s.User(ctx, name)
			return err
		}, ok, ok, ok, ok, none},
		{"CreateUser", func(ctx context.Context, s *principals.Service, name, _ string) error {
			_, err := s.CreateUser(ctx, principals.User{Username: name + "-new"}, "")
			return err
		}, no, no, no, ok, ok},
		{"UpdateUser profile", func(ctx context.Context, s *principals.Service, name, _ string) error {
			_, err := s.UpdateUser(ctx, name, profile)
			return err
		}, no, no, ok, ok, none},
		{"UpdateUser rights", func(ctx context.Context, s *principals.Service, name, _ string) error {
			_, err := s.UpdateUser(ctx, name, func(u *principals.User) error { u.Superuser = true; return nil })
			return err
		}, no, no, no, ok, none},
		{"DeleteUser", func(ctx context.Context, s *principals.Service, name, _ string) error {
			return s.DeleteUser(ctx, name, "")
		}, no, no, no, ok, none},
		{"SetPassword", func(ctx context.Context, s *principals.Service, name, _ string) error {
			return s.SetPassword(ctx, name, principals.PasswordChange{Current: password, New: "another horse"})
		}, no, no, ok, ok, none},
		{"Teams", func(ctx context.Context, s *principals.Service, _, _ string) error {
			_, err := s.Teams(ctx, paging.Query{})
			return err
		}, ok, ok, ok, ok, ok},
		{"Team", func(ctx context.Context, s *principals.Service, _, team string) error {
			_, err := s.Team(ctx, team)
			return err
		}, ok, ok, ok, ok, none},
		{"CreateTeam", func(ctx context.Context, s *principals.Service, _, _ string) error {
			_, err := s.CreateTeam(ctx, principals.Team{Name: "x"})
			return err
		}, no, no, no, ok, ok},
		{"UpdateTeam", func(ctx context.Context, s *principals.Service, _, team string) error {
			_, err := s.UpdateTeam(ctx, team, func(g *principals.Team) error { g.Name = "New"; return nil })
			return err
		}, no, ok, no, ok, none},
		{"UpdateTeam domain", func(ctx context.Context, s *principals.Service, _, team string) error {
			_, err := s.UpdateTeam(ctx, team, func(g *principals.Team) error { g.Domain = "ldap"; return nil })
			return err
		}, no, no, no, ok, none},
		{"DeleteTeam", func(ctx context.Context, s *principals.Service, _, team string) error {
			return s.DeleteTeam(ctx, team, "")
		}, no, no, no, ok, none},
		{"Members", func(ctx context.Context, s *principals.Service, _, team string) error {
			_, err := s.Members(ctx, team, paging.Query{})
			return err
		}, ok, ok, ok, ok, none},
		{"Memberships", func(ctx context.Context, s *principals.Service, name, _ string) error {
			_, err := s.Memberships(ctx, name, paging.Query{})
			return err
		}, ok, ok, ok, ok, none},
		{"SetMember", func(ctx context.Context, s *principals.Service, name, team string) error {
			_, err := s.PutMember(ctx, team, name, actor.Admin)
			return err
		}, no, ok, no, ok, none},
		{"RemoveMember", func(ctx context.Context, s *principals.Service, name, team string) error {
			return s.DeleteMember(ctx, team, name)
		}, no, ok, no, ok, none},
		{"Principals", func(ctx context.Context, s *principals.Service, _, _ string) error {
			for _, err := range s.Principals(ctx) {
				return err
			}
			return nil
		}, ok, ok, ok, ok, ok},
		{"Resolve", func(ctx context.Context, s *principals.Service, name, team string) error {
			_, err := s.Resolve(ctx, name)
			_, teamErr := s.Resolve(ctx, team)
			return errors.Join(err, teamErr)
		}, ok, ok, ok, ok, none},
	}
	each(t, func(t *testing.T, f *fixture) {
		is.New(t).NoErr(f.DeleteUser(root(t), f.user(t, "x").Username, ""))
		for i, row := range table {
			t.Run(row.name, func(t *testing.T) {
				is := is.New(t)
				is.Equal(code(row.call(t.Context(), f.Service, "x", "x")), errs.Unauthenticated)
				for j, want := range []errs.Code{row.member, row.admin, row.self, row.super, row.evil} {
					name := f.user(t, fmt.Sprintf("u%d-%d", i, j)).Username
					team := f.team(t, name).ID
					_, err := f.PutMember(root(t), team, name, actor.Member)
					is.NoErr(err)
					caller := []actor.Actor{
						{Tenant: "acme", User: "m", Teams: map[string]actor.Role{team: actor.Publisher}},
						{Tenant: "acme", User: "m", Teams: map[string]actor.Role{team: actor.Admin}},
						{Tenant: "acme", User: name},
						{Tenant: "acme", User: "root", Superuser: true},
						{Tenant: "evil", User: name, Superuser: true, Teams: map[string]actor.Role{team: actor.Admin}},
					}[j]
					is.Equal(code(row.call(as(t, caller), f.Service, name, team)), want)
				}
			})
		}
	})
}

func TestCapabilities(t *testing.T) {
	is := is.New(t)
	u := principals.User{Tenant: "acme", Username: "jo", Domain: "local"}
	all := principals.UserPermissions{
		ChangeDomain: true, ChangeProfile: true, ChangePassword: true,
		Delete: true, Edit: true, Reassign: true, Superuser: true,
		Enable: true, ChangeTheme: true, Lock: true, SetGlobalPermissions: true, ManageLogin: true,
	}
	is.Equal(principals.UserPermissionsOf(actor.Actor{Tenant: "acme", User: "x", Superuser: true}, u), all)
	own := principals.UserPermissions{
		ChangeProfile:  true,
		ChangePassword: true,
		Edit:           true,
		Reassign:       true,
		ChangeTheme:    true,
	}
	is.Equal(principals.UserPermissionsOf(actor.Actor{Tenant: "acme", User: "jo"}, u), own)
	u.Domain, own.ChangePassword = "ldap", false
	is.Equal(principals.UserPermissionsOf(actor.Actor{Tenant: "acme", User: "jo"}, u), own)
	none := principals.UserPermissions{}
	is.Equal(principals.UserPermissionsOf(actor.Actor{Tenant: "acme", User: "x"}, u), none)
	is.Equal(principals.UserPermissionsOf(actor.Actor{Tenant: "evil", User: "jo", Superuser: true}, u), none)

	g := principals.Team{Tenant: "acme", ID: "t"}
	in := func(tenant string, r actor.Role) principals.TeamPermissions {
		a := actor.Actor{Tenant: tenant, User: "x", Teams: map[string]actor.Role{"t": r}}
		return principals.TeamPermissionsOf(a, g)
	}
	is.Equal(
		in("acme", actor.Admin),
		principals.TeamPermissions{Edit: true, ManageMembers: true, Reassign: true, Write: true},
	)
	is.Equal(in("acme", actor.Publisher), principals.TeamPermissions{})
	is.Equal(in("evil", actor.Admin), principals.TeamPermissions{})
	is.True(principals.TeamPermissionsOf(actor.Actor{Tenant: "acme", User: "x", Superuser: true}, g).Delete)
}

// TestLastSuperuser takes all superusers away at once, in three ways: one stays.
func TestUsersByName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		shown := "Al"
		_, err := f.UpdateUser(root(t), f.user(t, "AL").Username, func(u *principals.User) error {
			u.DisplayName = &shown
			return nil
		})
		is.NoErr(err)
		names := []string{"JO", "jo", "al", "nobody", "", "no name", "a\x00", "\xff", strings.Repeat("x", 129)}
		users, err := f.UsersByName(self(t, "jo"), names)
		is.NoErr(err)
		is.Equal(len(users), 2)
		is.Equal(users["jo"].Username, "jo")
		is.Equal(users["AL"].Tenant, "acme")
		shownNames, err := f.DisplayNames(self(t, "jo"), names)
		is.NoErr(err)
		is.Equal(shownNames, map[string]*string{"jo": nil, "AL": &shown})
		other, err := f.UsersByName(as(t, actor.Actor{Tenant: "evil", User: "eve", Superuser: true}), names)
		is.NoErr(err)
		is.Equal(len(other), 0)
		_, err = f.UsersByName(t.Context(), names)
		is.Equal(code(err), errs.Unauthenticated)
	})
}

func TestLastSuperuser(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		const n = 12
		for i := range n {
			_, err := f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
				Tenant: "acme", Username: fmt.Sprint("s", i), Password: password,
			})
			is.NoErr(err)
		}
		_, err := f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "evil", Username: "s0", Password: password,
		}) // of another tenant: does not count
		is.NoErr(err)
		var wg sync.WaitGroup
		fails := make([]error, n)
		for i := range n {
			name := fmt.Sprint("s", i)
			ctx := as(t, actor.Actor{Tenant: "acme", User: name, Superuser: true})
			wg.Go(func() {
				switch i % 3 {
				case 0:
					fails[i] = f.DeleteUser(ctx, name, "")
				case 1:
					_, fails[i] = f.UpdateUser(ctx, name, func(u *principals.User) error {
						u.Enabled = false
						return nil
					})
				default:
					_, fails[i] = f.UpdateUser(ctx, name, func(u *principals.User) error {
						u.Superuser = false
						return nil
					})
				}
			})
		}
		wg.Wait()
		refused := 0
		for _, err := range fails {
			if err != nil {
				is.Equal(errs.CodeOf(err), errs.Conflict)
				refused++
			}
		}
		is.Equal(refused, 1)
		left, err := f.store.OtherSuperusers(t.Context(), "acme", "")
		is.NoErr(err)
		is.Equal(left, 1)
	})
}

func TestUpdateUserKeepsWhatIsTheServices(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		was := f.user(t, "jo")
		f.now = f.now.Add(time.Hour)
		far := f.now.Add(1000 * time.Hour)
		got, err := f.UpdateUser(root(t), "jo", func(u *principals.User) error {
			u.Tenant, u.LoginAttempts, u.PasswordSetAt, u.LockedAt = "evil", 99, &far, &far
			u.CreatedAt, u.UpdatedAt = far, far
			u.Domain = ""
			return nil
		})
		is.NoErr(err)
		was.UpdatedAt = f.now
		is.Equal(got, was)
		_, err = f.UpdateUser(root(t), "jo", func(u *principals.User) error { u.Username = "x"; return nil })
		is.Equal(code(err), errs.Invalid)
		stored, err := f.User(root(t), "jo")
		is.NoErr(err)
		is.Equal(stored, was)
	})
}

// TestProfile has users change each of their own fields: only the profile goes.
func TestProfile(t *testing.T) {
	x, at := "x@example.com", monday
	yes := map[string]func(*principals.User){
		"displayName": func(u *principals.User) {
			u.DisplayName = &x
		}, "familyName": func(u *principals.User) { u.FamilyName = &x },
		"givenName": func(u *principals.User) {
			u.GivenName = &x
		}, "middleName": func(u *principals.User) { u.MiddleName = &x },
		"email": func(u *principals.User) {
			u.Email = &x
		}, "data": func(u *principals.User) { u.Data = []byte(`{"a": 1}`) },
		"userFields": func(u *principals.User) { u.UserFields = []byte(`{"a":1}`) },
		"timezone":   func(u *principals.User) { zone := "UTC"; u.Timezone = &zone },
		"aiConsent": func(u *principals.User) {
			u.AIConsent = true
		}, "feed": func(u *principals.User) { u.LastViewedFeed = &at },
	}
	no := map[string]func(*principals.User){
		"domain": func(u *principals.User) {
			u.Domain = "ldap"
		}, "superuser": func(u *principals.User) { u.Superuser = true },
		"enabled": func(u *principals.User) {
			u.Enabled = false
		}, "locked": func(u *principals.User) { u.Locked = true },
		"globalPermissions": func(u *principals.User) { u.GlobalPermissions.AI = true },
		"source": func(u *principals.User) {
			u.Source = &x
		}, "sourceId": func(u *principals.User) { u.SourceID = &x },
		"mfa": func(u *principals.User) {
			u.MFA = true
		}, "expires": func(u *principals.User) { u.PasswordExpiresAt = &at },
		"asked": func(u *principals.User) {
			u.ForgotPasswordRequestTime = &at
		}, "aiMessage": func(u *principals.User) { u.AIMessage = &x },
	}
	each(t, func(t *testing.T, f *fixture) {
		f.user(t, "jo")
		_, err := f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "root", Password: password,
		})
		is.New(t).NoErr(err)
		try := func(ctx context.Context, edits map[string]func(*principals.User), want errs.Code) {
			for name, edit := range edits {
				t.Run(name, func(t *testing.T) {
					_, err := f.UpdateUser(ctx, "jo", func(u *principals.User) error { edit(u); return nil })
					is.New(t).Equal(code(err), want)
				})
			}
		}
		try(self(t, "jo"), yes, "ok")
		try(self(t, "jo"), no, errs.Forbidden)
		try(root(t), yes, "ok")
		try(root(t), no, "ok")
	})
}
