package tenantcontent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// listening opens an App that keeps changes and has what c says.
func listening(t testing.TB, db *bun.DB, c tenantcontent.Config) *tenantcontent.App {
	t.Helper()
	c.DB, c.SecretKey, c.KeepChanges = db, tenantcontent.NewSecretKey(), true
	app, err := tenantcontent.Open(c)
	is.New(t).NoErr(err)
	return app
}

// changed returns the changes of a tenant after a position, in short.
func changed(
	t testing.TB, app *tenantcontent.App, tenant string, after int64,
) (short []string, page entity.ChangePage) {
	t.Helper()
	page, err := app.Changes(t.Context(), tenant, after, 0)
	is.New(t).NoErr(err)
	for _, c := range page.Rows {
		short = append(short, fmt.Sprintf("%s %s %s by %s", c.Action, c.Kind, c.ID, c.Actor))
	}
	return short, page
}

// addSuperusers adds superusers to the tenant acme.
func addSuperusers(t testing.TB, app *tenantcontent.App, users ...string) {
	t.Helper()
	for _, user := range users {
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: user, Password: password,
		})
		is.New(t).NoErr(err)
	}
}

func TestChanges(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		var heard []entity.Change
		var app *tenantcontent.App
		app = listening(t, opener(t), tenantcontent.Config{
			Before: []func(
				ctx context.Context, c entity.Change,
			) error{func(ctx context.Context, c entity.Change) error {
				if strings.Contains(string(c.After), "#bad") {
					return errs.New(errs.Invalid, "This color is not ours.")
				}
				return nil
			}},
			After: []func(ctx context.Context, c entity.Change){func(ctx context.Context, c entity.Change) {
				heard = append(heard, c)
				if c.ID == "b" && c.Action == entity.ActionCreate {
					// the transaction has ended, and a write is recorded
					_, err := app.Colors.Put(ctx, "c", "#ccc")
					is.NoErr(err)
				}
			}},
		})
		put := func(ctx context.Context, key, color string) {
			_, err := app.Colors.Put(ctx, key, color)
			is.NoErr(err)
		}
		put(ctx, "a", "#aaa")
		put(ctx, "a", "#aab")
		put(ctx, "b", "#bbb")
		_, err := app.Colors.Put(ctx, "d", "#bad")
		is.Equal(errs.MessageOf(err), "This color is not ours.")
		_, err = app.Colors.Get(ctx, "d")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.NoErr(app.Colors.Delete(ctx, "a"))
		is.NoErr(app.Colors.Delete(ctx, "a")) // is not there any more
		put(as(ctx, "evil"), "e", "#eee")

		want := []string{
			"create color a by jo", "update color a by jo", "create color b by jo", "create color c by jo",
			"delete color a by jo",
		}
		got, page := changed(t, app, "acme", 0)
		is.Equal(got, want)
		is.Equal(page.Reset, false)
		other, _ := changed(t, app, "evil", 0)
		is.Equal(other, []string{"create color e by jo"})
		is.Equal(len(heard), 6)
		var before, after struct{ Key, Color string }
		is.NoErr(json.Unmarshal(page.Rows[1].Before, &before))
		is.NoErr(json.Unmarshal(page.Rows[1].After, &after))
		is.Equal([]string{before.Color, after.Color}, []string{"#aaa", "#aab"})
		is.Equal(page.Rows[0].Before, json.RawMessage(nil))
		is.Equal(page.Rows[4].Before, page.Rows[1].After)
		is.Equal(page.Rows[4].After, json.RawMessage(nil))

		some, err := app.Changes(ctx, "acme", 0, 2)
		is.NoErr(err)
		is.Equal(len(some.Rows), 2)
		rest, last := changed(t, app, "acme", some.Next)
		is.Equal(rest, want[2:])
		is.Equal(last.Next, page.Next)
		now, err := app.Changes(ctx, "acme", -1, 0)
		is.NoErr(err)
		is.Equal(now, entity.ChangePage{Next: page.Next})

		failed := fmt.Errorf("no")
		is.Equal(app.InTx(ctx, func(ctx context.Context) error {
			put(ctx, "x", "#fff")
			return failed
		}), failed)
		none, _ := changed(t, app, "acme", page.Next)
		is.Equal(len(none), 0)
		is.Equal(len(heard), 6)
	})
}

// TestSlowChangeIsNotSkipped: a reader reads on while a transaction is open for 5 seconds and 100
// others of the tenant are committed, on SQLite after it.
func TestSlowChangeIsNotSkipped(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		db := opener(t)
		app := listening(t, db, tenantcontent.Config{})
		postgres := db.Dialect().Name().String() == "pg"
		var slow sync.WaitGroup
		begun := make(chan struct{})
		slow.Go(func() {
			is.NoErr(app.InTx(ctx, func(ctx context.Context) error {
				_, err := app.Colors.Put(ctx, "slow", "#fff")
				close(begun)
				time.Sleep(5 * time.Second)
				return err
			}))
		})
		<-begun
		for i := range 4 {
			slow.Go(func() {
				for n := range 25 {
					for {
						_, err := app.Colors.Put(ctx, fmt.Sprint("quick ", i, " ", n), "#000")
						if errs.CodeOf(err) == errs.Unavailable && !postgres { // it has one writer
							continue
						}
						is.NoErr(err)
						break
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			slow.Wait()
			close(done)
		}()
		var order []string
		at := int64(0)
		read := func() {
			page, err := app.Changes(t.Context(), "acme", at, 7)
			is.NoErr(err)
			is.Equal(page.Reset, false)
			for _, c := range page.Rows {
				is.True(c.Position > at)
				at = c.Position
				order = append(order, c.ID)
			}
		}
		for ended := false; !ended; {
			select {
			case <-done:
				ended = true
			default:
				time.Sleep(5 * time.Millisecond)
				read()
			}
		}
		for n := -1; n != len(order); {
			n = len(order)
			read()
		}
		is.Equal(len(order), 101)
		is.Equal(len(slices.Compact(slices.Sorted(slices.Values(order)))), 101)
		if postgres {
			is.Equal(order[100], "slow") // as its commit
		}
	})
}

// TestChangesOfOneRowAreInOrder: of a row that many write at once, each change has as its After
// what stays, and the last one is the row's.
func TestChangesOfOneRowAreInOrder(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		app := listening(t, opener(t), tenantcontent.Config{})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 10 {
					_, err := app.Colors.Put(ctx, "one", fmt.Sprintf("#%03x", i*16+n))
					is.NoErr(err)
				}
			})
		}
		all.Wait()
		_, page := changed(t, app, "acme", 0)
		is.Equal(len(page.Rows), 80)
		c, err := app.Colors.Get(ctx, "one")
		is.NoErr(err)
		is.True(strings.Contains(string(page.Rows[79].After), `"`+c.Color+`"`))
	})
}

// TestChangesShowWhatAGetShows of content, by natural ids, too.
func TestChangesShowWhatAGetShows(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		caller, err := actor.From(ctx)
		is.NoErr(err)
		app := listening(t, opener(t), tenantcontent.Config{Authenticate: func(*http.Request) (actor.Actor, error) {
			return caller, nil
		}})
		_, err = app.Principals.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		get := func(path string) string {
			w := httptest.NewRecorder()
			app.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			is.Equal(w.Code, http.StatusOK)
			return w.Body.String()
		}
		slug, sold := "sales", "sold"
		e, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales", Slug: &slug})
		is.NoErr(err)
		made := get("/api/reports/" + e.ID)
		_, err = app.Content.Update(ctx, "report", "jo:sales", func(e *content.Entity) error {
			e.Name, e.Slug = "Sold", &sold // the name by which the row was asked for ends
			return nil
		})
		is.NoErr(err)
		edited := get("/api/reports/" + e.ID)
		is.NoErr(app.Content.Delete(ctx, "report", e.ID))
		_, err = app.Colors.Put(ctx, "a", "#aaa")
		is.NoErr(err)
		color := get("/api/colors/a")

		got, page := changed(t, app, "acme", 0)
		is.Equal(got, []string{
			"create user jo by jo", "create report " + e.ID + " by jo", "update report " + e.ID + " by jo",
			"delete report " + e.ID + " by jo", "create color a by jo",
		})
		is.Equal(string(page.Rows[1].After), made)
		is.Equal(string(page.Rows[2].Before), made)
		is.Equal(string(page.Rows[2].After), edited)
		is.Equal(string(page.Rows[3].Before), edited)
		is.Equal(string(page.Rows[4].After), color)
	})
}

// TestSwappedNamesAnnounceNoThird: the names pass through a third one, which no reader hears of.
func TestSwappedNamesAnnounceNoThird(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := listening(t, db, tenantcontent.Config{DomainDrivers: []domains.Driver{ldap.LDAP{}}})
		addLDAP(t, app)
		scan := func(first, second string) {
			_, err := syncOf(app, db).Sync(t.Context(), "acme", "ldap", dirsync.Snapshot{People: []principals.Identity{
				{ID: "1", Username: first}, {ID: "2", Username: second},
			}}, dirsync.SyncOptions{Source: "LDAP"})
			is.NoErr(err)
		}
		scan("jo", "mia")
		_, page := changed(t, app, "acme", 0)
		scan("mia", "jo")
		got := map[string]int{}
		_, swapped := changed(t, app, "acme", page.Next)
		for _, c := range swapped.Rows {
			if c.Kind == entity.KindUser && c.Action != entity.ActionUpdate {
				got[string(c.Action)+" "+c.ID]++
			}
		}
		is.Equal(got, map[string]int{"delete jo": 1, "delete mia": 1, "create jo": 1, "create mia": 1})
	})
}

// TestChangesInTransactionOfHost: the changes are part of a transaction of the host, and After is
// called by Committed.
func TestChangesInTransactionOfHost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx, db := is.New(t), as(t.Context(), "acme"), opener(t)
		var heard []entity.Change
		app := listening(t, db, tenantcontent.Config{
			After: []func(context.Context, entity.Change){func(_ context.Context, c entity.Change) {
				heard = append(heard, c)
			}},
		})
		for _, commit := range []bool{false, true} {
			tx, err := db.BeginTx(ctx, nil)
			is.NoErr(err)
			within, err := tenantcontent.WithTx(ctx, tx)
			is.NoErr(err)
			_, err = app.Colors.Put(within, "a", "#aaa")
			is.NoErr(err)
			if !commit {
				is.NoErr(tx.Rollback())
				got, _ := changed(t, app, "acme", 0)
				is.Equal(len(got), 0)
				is.Equal(len(heard), 0)
				continue
			}
			is.NoErr(tx.Commit())
			is.Equal(len(heard), 0)
			is.NoErr(tenantcontent.Committed(within))
			got, page := changed(t, app, "acme", 0)
			is.Equal(got, []string{"create color a by jo"})
			is.Equal(len(heard), 1)
			is.Equal(heard[0].After, page.Rows[0].After)
		}
	})
}

// TestChangesOfDeletedUserGoInSteps: the transaction that deletes a user with many changes removes
// few of them. Nobody sees the others from then on, also when there is a user of the name again,
// and a job removes them.
func TestChangesOfDeletedUserGoInSteps(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, jo, db := is.New(t), as(t.Context(), "acme"), opener(t)
		app := listening(t, db, tenantcontent.Config{})
		addSuperusers(t, app, "jo", "other")
		other := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "other", Superuser: true})
		_, start := changed(t, app, "acme", 0)
		const many = 700
		is.NoErr(app.InTx(jo, func(ctx context.Context) error {
			for i := range many {
				if _, err := app.Colors.Put(ctx, fmt.Sprint("color ", i), "#fff"); err != nil {
					return err
				}
			}
			return nil
		}))
		_, err := app.Colors.Put(other, "kept", "#fff")
		is.NoErr(err)
		_, before := changed(t, app, "acme", start.Next)
		is.Equal(len(before.Rows), many+1)
		left := func() (n int) {
			ctx, c := bunx.For(t.Context(), db, "acme")
			made := c.Row(ctx, `SELECT count(*) FROM tc_changes WHERE tenant_id = $1 AND username = 'jo'`, "acme")
			is.NoErr(made.Scan(&n))
			return n
		}
		is.NoErr(app.Principals.DeleteUser(other, "jo", ""))
		is.Equal(left(), many-250)
		seen := []string{"create color kept by other", "delete user jo by other"}
		got, _ := changed(t, app, "acme", start.Next)
		is.Equal(got, seen)
		got, _ = changed(t, app, "acme", 0)
		is.Equal(got, append([]string{"create user other by "}, seen...))
		time.Sleep(time.Millisecond) // what comes is of a later microsecond
		_, err = app.Principals.CreateUser(other, principals.User{Username: "jo", Enabled: true}, "")
		is.NoErr(err)
		_, err = app.Colors.Put(jo, "again", "#fff")
		is.NoErr(err)
		seen = append(seen, "create user jo by other", "create color again by jo")
		got, _ = changed(t, app, "acme", start.Next)
		is.Equal(got, seen)

		_, err = app.Tenants.Unchecked().Rekey(t.Context()) // dbtest adds tenants without a key check
		is.NoErr(err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- app.Run(ctx) }()
		for until := time.Now().Add(time.Minute); left() > 1; time.Sleep(20 * time.Millisecond) {
			is.True(time.Now().Before(until))
		}
		stop()
		is.NoErr(<-ended)
		got, _ = changed(t, app, "acme", start.Next)
		is.Equal(got, seen)
	})
}

// rowsOf counts the rows of a tenant in a table.
func rowsOf(t testing.TB, db *bun.DB, tenant, table string) int {
	t.Helper()
	n, err := bunx.Count(t.Context(), db, tenant, table)
	is.New(t).NoErr(err)
	return n
}

// TestSweepGivesPositions: changes that nobody reads do not stay where they are added.
func TestSweepGivesPositions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx, db := is.New(t), as(t.Context(), "acme"), opener(t)
		app := listening(t, db, tenantcontent.Config{})
		for i := range 3 {
			_, err := app.Colors.Put(ctx, fmt.Sprint("color ", i), "#fff")
			is.NoErr(err)
		}
		is.Equal([]int{rowsOf(t, db, "acme", "tc_new_changes"), rowsOf(t, db, "acme", "tc_changes")}, []int{3, 0})
		is.NoErr(app.Sweep(ctx))
		is.Equal([]int{rowsOf(t, db, "acme", "tc_new_changes"), rowsOf(t, db, "acme", "tc_changes")}, []int{0, 3})
		got, page := changed(t, app, "acme", 0)
		is.Equal(got, []string{"create color color 0 by jo", "create color color 1 by jo", "create color color 2 by jo"})
		is.Equal(page.Next, int64(3))
	})
}

// TestUnreadChangesOfDeletedUserGo: what a user did goes with the user, also before it has a
// position.
func TestUnreadChangesOfDeletedUserGo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, jo, db := is.New(t), as(t.Context(), "acme"), opener(t)
		app := listening(t, db, tenantcontent.Config{})
		addSuperusers(t, app, "jo", "other")
		_, start := changed(t, app, "acme", 0)
		other := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "other", Superuser: true})
		_, err := app.Colors.Put(jo, "a", "#fff")
		is.NoErr(err)
		_, err = app.Colors.Put(other, "b", "#fff")
		is.NoErr(err)
		is.NoErr(app.Principals.DeleteUser(other, "jo", ""))
		is.Equal(rowsOf(t, db, "acme", "tc_new_changes"), 2)
		got, _ := changed(t, app, "acme", start.Next)
		is.Equal(got, []string{"create color b by other", "delete user jo by other"})
	})
}

// TestChangesOfDeletedUserGoWhileRead: changes of a user that a reader moves while the user is
// deleted go, too.
func TestChangesOfDeletedUserGoWhileRead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, whole := is.New(t), opener(t)
		var reader *tenantcontent.App
		armed := false
		db := dbtest.Watched(t, whole, func(statement string) {
			if !armed || !strings.HasPrefix(statement, "DELETE FROM tc_new_changes") {
				return
			}
			armed = false
			if whole.Dialect().Name().String() == "pg" {
				_, err := reader.Changes(context.Background(), "acme", 0, 0)
				is.NoErr(err)
			}
		})
		reader = listening(t, whole, tenantcontent.Config{})
		app := listening(t, db, tenantcontent.Config{})
		addSuperusers(t, reader, "jo", "other")
		_, start := changed(t, reader, "acme", 0)
		_, err := reader.Colors.Put(as(t.Context(), "acme"), "a", "#fff")
		is.NoErr(err)
		other := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "other", Superuser: true})
		armed = true
		is.NoErr(app.Principals.DeleteUser(other, "jo", ""))
		is.True(!armed)
		got, _ := changed(t, reader, "acme", start.Next)
		is.Equal(got, []string{"delete user jo by other"})
	})
}

// TestOldChangesGo, and who has not read them hears of it.
func TestOldChangesGo(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		now := time.Now()
		app := listening(t, opener(t), tenantcontent.Config{Now: func() time.Time { return now }})
		put := func(key string) {
			_, err := app.Colors.Put(ctx, key, "#fff")
			is.NoErr(err)
		}
		put("a")
		put("b")
		_, first := changed(t, app, "acme", 0)
		now = now.Add(6 * 24 * time.Hour)
		put("c")
		is.NoErr(app.Sweep(ctx))
		got, _ := changed(t, app, "acme", 0)
		is.Equal(len(got), 3)
		now = now.Add(2 * 24 * time.Hour)
		is.NoErr(app.Sweep(ctx))
		got, page := changed(t, app, "acme", first.Rows[0].Position)
		is.Equal(got, []string{"create color c by jo"})
		is.True(page.Reset)
		_, page = changed(t, app, "acme", first.Next) // has read all that is gone
		is.True(!page.Reset)
		_, page = changed(t, app, "acme", 1000)
		is.True(page.Reset)
	})
}

// TestNobodyListens: what is changed then costs no allocation more.
func TestNobodyListens(t *testing.T) {
	is, ctx := is.New(t), as(t.Context(), "acme")
	is.True(entity.NewChanges(entity.ChangesOptions{}) == nil)
	var none *entity.Changes
	key := entity.Key{Kind: "color", ID: "a"}
	of := entity.Subject{Kind: "color", ID: "a", Action: entity.ActionUpdate}
	is.Equal(testing.AllocsPerRun(100, func() {
		if none.Wanted(ctx, of) || none.Each(ctx, "acme", entity.ActionUpdate, key) != nil {
			t.Fatal("somebody listens")
		}
	}), 0.0)
}
