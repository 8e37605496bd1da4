package dirsync_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

func TestFirstScan(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		snap := snapshot{
			People: []identity{
				{
					ID:          "1",
					Username:    "jo",
					DisplayName: " Jo Doe ",
					GivenName:   "Jo",
					MiddleName:  "van",
					FamilyName:  "Doe",
					Email:       "jo@example.com",
					Timezone:    "Europe/Berlin",
				},
				{ID: "2", Username: "mia"}, {ID: "3", Username: "left", Disabled: true},
			},
			Groups: []group{
				{ID: "g1", Name: "Sales", Description: "They\nsell.", Members: []string{"2", "1", "1", "nobody", "3"}},
				{ID: "g2", Name: "Sales"}, {ID: "g3", Name: "日本"},
			},
		}
		f.team(t, "Sales")
		r := f.forced(t, snap)
		is.Equal(r, dirsync.Report{Users: counts{Created: 3}, Teams: counts{Created: 3}, Added: 3})
		is.Equal(f.get(t, "jo"), principals.User{
			Tenant: "acme", Username: "jo", Domain: "ldap",
			DisplayName: text("Jo Doe"), GivenName: text("Jo"), MiddleName: text("van"),
			FamilyName: text("Doe"), Email: text("jo@example.com"),
			Timezone: text("Europe/Berlin"), Enabled: true, Source: text("LDAP"),
			SourceID: text("1"), Data: []byte("{}"), UserFields: []byte("{}"), CreatedAt: monday, UpdatedAt: monday,
		})
		left := f.get(t, "left")
		is.Equal([]any{left.Enabled, left.DirectoryDisabled}, []any{false, true})
		team, err := f.Team(root(t), "sales-2")
		is.NoErr(err)
		is.Equal(team, principals.Team{
			Tenant: "acme", ID: team.ID, Name: "Sales",
			Slug: "sales-2", Description: text("They\nsell."), Domain: "ldap", Source: text("LDAP"),
			SourceID: text("g1"), CreatedAt: monday, UpdatedAt: monday,
		})
		is.Equal(f.roster(t, "sales-2"), "jo member, left member, mia member")
		for _, slug := range []string{"sales-3", "team"} {
			is.Equal(f.roster(t, slug), "")
		}
		f.now = f.now.Add(time.Hour)
		is.Equal(f.forced(t, snap), dirsync.Report{Users: counts{Unchanged: 3}, Teams: counts{Unchanged: 3}})
		is.Equal(f.get(t, "jo").UpdatedAt, monday)
	})
}

// TestUnchangedScan: a scan without changes reads each table once and writes nothing.
func TestUnchangedScan(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db, count := dbtest.Counted(t, open)
		bumps := 0
		store := bunstore.New(db).Notify(func(string) { bumps++ })
		s := dirsync.New(dirsync.Options{
			Store:      store,
			Principals: principals.New(principals.Options{Store: store}).Unchecked(),
		})
		var names []string
		for n := range 1203 { // several batches
			names = append(names, fmt.Sprint("user", n))
		}
		snap := snapshot{People: people(names...), Groups: []group{{ID: "g", Name: "All"}}}
		for _, who := range snap.People {
			snap.Groups[0].Members = append(snap.Groups[0].Members, who.ID)
		}
		steps := [][2]int{}
		o := dirsync.SyncOptions{Source: "LDAP", Progress: func(done, total int) {
			steps = append(steps, [2]int{done, total})
		}}
		_, err := s.Sync(ctx, "acme", "ldap", snap, o)
		is.NoErr(err)
		is.True(bumps > 0) // cached sessions are looked up again
		is.Equal(len(steps), 7)
		is.Equal(steps[0], [2]int{500, 2407})
		is.Equal(steps[6], [2]int{2407, 2407})
		count.Take()
		bumps, steps = 0, nil
		r, err := s.Sync(ctx, "acme", "ldap", snap, o)
		is.NoErr(err)
		is.Equal(r, dirsync.Report{Users: counts{Unchanged: 1203}, Teams: counts{Unchanged: 1}})
		statements := count.Take()
		is.Equal(len(statements), 5) // the lock, users, superusers, teams and memberships
		for _, s := range statements {
			is.True(strings.HasPrefix(s, "SELECT"))
		}
		is.Equal(bumps+len(steps), 0)
	})
}

// TestProfileFollows: values that the directory reports are copied, and others are kept.
func TestProfileFollows(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		jo := identity{ID: "1", Username: "jo", DisplayName: "Jo", Email: "jo@example.com"}
		f.forced(t, snapshot{People: []identity{jo}})
		f.edit(t, "jo", func(u *principals.User) {
			u.DisplayName, u.Timezone, u.GlobalPermissions.AI, u.Superuser = text("Own"), text("UTC"), true, true
		})
		f.now = f.now.Add(time.Hour)
		jo.Email, jo.DisplayName = "", "Joe"
		r := f.forced(t, snapshot{People: []identity{jo}})
		is.Equal(r.Users, counts{Updated: 1})
		u := f.get(t, "jo")
		is.Equal(
			[]any{*u.DisplayName, *u.Email, *u.Timezone, u.UpdatedAt},
			[]any{"Joe", "jo@example.com", "UTC", f.now},
		)
		is.Equal([]any{u.GlobalPermissions.AI, u.Superuser}, []any{true, true}) // not set by directories
		is.Equal(f.forced(t, snapshot{People: []identity{jo}}).Users, counts{Unchanged: 1})
	})
}

// TestOddEntries: invalid values are left out, and no entry causes an error.
func TestOddEntries(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		long := strings.Repeat("ü", 256)
		snap := snapshot{
			People: []identity{
				{
					ID:          "1",
					Username:    "jo",
					DisplayName: long,
					GivenName:   "a\nb",
					FamilyName:  "\xff",
					MiddleName:  "  ",
					Email:       "nobody",
					Timezone:    "Mars",
				},
				{ID: "2", Username: "a/b"}, {ID: "3", Username: ""},
				{ID: "4", Username: strings.Repeat("x", 257)}, {ID: "5", Username: "\xff\x00"},
				{Username: "noid"}, {ID: long, Username: "longid"},
				{ID: " 6", Username: "spaced"}, {ID: "a\x00", Username: "nul"}, {ID: "\xff", Username: "utf8"},
				{ID: "1", Username: "again"}, {ID: "7", Username: "JO"},
			},
			Groups: []group{
				{ID: "g1", Name: long}, {ID: "g2", Name: ""},
				{ID: "g3", Name: "a\x00"},
				{ID: "", Name: "noid"}, {ID: "g4", Name: "First", Members: []string{"1", ""}},
				{ID: "g4", Name: "Second"}, {ID: "g5", Name: "Long", Description: strings.Repeat("x", 20000)},
			},
		}
		r := f.forced(t, snap)
		is.Equal(r.Users, counts{Created: 1})
		is.Equal(r.Teams, counts{Created: 2})
		u := f.get(t, "jo")
		is.True(u.DisplayName == nil && u.GivenName == nil && u.FamilyName == nil && u.MiddleName == nil &&
			u.Email == nil && u.Timezone == nil)
		is.Equal(f.roster(t, "first"), "jo member")
		for _, part := range []string{
			"jo (1): displayName must be UTF-8 without NUL and have at most 255 characters; it is left out.",
			"jo (1): email must be an email address; it is left out.",
			"jo (1): timezone must be an IANA name such as Europe/Berlin; it is left out.",
			"a/b (2): username must not have control",
			"again: the entry has the same id as that of jo (1) and is skipped.",
			"noid: the entry has no id", "JO (7): the name is that of the entry 1; the entry is skipped.",
			"group (nothing) (g2): name must be 1 to 255 characters without control characters; the group is skipped.",
			"group Second: the entry has no id of 1 to 255 characters, or that of another one, and is skipped.",
			"group Long (g5): description must be UTF-8 without NUL and have at most 16384 characters; it is left out.",
		} {
			is.True(slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, part) }))
		}
		is.Equal(len(r.Warnings), 5+4+5+2+3+1+1+1)
		again := f.forced(t, snap)
		is.Equal(again.Users, counts{Unchanged: 1})
		is.Equal(again.Teams, counts{Unchanged: 2})
		slices.Sort(again.Warnings)
		slices.Sort(r.Warnings)
		is.Equal(again.Warnings, r.Warnings)
		is.True(utf8.ValidString(strings.Join(r.Warnings, "")) &&
			!strings.ContainsFunc(strings.Join(r.Warnings, ""), unicode.IsControl))
	})
}

// TestTakenNames: a name belongs to its current user, and a user of another domain is not changed.
func TestTakenNames(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		was := f.user(t, "Jo")
		snap := snapshot{
			People: []identity{
				{ID: "1", Username: "jo", Email: "eve@example.com"}, {ID: "2", Username: "mia"},
				{ID: "3", Username: "MIA"},
			},
		}
		r := f.forced(t, snap)
		is.Equal(r.Users, counts{Created: 1})
		is.Equal(r.Warnings, []string{
			"jo (1): the name is that of the user Jo of the domain local; the entry is skipped.",
			"MIA (3): the name is that of the entry 2; the entry is skipped.",
		})
		is.Equal(f.get(t, "Jo"), was)

		// A known user keeps the old name, and all other fields are updated.
		snap = snapshot{
			People: []identity{{ID: "2", Username: "JO", Email: "mia@example.com"}, {ID: "4", Username: "mia"}},
		}
		r = f.forced(t, snap)
		is.Equal(r.Users, counts{Updated: 1})
		is.Equal(r.Warnings, []string{
			"JO (2): the name is that of the user Jo of the domain local; the user stays mia.",
			"mia (4): the name is that of the user mia, who keeps it; the entry is skipped.",
		})
		is.Equal(*f.get(t, "mia").Email, "mia@example.com")

		// A new entry with an old name is another person.
		r = f.forced(t, snapshot{People: []identity{{ID: "9", Username: "mia"}}})
		is.Equal(r.Users, counts{Disabled: 1})
		is.Equal(r.Warnings,
			[]string{"mia (9): the name is that of the user mia of the domain ldap, of another entry: if the " +
				"person was created there anew, " +
				`PUT /api/users/mia {"sourceId": null} and scan again; the entry is skipped.`})
		f.edit(t, "mia", func(u *principals.User) { u.SourceID = nil }) // unless a superuser allows it
		r = f.forced(t, snapshot{People: []identity{{ID: "9", Username: "Mia"}}})
		is.Equal(r.Users, counts{Updated: 1})
		u := f.get(t, "Mia")
		is.Equal([]any{*u.SourceID, u.Enabled}, []any{"9", true})
	})
}

func TestRenames(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		told := map[string]string{} // current names by old ones, according to the hook
		f.content.renamed = func(_ context.Context, tenant string, names map[string]string) error {
			is.Equal(tenant, "acme")
			for was, becomes := range names {
				for who, name := range told {
					if name == was {
						told[who] = becomes
					}
				}
			}
			return nil
		}
		scan := func(names ...string) dirsync.Report {
			snap := snapshot{Groups: []group{{ID: "g", Name: "All"}}}
			for i, name := range names {
				id := fmt.Sprint(i)
				snap.People = append(snap.People, identity{ID: id, Username: name})
				snap.Groups[0].Members = append(snap.Groups[0].Members, id)
			}
			r, err := f.Sync(t.Context(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP"})
			is.NoErr(err)
			is.Equal(len(r.Warnings), 0)
			return r
		}
		scan("a", "b", "c", "d")
		for i, name := range []string{"a", "b", "c", "d"} {
			f.content.owned["acme/"+name], told[name] = i+1, name
		}
		f.content.owned["evil/a"] = 9
		_, err := f.PutMember(root(t), "all", "a", actor.Admin)
		is.NoErr(err)
		for _, names := range [][]string{
			{"b", "a", "c", "d"},   // two swap
			{"a", "c", "d", "b"},   // a circle
			{"A", "c", "d", "B"},   // another spelling
			{"new", "A", "c", "d"}, // a chain
			{"x.very-long_name@example.com", "B", "b2", "日本"}, // all of these
		} {
			f.now = f.now.Add(time.Hour)
			before := map[string]string{}
			for i := range 4 {
				u, err := f.store.UserFrom(t.Context(), "acme", "ldap", fmt.Sprint(i))
				is.NoErr(err)
				before[fmt.Sprint(i)] = u.Username
			}
			r := scan(names...)
			is.Equal(r.Users.Disabled+r.Users.Created+r.Added+r.Removed, 0)
			for i, name := range names {
				u := f.get(t, name)
				is.Equal(*u.SourceID, fmt.Sprint(i))
				is.Equal(u.UpdatedAt.Equal(f.now), before[fmt.Sprint(i)] != name)
				is.Equal(f.content.owned["acme/"+name], i+1)
				is.Equal(told[[]string{"a", "b", "c", "d"}[i]], name)
				for old := range f.content.owned {
					is.True(old == "evil/a" || slices.Contains(names, strings.TrimPrefix(old, "acme/")))
				}
			}
			is.True(strings.Contains(f.roster(t, "all"), names[0]+" admin")) // roles are kept
			is.Equal(scan(names...).Users, counts{Unchanged: 4})
		}
		is.Equal(f.content.owned["evil/a"], 9)
	})
}

// TestFailedScanWritesNothing: a scan that fails, even late, writes nothing.
func TestFailedScanWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, fault := is.New(t), errors.New("fault")
		f.forced(t, snapshot{People: people("jo", "mia")})
		snap := snapshot{
			People: append(people("mia", "new"), identity{ID: "id of jo", Username: "joe"}),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of mia"}}},
		}
		f.content.renamed = func(context.Context, string, map[string]string) error { return fault }
		r, err := f.Sync(t.Context(), "acme", "ldap", snap, dirsync.SyncOptions{})
		f.content.renamed = nil
		is.Equal(err, fault)
		is.Equal(r, dirsync.Report{})
		ctx, cancel := context.WithCancel(t.Context())
		_, err = f.Sync(ctx, "acme", "ldap", snap, dirsync.SyncOptions{Progress: func(done, total int) {
			if done == total-1 {
				cancel()
			}
		}})
		is.True(err != nil)
		f.gone(t, "joe")
		f.gone(t, "new")
		_, err = f.Team(root(t), "all")
		is.Equal(code(err), errs.NotFound)
		is.Equal(f.get(t, "jo").UpdatedAt, monday)
	})
}

func TestGoneAndBack(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		enabled := func(name string, want, noted bool) {
			t.Helper()
			u := f.get(t, name)
			is.Equal([]any{u.Enabled, u.DirectoryDisabled}, []any{want, noted})
		}
		all := snapshot{People: people("jo", "mia", "off")}
		f.forced(t, all)
		f.edit(t, "off", func(u *principals.User) { u.Enabled = false })
		is.Equal(f.forced(t, snapshot{People: people("jo")}).Users, counts{Disabled: 1, Unchanged: 2})
		enabled("mia", false, true)
		enabled("off", false, false)
		is.Equal(f.forced(t, snapshot{People: people("jo")}).Users, counts{Unchanged: 3}) // once
		disabled := people("jo", "mia", "off")
		disabled[0].Disabled, disabled[1].Disabled = true, true
		is.Equal(f.forced(t, snapshot{People: disabled}).Users, counts{Disabled: 1, Unchanged: 2})
		enabled("jo", false, true)
		is.Equal(f.forced(t, all).Users, counts{Updated: 2, Unchanged: 1}) // enabled again
		enabled("jo", true, false)
		enabled("mia", true, false)
		enabled("off", false, false) // disabled by a superuser

		f.forced(t, snapshot{People: people("jo")})
		f.edit(t, "mia", func(u *principals.User) { u.DisplayName = text("Mia") })
		enabled("mia", false, true) // an edit of another field does not matter
		f.edit(t, "mia", func(u *principals.User) { u.Enabled, u.DirectoryDisabled = true, true })
		enabled("mia", true, false)
		f.edit(t, "mia", func(u *principals.User) { u.Enabled, u.DirectoryDisabled = false, true })
		enabled("mia", false, false)
		is.Equal(f.forced(t, all).Users, counts{Unchanged: 3})
		enabled("mia", false, false) // a superuser has edited it since, so it stays disabled
	})
}

// TestLocks: a lock in the directory prevents logins while it lasts, and ends no sessions and
// tokens. They end when the user is disabled or removed there, even after a lock.
func TestLocks(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var ended []string
		f.content.AddHooks(entity.Hooks{Disabled: func(_ context.Context, _ string, names []string) error {
			ended = append(ended, names...)
			return nil
		}})
		state := func(name string, want ...bool) {
			t.Helper()
			u := f.get(t, name)
			is.Equal([]bool{u.Enabled, u.DirectoryDisabled, u.DirectoryLocked}, want)
		}
		all := snapshot{
			People: people("jo", "mia", "sam"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of jo", "id of mia"}}},
		}
		f.forced(t, all)
		locked := snapshot{People: slices.Clone(all.People), Groups: all.Groups}
		locked.People[0].Locked, locked.People[1].Locked = true, true
		locked.People = append(locked.People, identity{ID: "id of new", Username: "new", Locked: true})
		is.Equal(f.forced(t, locked).Users, counts{Created: 1, Disabled: 2, Unchanged: 1})
		state("jo", false, true, true)
		state("new", false, true, true)
		state("sam", true, false, false)
		is.Equal(f.roster(t, "all"), "jo member, mia member")
		is.Equal(f.forced(t, locked).Users, counts{Unchanged: 4})
		is.Equal(len(ended), 0)
		f.edit(t, "mia", func(u *principals.User) { u.DisplayName = text("Mia") })
		state("mia", false, true, true) // an edit of another field does not matter

		off := snapshot{People: slices.Clone(all.People), Groups: all.Groups}
		off.People[1].Disabled, off.People[1].Locked = true, true
		is.Equal(f.forced(t, off).Users, counts{Updated: 1, Disabled: 2, Unchanged: 1}) // new is missing
		state("jo", true, false, false)
		state("mia", false, true, false)
		slices.Sort(ended)
		is.Equal(ended, []string{"mia", "new"})
		is.Equal(f.forced(t, locked).Users, counts{Disabled: 1, Unchanged: 3})
		state("mia", false, true, false) // it was disabled, and is still missing
		is.Equal(f.forced(t, snapshot{
			People: append(people("jo", "mia", "sam"), identity{ID: "id of new", Username: "new"}),
			Groups: all.Groups,
		}).Users, counts{Updated: 3, Unchanged: 1})
		state("mia", true, false, false)

		f.forced(t, locked)
		f.edit(t, "jo", func(u *principals.User) { u.Enabled = true })
		state("jo", true, false, false)
		is.Equal(len(ended), 2)
	})
}

// TestLossesCountLocks: locked users count as enabled users that may be lost.
func TestLossesCountLocks(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		all := people("a", "b", "c", "d")
		f.forced(t, snapshot{People: all})
		locked := slices.Clone(all)
		locked[0].Locked, locked[1].Locked = true, true
		is.Equal(f.scan(t, snapshot{People: locked}).Users.Disabled, 2)
		locked[2].Locked = true
		is.Equal(f.scan(t, snapshot{People: locked}).Users.Disabled, 1)
		_, err := f.Sync(
			t.Context(), "acme", "ldap", snapshot{People: people("d")}, dirsync.SyncOptions{Source: "LDAP"},
		)
		is.Equal(code(err), errs.Conflict)
		is.True(strings.Contains(errs.MessageOf(err), "disable 3 of 4 users"))
	})
}

func TestLastSuperuserStaysEnabled(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.forced(t, snapshot{People: people("a", "b", "c")})
		for _, name := range []string{"a", "b"} {
			f.edit(t, name, func(u *principals.User) { u.Superuser = true })
		}
		r := f.forced(t, snapshot{})
		is.Equal(r.Users, counts{Disabled: 2, Unchanged: 1})
		is.Equal(r.Warnings, []string{"b is the last enabled superuser and stays enabled."})
		is.True(f.get(t, "b").Enabled)
		_, err := f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "evil", Username: "root", Password: password,
		}) // another tenant's does not count
		is.NoErr(err)
		is.Equal(f.forced(t, snapshot{}).Users, counts{Unchanged: 3})
		_, err = f.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "root", Password: password,
		})
		is.NoErr(err)
		is.Equal(f.forced(t, snapshot{}).Users, counts{Disabled: 1, Unchanged: 2})
		is.True(!f.get(t, "b").Enabled)
	})
}

// TestGuardOfFew: without force, a filter that finds no people, or less than half of them, changes
// nothing, however few they are. A dry run reports it.
func TestGuardOfFew(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		all := snapshot{
			People: people("a", "b", "c", "d"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of a"}}},
		}
		f.scan(t, all)
		for _, c := range []struct {
			snap   snapshot
			losses string
		}{
			{snapshot{Groups: all.Groups}, "disable 4 of 4 users of the domain ldap"},
			{snapshot{People: people("a"), Groups: all.Groups}, "disable 3 of 4 users of the domain ldap"},
			{snapshot{People: all.People}, "remove 1 of 1 memberships in the teams of the domain ldap"},
		} {
			_, err := f.Sync(t.Context(), "acme", "ldap", c.snap, dirsync.SyncOptions{Source: "LDAP"})
			is.Equal(code(err), errs.Conflict)
			is.Equal(
				errs.MessageOf(err),
				"The scan would "+c.losses+"; nothing was changed. Look at the directory, or scan with force=true.",
			)
			r, err := f.Sync(t.Context(), "acme", "ldap", c.snap, dirsync.SyncOptions{Source: "LDAP", DryRun: true})
			is.NoErr(err)
			is.Equal(r.Warnings[0], "Without force=true the scan would be refused: it would "+c.losses+".")
			is.True(f.get(t, "d").Enabled)
		}
		// half is not more than half
		is.Equal(f.scan(t, snapshot{People: people("a", "b"), Groups: all.Groups}).Users.Disabled, 2)
		is.Equal(f.forced(t, snapshot{}).Users.Disabled, 2)
		is.Equal(f.scan(t, snapshot{}).Users, counts{Unchanged: 4}) // no user is left to be disabled
	})
}

func TestGuard(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var names []string
		for n := range 60 {
			names = append(names, fmt.Sprintf("u%02d", n))
		}
		all := people(names...)
		f.scan(t, snapshot{People: all})
		is.Equal(f.scan(t, snapshot{People: all[:50]}).Users.Disabled, 10)
		is.Equal(f.scan(t, snapshot{People: all[:40]}).Users.Disabled, 10) // 20 % of 50
		is.Equal(f.scan(t, snapshot{People: all[:30]}).Users.Disabled, 10) // a quarter of 40, and not more than ten
		_, eleven := f.Sync(t.Context(), "acme", "ldap", snapshot{People: all[:19]}, dirsync.SyncOptions{})
		is.True(strings.Contains(errs.MessageOf(eleven), "disable 11 of 30 users"))
		f.scan(t, snapshot{People: all})
		is.Equal(f.scan(t, snapshot{People: all[:48]}).Users.Disabled, 12) // 20 % of 60
		f.scan(t, snapshot{People: all})
		_, err := f.Sync(t.Context(), "acme", "ldap", snapshot{People: all[:47]}, dirsync.SyncOptions{})
		is.Equal(code(err), errs.Conflict)
		is.Equal(errs.MessageOf(err), "The scan would disable 13 of 60 users of the domain ldap; nothing was changed. "+
			"Look at the directory, or scan with force=true.")
		dry := dirsync.SyncOptions{Source: "LDAP", DryRun: true}
		odd := append(slices.Clone(all[:47]), identity{Username: "odd"})
		r, err := f.Sync(t.Context(), "acme", "ldap", snapshot{People: odd}, dry)
		is.NoErr(err)
		is.Equal(r.Users, counts{Disabled: 13, Unchanged: 47})
		is.Equal(len(r.Warnings), 2)
		is.Equal(
			r.Warnings[0],
			"Without force=true the scan would be refused: it would disable 13 of 60 users of the domain ldap.",
		)
		dry.Force = true
		r, err = f.Sync(t.Context(), "acme", "ldap", snapshot{People: all[:47]}, dry)
		is.NoErr(err)
		is.Equal(len(r.Warnings), 0)
		is.True(f.get(t, "u59").Enabled)
		r, err = f.Sync(t.Context(), "acme", "ldap", snapshot{}, dirsync.SyncOptions{Source: "LDAP", Force: true})
		is.NoErr(err)
		is.Equal(r.Users, counts{Disabled: 60})
	})
}

func TestDryRun(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.forced(t, snapshot{
			People: people("jo", "mia", "al"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of jo"}}, {ID: "h", Name: "Gone"}},
		})
		snap := snapshot{People: append(people("new", "mia"), identity{ID: "id of jo", Username: "joe"}),
			Groups: []group{
				{ID: "g", Name: "Everyone", Members: []string{"id of new"}},
				{ID: "i", Name: "More", Members: []string{"id of mia"}},
			}}
		o := dirsync.SyncOptions{Source: "LDAP", DryRun: true, Progress: func(int, int) { t.Error("it writes") }}
		dry, err := f.Sync(t.Context(), "acme", "ldap", snap, o)
		is.NoErr(err)
		is.Equal(dry, dirsync.Report{
			Users: counts{Created: 1, Updated: 1, Disabled: 1, Unchanged: 1},
			Teams: counts{Created: 1, Updated: 1, Disabled: 1},
			Added: 2, Removed: 1,
		})
		f.gone(t, "new")
		is.Equal(f.roster(t, "all"), "jo member")
		is.Equal(f.forced(t, snap), dry)
		is.Equal(f.roster(t, "all"), "new member")
	})
}

func TestGroups(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		f.user(t, "guest")
		f.team(t, "Own")
		snap := func(g ...group) snapshot { return snapshot{People: people("jo", "mia"), Groups: g} }
		sales := group{ID: "g", Name: "Sales", Description: "d", Members: []string{"id of jo", "id of mia"}}
		f.forced(t, snap(sales))
		for name, role := range map[string]actor.Role{"jo": actor.Admin, "guest": actor.Designer} {
			_, err := f.PutMember(root(t), "sales", name, role)
			is.NoErr(err)
		}
		_, err := f.PutMember(root(t), "own", "jo", actor.Publisher)
		is.NoErr(err)
		// roles and guests are kept
		is.Equal(f.forced(t, snap(sales)), dirsync.Report{Users: counts{Unchanged: 2}, Teams: counts{Unchanged: 1}})
		was, err := f.Team(root(t), "sales")
		is.NoErr(err)

		f.now = f.now.Add(time.Hour)
		sales.Name, sales.Description, sales.Members = "Selling", "", []string{"id of jo"}
		r := f.forced(t, snap(sales))
		is.Equal(r, dirsync.Report{Users: counts{Unchanged: 2}, Teams: counts{Updated: 1}, Removed: 1})
		team, err := f.Team(root(t), "sales")
		is.NoErr(err)
		was.Name, was.Description, was.UpdatedAt = "Selling", nil, f.now
		is.Equal(team, was) // the slug is kept
		is.Equal(f.roster(t, "sales"), "guest designer, jo admin")

		r = f.forced(t, snap())
		is.Equal(r, dirsync.Report{Users: counts{Unchanged: 2}, Teams: counts{Disabled: 1}, Removed: 1})
		is.Equal(f.roster(t, "sales"), "guest designer") // it may own content, so it is kept
		is.Equal(f.forced(t, snap()).Teams, counts{Unchanged: 1})
		_, err = f.UpdateTeam(root(t), "sales", func(t *principals.Team) error {
			t.Color, t.DirectoryGone = text("#abc"), false
			return nil
		})
		is.NoErr(err)
		is.Equal(f.forced(t, snap()).Teams, counts{Unchanged: 1}) // the description is set by the Service

		r = f.forced(t, snap(sales))
		is.Equal(r, dirsync.Report{Users: counts{Unchanged: 2}, Teams: counts{Updated: 1}, Added: 1})
		is.Equal(f.roster(t, "sales"), "guest designer, jo member")
		is.Equal(f.roster(t, "own"), "jo publisher") // a team outside of the domain is not changed

		sales.Name = ""
		r = f.forced(t, snap(sales))
		is.Equal(r.Teams, counts{Unchanged: 1})
		is.Equal(r.Warnings, []string{
			"group (nothing) (g): name must be 1 to 255 characters without control characters; the team keeps its name.",
		})
	})
}

// TestSharedSourceIDs: if a superuser gave several users the same source id, one of them is
// assigned to the entry, and the others are not changed.
func TestSharedSourceIDs(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		snap := snapshot{
			People: people("jo"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of jo"}}, {ID: "h", Name: "Other"}},
		}
		f.forced(t, snap)
		for _, name := range []string{"a", "z"} {
			_, err := f.CreateUser(root(t), principals.User{
				Username: name,
				Domain:   "ldap",
				SourceID: text("id of jo"),
				Enabled:  true,
			}, "")
			is.NoErr(err)
			_, err = f.PutMember(root(t), "other", name, actor.Admin)
			is.NoErr(err)
		}
		snap.People[0].Email = "jo@example.com"
		r := f.forced(t, snap)
		is.Equal(r.Users, counts{Updated: 1, Unchanged: 2})
		is.Equal(r.Warnings, []string{
			"a and jo have the same sourceId: one is left alone. Take it away from the wrong one.",
			"jo and z have the same sourceId: one is left alone. Take it away from the wrong one.",
		})
		is.Equal(*f.get(t, "jo").Email, "jo@example.com")
		is.Equal(f.get(t, "a").Email, nil)
		is.Equal(f.roster(t, "other"), "a admin, z admin")

		one, err := f.CreateTeam(root(t), principals.Team{Name: "Twin", Domain: "ldap", SourceID: text("g")})
		is.NoErr(err)
		r = f.forced(t, snap)
		is.Equal(r.Teams, counts{Unchanged: 3})
		is.Equal(r.Warnings[2], "team twin has the same sourceId as all and is left alone.")
		is.Equal(f.roster(t, one.ID), "")
	})
}

// TestScanIsolation: users with the same ids in another tenant, or another domain, are not changed.
func TestScanIsolation(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		snap := snapshot{
			People: people("jo", "mia"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of jo"}}},
		}
		for tenant, domain := range map[string]string{"evil": "ldap", "acme": "saml"} {
			_, err := f.Sync(ctx, tenant, domain, snap, dirsync.SyncOptions{Source: "LDAP"})
			is.NoErr(err)
		}
		users := func(tenant string) (all []principals.User) {
			for _, name := range []string{"jo", "mia"} {
				u, err := f.store.User(ctx, tenant, name)
				is.NoErr(err)
				all = append(all, u)
			}
			return all
		}
		theirs, others := users("evil"), users("acme")
		r := f.forced(t, snap)
		is.Equal(r.Users, counts{})
		is.Equal(r.Teams, counts{Created: 1})
		is.Equal(len(r.Warnings), 2)
		f.forced(t, snapshot{People: []identity{{ID: "id of jo", Username: "joe"}}})
		f.forced(t, snapshot{})
		is.Equal(users("evil"), theirs)
		is.Equal(users("acme"), others)
		evil := as(t, actor.Actor{Tenant: "evil", User: "x"})
		in, err := f.Members(evil, "all", paging.Query{Limit: paging.MaxLimit})
		is.NoErr(err)
		is.Equal(len(in.Rows), 1)
	})
}

// TestScansAtOnce: concurrent scans create the same users, once.
func TestScansAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		snap := snapshot{
			People: people("a", "b", "c"),
			Groups: []group{{ID: "g", Name: "All", Members: []string{"id of a", "id of b"}}},
		}
		var wg sync.WaitGroup
		reports, fails := make([]dirsync.Report, 8), make([]error, 8)
		for i := range reports {
			wg.Go(func() {
				reports[i], fails[i] = f.Sync(t.Context(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP"})
			})
		}
		wg.Wait()
		is.NoErr(errors.Join(fails...))
		made := 0
		for _, r := range reports {
			made += r.Users.Created
		}
		is.Equal(made, 3)
		content, err := f.Unchecked().DomainContent(t.Context(), "acme")
		is.NoErr(err)
		is.Equal(content, map[string]principals.DomainCounts{"ldap": {Users: 3, Teams: 1, Identified: 4}})
	})
}

func TestManyWarnings(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var snap snapshot
		for range 1234 {
			snap.People = append(snap.People, identity{Username: strings.Repeat("x", 1<<16)})
		}
		r := f.forced(t, snap)
		is.Equal(len(r.Warnings), 1001)
		is.Equal(r.Warnings[1000], "There are 234 more warnings.")
		is.True(len(r.Warnings[0]) < 300)
	})
}

func TestScanOfNoDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		for _, domain := range []string{"local", "a b", "\x00"} {
			_, err := f.Sync(ctx, "acme", domain, snapshot{}, dirsync.SyncOptions{})
			is.Equal(code(err), errs.Invalid)
		}
		_, err := f.Sync(ctx, "none", "ldap", snapshot{}, dirsync.SyncOptions{})
		is.Equal(code(err), errs.NotFound)
	})
}

// TestDeletedDomain: a scan that began before the deletion of its domain creates no users.
func TestDeletedDomain(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		there := true
		s := dirsync.New(dirsync.Options{Store: bunstore.New(f.db), Principals: principals.New(principals.Options{
			Store: f.store, Domains: knownDomains(func(_ context.Context, tenant, id string) error {
				if tenant != "acme" || id != "ldap" || !there {
					return errs.New(errs.Invalid, "domain must be the id of a domain of the tenant")
				}
				return nil
			}),
		}).Unchecked()})
		jo := snapshot{People: []identity{{ID: "1", Username: "jo"}}}
		_, err := s.Sync(t.Context(), "acme", "ldap", jo, dirsync.SyncOptions{Source: "LDAP"})
		is.NoErr(err)
		there = false
		is.NoErr(f.Unchecked().RemoveDomain(t.Context(), "acme", "ldap", f.user(t, "heir").Username))
		for _, domain := range []string{"ldap", "other"} {
			_, err = s.Sync(t.Context(), "acme", domain, jo, dirsync.SyncOptions{Source: "LDAP"})
			is.Equal(code(err), errs.NotFound)
			is.Equal(errs.MessageOf(err), "Domain not found.")
		}
		f.gone(t, "jo")
	})
}

// knownDomains is a principals.Domains for tests. A domain exists, and its users can log in, if the
// function returns nil.
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
