package principals_test

import (
	"context"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// content counts what is owned, per tenant and owner.
type content struct {
	owned map[string]int
	stuck bool          // it cannot be reassigned
	kinds []entity.Kind // of the last ReassignOnly

	hooks entity.Hooks
}

func (c *content) Deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	if c.hooks.Deleted == nil {
		return nil
	}
	return c.hooks.Deleted(ctx, tenant, gone...)
}

func (c *content) Disabled(ctx context.Context, tenant string, usernames ...string) error {
	if c.hooks.Disabled == nil || len(usernames) == 0 {
		return nil
	}
	return c.hooks.Disabled(ctx, tenant, usernames)
}

func (c *content) Owned(_ context.Context, tenant, owner string) (map[entity.Kind]int, error) {
	n := c.owned[tenant+"/"+owner]
	if n == 0 {
		return nil, nil
	}
	return map[entity.Kind]int{"report": n, "app": 1}, nil
}

func (c *content) Owners(ctx context.Context, tenant string, among []string) (map[string]bool, error) {
	owners := map[string]bool{}
	for _, id := range among {
		if owned, _ := c.Owned(ctx, tenant, id); owned != nil {
			owners[id] = true
		}
	}
	return owners, nil
}

func (c *content) Rename(ctx context.Context, tenant string, names map[string]string) error {
	for was, becomes := range names {
		if n := c.owned[tenant+"/"+was]; n > 0 {
			c.owned[tenant+"/"+becomes] = n
			delete(c.owned, tenant+"/"+was)
		}
	}
	if c.hooks.Renamed == nil {
		return nil
	}
	return c.hooks.Renamed(ctx, tenant, names)
}

func (c *content) Reassign(_ context.Context, tenant, from, to string) ([]entity.Ref, error) {
	if !c.stuck {
		c.owned[tenant+"/"+to] += c.owned[tenant+"/"+from]
		delete(c.owned, tenant+"/"+from)
	}
	return nil, nil
}

func (c *content) ReassignOnly(
	ctx context.Context, tenant, from, to string, kinds ...entity.Kind,
) ([]entity.Ref, error) {
	c.kinds = kinds
	_, err := c.Reassign(ctx, tenant, from, to)
	return []entity.Ref{{Kind: "report", ID: "r", Name: "R", OwnerID: to}}, err
}

func TestDeleteWithContent(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "jo")
		f.user(t, "heir")
		g := f.team(t, "Team One")
		f.content.owned["acme/jo"] = 3
		f.content.owned["evil/heir"] = 1

		err := f.DeleteUser(root(t), "jo", "")
		is.Equal(code(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), "app: 1, report: 3"))
		for _, bad := range []string{"*", "jo", "nobody", g.Slug, "01932e00-0000-7000-8000-000000000000", "a b"} {
			is.Equal(code(f.DeleteUser(root(t), "jo", bad)), errs.Invalid)
			is.Equal(code(f.DeleteUser(root(t), "heir", bad)) == "ok", bad == "jo") // also when nothing is owned
			if bad == "jo" {
				f.user(t, "heir")
			}
		}
		f.content.stuck = true
		is.Equal(code(f.DeleteUser(root(t), "jo", "heir")), errs.Conflict) // a kind that cannot change hands
		f.content.stuck = false
		is.NoErr(f.DeleteUser(root(t), "jo", strings.ToUpper(g.ID))) // a UUID in another form is the same
		is.Equal(f.content.owned["acme/"+g.ID], 3)
		_, err = f.User(root(t), "jo")
		is.Equal(code(err), errs.NotFound)

		is.Equal(code(f.DeleteTeam(root(t), g.ID, "")), errs.Conflict)
		is.Equal(code(f.DeleteTeam(root(t), g.ID, g.ID)), errs.Invalid)
		is.NoErr(f.DeleteTeam(root(t), g.Slug, "heir"))
		is.Equal(f.content.owned["acme/heir"], 3)
	})
}

func TestResolve(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "Jo")
		g := f.team(t, "One")
		for _, id := range []string{"Jo", "jo", "ＪＯ", g.ID, strings.ToUpper(g.ID)} {
			_, err := f.Resolve(root(t), id)
			is.NoErr(err)
		}
		for _, id := range []string{"", "*", "joe", "One", g.Slug, "a\x00", "01932e00-0000-7000-8000-000000000000"} {
			_, err := f.Resolve(root(t), id)
			is.Equal(code(err), errs.NotFound)
		}
	})
}

func TestTeams(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		for name, slugs := range map[string][]string{
			"Größe & Sales": {"grosse-sales", "grosse-sales-2", "grosse-sales-3"}, "日本": {"team", "team-2"},
			"01932E00-0000-7000-8000-000000000000": {"team-01932e00-0000-7000-8000-000000000000"},
			strings.Repeat("x", 255):               {strings.Repeat("x", 100), strings.Repeat("x", 100) + "-2"},
		} {
			for _, slug := range slugs {
				is.Equal(f.team(t, name).Slug, slug)
			}
		}
		_, err := f.CreateTeam(root(t), principals.Team{Name: "x", Slug: "team"})
		is.Equal(code(err), errs.Conflict)
		g := f.team(t, " trimmed ")
		is.Equal(g.Name, "trimmed")
		is.Equal(g.NaturalID(), "trimmed")
		empty := ""
		got, err := f.UpdateTeam(root(t), g.ID, func(t *principals.Team) error {
			t.ID, t.Tenant, t.Description, t.Slug = "x", "evil", &empty, "New"
			return nil
		})
		is.NoErr(err)
		is.Equal(got.ID, g.ID)
		is.True(got.Description == nil)
		bySlug, err := f.Team(root(t), "New")
		is.NoErr(err)
		is.Equal(bySlug, got)

		f.user(t, "jo")
		m, err := f.PutMember(root(t), "New", "jo", actor.Publisher)
		is.NoErr(err)
		in, err := f.Members(root(t), g.ID, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(in.Rows, []principals.Membership{m})
		for _, role := range []actor.Role{actor.NoRole, -1, actor.Admin + 1} {
			_, err = f.PutMember(root(t), g.ID, "jo", role)
			is.Equal(code(err), errs.Invalid)
		}
		_, err = f.PutMember(root(t), g.ID, "JO", actor.Member)
		is.Equal(code(err), errs.NotFound)
		is.Equal(code(f.DeleteMember(root(t), g.ID, "nobody")), errs.NotFound)
	})
}

func TestValidation(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		long := func(n int) *string { s := strings.Repeat("ü", n); return &s }
		text := func(s string) *string { return &s }
		for name, edit := range map[string]func(*principals.User){
			"domain must":      func(u *principals.User) { u.Domain = "a b" },
			"displayName must": func(u *principals.User) { u.DisplayName = long(256) },
			"displayName  ":    func(u *principals.User) { u.DisplayName = text("a\x00") },
			"displayName":      func(u *principals.User) { u.DisplayName = text("a\xff") },
			"familyName":       func(u *principals.User) { u.FamilyName = text("a\nb") },
			"givenName":        func(u *principals.User) { u.GivenName = long(256) },
			"middleName":       func(u *principals.User) { u.MiddleName = long(256) },
			"email must":       func(u *principals.User) { u.Email = text("Jo <jo@example.com>") },
			"email":            func(u *principals.User) { u.Email = text("jo") },
			"timezone must":    func(u *principals.User) { u.Timezone = text("Mars/Olympus") },
			"timezone":         func(u *principals.User) { u.Timezone = text("Local") },
			"source ":          func(u *principals.User) { u.Source = long(1025) },
			"sourceId":         func(u *principals.User) { u.SourceID = long(1025) },
			"avatarId":         func(u *principals.User) { u.AvatarID = long(129) },
			"aiMessage":        func(u *principals.User) { u.AIMessage = long(20000) },
			"data":             func(u *principals.User) { u.Data = []byte(`[]`) },
			"data ": func(u *principals.User) {
				u.Data = []byte(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`)
			},
			"userFields":      func(u *principals.User) { u.UserFields = []byte(`{`) },
			"userFields must": func(u *principals.User) { u.UserFields = []byte("{\"a\":\"\xff\"}") },
		} {
			t.Run(name, func(t *testing.T) {
				is, u := is.New(t), principals.User{Username: "new"}
				edit(&u)
				_, err := f.CreateUser(root(t), u, "")
				is.Equal(code(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), strings.TrimSpace(name))) // it names the field
			})
		}
		for name, edit := range map[string]func(*principals.Team){
			"name":        func(g *principals.Team) { g.Name = " " },
			"name ":       func(g *principals.Team) { g.Name = *long(256) },
			"slug":        func(g *principals.Team) { g.Slug = "a b" },
			"slug ":       func(g *principals.Team) { g.Slug = "01932e00-0000-7000-8000-000000000000" },
			"domain":      func(g *principals.Team) { g.Domain = "\x00" },
			"description": func(g *principals.Team) { g.Description = long(20000) },
			"color":       func(g *principals.Team) { g.Color = text("a\x07") },
			"icon":        func(g *principals.Team) { g.Icon = long(256) },
			"materialIco": func(g *principals.Team) { g.MaterialIcon = long(129) },
			"source":      func(g *principals.Team) { g.Source = long(1025) },
			"sourceId":    func(g *principals.Team) { g.SourceID = long(1025) },
		} {
			t.Run("team "+name, func(t *testing.T) {
				is, g := is.New(t), principals.Team{Name: "new"}
				edit(&g)
				_, err := f.CreateTeam(root(t), g)
				is.Equal(code(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), strings.TrimSpace(name)))
			})
		}
		is := is.New(t)
		u, err := f.CreateUser(root(t), principals.User{
			Username: "new", DisplayName: text("  Jo "),
			Email: text(""), Timezone: text("UTC"), Data: []byte(" { \"a\" : 1 } "),
		}, "")
		is.NoErr(err)
		is.Equal(*u.DisplayName, "Jo")
		is.True(u.Email == nil)
		is.Equal(string(u.Data), `{"a":1}`)
		got, err := f.User(root(t), "new")
		is.NoErr(err)
		is.Equal(got, u)
	})
}

func TestUsernames(t *testing.T) {
	is := is.New(t)
	for _, good := range []string{
		"jo", "Jo.Doe+x@example.com", "a-b_c", "日本", "é",
		"e\u0301", "123", strings.Repeat("ü", 128), "01932e00", "01932e00000070008000000000000000",
		"o'brien", "anna_corp#EXT#@x", "a&b", "$svc", "Anna Maria", ".net",
		"a.", "%", "a*", "мария", "Ελένη", "ａｄｍｉｎ", "everyone2",
	} {
		is.NoErr(principals.ValidUsername(good))
	}
	for _, bad := range []string{
		"", "*", ".", "..", "a\u00a0b", "a\tb", "a\x00", "a\xff", "a/b", "a:b",
		`a\b`, "a,b", "a;b", `a"b`, "a<b", "a>b", "a|b", " a", "a ", "a  b",
		"a\u200bb", "a\u202eb", strings.Repeat("ü", 128) + "x", "01932e00-0000-7000-8000-000000000000",
		"a：b", "＊", "a\u3000b", "a℀b",
		"everyone", "EveryOne", "ｅveryone", "аdmin", "adminα", "ѕam",
		"admin\ufe0f", "admin\u034f", "admin\U000e0100", "\u115fadmin",
		"adm\u3164in", "adm\u17b4in", "admin\u2800", "\u180badmin",
	} {
		is.Equal(code(principals.ValidUsername(bad)), errs.Invalid)
	}
}

// TestSameNames: names that are the same after NFKC and without case are one user's, at every way
// in and out. Users who have such names already, and mixed ones, keep working.
func TestSameNames(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		f.user(t, "admin")
		for _, name := range []string{"ＡＤＭＩＮ", "ａｄｍｉｎ", "Admin"} {
			_, err := f.CreateUser(root(t), principals.User{Username: name}, "")
			is.Equal(code(err), errs.Conflict)
			spelled, err := f.Unchecked().CanonicalName(ctx, "acme", name)
			is.NoErr(err)
			is.Equal(spelled, "admin")
		}
		is.NoErr(f.Unchecked().SetPassword(ctx, principals.Credentials{
			Tenant: "acme", Username: "admin", Password: "the password of admin",
		}))
		u, err := f.Unchecked().Authenticate(ctx, principals.Credentials{
			Tenant: "acme", Domain: "local", Username: "ａｄｍｉｎ", Password: "the password of admin",
		})
		is.NoErr(err)
		is.Equal(u.Username, "admin")

		for name, folded := range map[string]string{"ａｄｍｉｎ": "ａｄｍｉｎ", "аdmin": "аdmin"} { // since before
			is.NoErr(f.store.InsertUser(ctx, "acme", principals.User{
				Tenant:     "acme",
				Username:   "old",
				Domain:     "local",
				Enabled:    true,
				Data:       []byte("{}"),
				UserFields: []byte("{}"),
				CreatedAt:  monday,
				UpdatedAt:  monday,
			}))
			c, conn := bunx.For(ctx, f.db, "acme")
			_, err := conn.Exec(
				c,
				`UPDATE tc_users SET username = $1, folded = $2 WHERE tenant_id = 'acme' AND username = 'old'`,
				name, folded,
			)
			is.NoErr(err)
			is.NoErr(f.Unchecked().SetPassword(ctx, principals.Credentials{
				Tenant: "acme", Username: name, Password: "another password",
			}))
			u, err := f.Unchecked().Authenticate(ctx, principals.Credentials{
				Tenant: "acme", Domain: "local", Username: name, Password: "another password",
			})
			is.NoErr(err)
			is.Equal(u.Username, name)
			_, err = f.UpdateUser(root(t), name, func(u *principals.User) error { u.Enabled = false; return nil })
			is.NoErr(err)
			spelled, err := f.Unchecked().CanonicalName(ctx, "acme", name)
			is.NoErr(err)
			is.Equal(spelled, name)
		}
	})
}
