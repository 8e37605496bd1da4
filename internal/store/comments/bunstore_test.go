package bunstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/comments"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)

func TestStore(t *testing.T) {
	dbtest.EachStore(t, func(t *testing.T, open dbtest.Opener) {
		testStore(t, func(t *testing.T) Store {
			db := people(t, open(t))
			return suiteStore{bunstore.New(db), db}
		})
	})
}

// suiteStore is a Store whose users can be deleted.
type suiteStore struct {
	*bunstore.Store
	db *bun.DB
}

// CloseAccounts implements Store.
func (s suiteStore) CloseAccounts(
	ctx context.Context, tenant string, usernames ...string,
) (accounts []string, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		accounts, err = c.CloseAccounts(ctx, tenant, usernames)
		return err
	})
	return accounts, err
}

// people adds the users jo and mia to both tenants, and other principals that write comments.
func people(t *testing.T, db *bun.DB) *bun.DB {
	t.Helper()
	users := principalstore.New(db)
	for _, tenant := range []string{"acme", "evil"} {
		for _, name := range []string{"jo", "mia"} {
			is.New(t).NoErr(users.InsertUser(t.Context(), tenant, principals.User{
				Username: name, Domain: principals.Local, Data: json.RawMessage("{}"),
				UserFields: json.RawMessage("{}"), CreatedAt: monday, UpdatedAt: monday,
			}))
		}
	}
	return dbtest.People(t, db, "joan", "Jö.Doe@example.com")
}

// grow writes n comments on a report in bulk. Their ids are the name of the report and a number. If
// loud is set, it adds activities and feeds. parent returns the index of the comment to which the
// ith one replies, or -1.
func grow(t testing.TB, db *bun.DB, of string, n int, loud bool, parent func(i int) int) {
	t.Helper()
	id := func(i int) any {
		if i < 0 {
			return nil
		}
		return fmt.Sprintf("%s%06d", of, i)
	}
	replies, top := make([]int, n), 0
	for i := range n {
		if p := parent(i); p >= 0 {
			replies[p]++
		} else {
			top++
		}
	}
	is.New(t).NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		if _, err := c.Exec(
			ctx,
			`INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) VALUES ('acme', 'report', $1, $2)`,
			of, top,
		); err != nil {
			return err
		}
		const chunk = 500
		for from := 0; from < n; from += chunk {
			var rows, activities, feed []any
			to := min(n, from+chunk)
			for i := from; i < to; i++ {
				at := bunx.At(monday.Add(time.Duration(i) * time.Second))
				rows = append(rows, "acme", id(i), "report", of, id(parent(i)), "jo", "says", false, replies[i], at, at)
				activities = append(
					activities, "acme", id(i), "reportAddedComment", "report", of, id(i), "jo", "says", at,
				)
				feed = append(feed, "acme", id(i), "mia", at)
			}
			for _, insert := range []struct {
				into string
				args []any
			}{
				{
					"tc_comments (tenant_id, id, kind, entity_id, parent_id, user_id, message, public, replies, " +
						"created_at, updated_at)",
					rows,
				},
				{
					"tc_activities (tenant_id, id, type, kind, entity_id, comment_id, user_id, excerpt, created_at)",
					activities,
				},
				{"tc_feed (tenant_id, activity_id, username, created_at)", feed},
			} {
				if !loud && !strings.HasPrefix(insert.into, "tc_comments") {
					continue
				}
				columns := strings.Count(insert.into, ",") + 1
				if _, err := c.Exec(ctx, "INSERT INTO "+insert.into+" VALUES "+
					bunx.Values(to-from, columns), insert.args...); err != nil {
					return err
				}
			}
			if from == 0 && c.Postgres() {
				// as autovacuum does: otherwise PostgreSQL may check foreign keys with any index
				// that has the tenant
				if _, err := c.Exec(ctx, "ANALYZE tc_comments, tc_activities, tc_users"); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// TestDeepThreadSize: a thread of 4,000 nested replies is removed with a few statements, and its
// rows are deleted in steps.
func TestDeepThreadSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db, count := dbtest.Counted(t, func(t testing.TB) *bun.DB { return people(t.(*testing.T), open(t)) })
		s := bunstore.New(db)
		grow(t, db, "deep", 4_001, true, func(i int) int { return i - 1 })
		grow(t, db, "wide", 1000, true, func(i int) int { return -1 })
		is.NoErr(bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error { // jo has some of both
			_, err := c.Exec(ctx,
				`INSERT INTO tc_feed (tenant_id, activity_id, username, created_at) SELECT tenant_id, id, 'jo',
					created_at FROM tc_activities
				WHERE tenant_id = $1 AND id IN ('deep002000', 'deep003000', 'wide000001')`, "acme")
			if err == nil {
				_, err = c.Exec(ctx,
					`INSERT INTO tc_notifications (tenant_id, id, username, type, state, title, body,
						comment_id, created_at, updated_at)
					SELECT tenant_id, id, user_id, 'mention', 'queued', '', '', id, created_at, created_at FROM
					tc_comments
					WHERE tenant_id = $1 AND id IN ('deep002000', 'wide000001')`, "acme")
			}
			return err
		}))
		count.Take()
		rest, err := s.Delete(ctx, "acme", "deep000001", monday)
		is.NoErr(err)
		is.True(rest)
		is.True(len(count.Take()) <= 8)
		check := func() {
			t.Helper()
			is := is.New(t)
			for id, code := range map[string]errs.Code{
				"deep000000": "",
				"deep000001": errs.NotFound,
				"deep003000": errs.NotFound,
				"deep004000": errs.NotFound,
				"wide000500": "",
			} {
				_, err := s.Get(ctx, "acme", id)
				is.Equal(errs.CodeOf(err), code)
			}
			p, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: paging.MaxLimit})
			is.NoErr(err)
			is.Equal([]int{p.Total, len(p.Rows)}, []int{1001, 1000})
			feed, err := s.Feed(ctx, "acme", "mia", paging.Query{Limit: paging.MaxLimit})
			is.NoErr(err)
			is.Equal([]int{feed.Total, len(feed.Rows)}, []int{1001, 1000})
			few, err := s.Feed(ctx, "acme", "jo", paging.Query{Limit: 10})
			is.NoErr(err)
			notices, err := s.Notifications(ctx, "acme", "jo", comments.NotificationFilter{}, paging.Query{Limit: 10})
			is.NoErr(err)
			since, err := s.Notifications(
				ctx, "acme", "jo", comments.NotificationFilter{Since: monday}, paging.Query{Limit: 10},
			)
			is.NoErr(err)
			unread, err := s.Unread(ctx, "acme", "jo")
			is.NoErr(err)
			is.Equal([]int{
				few.Total, len(few.Rows), notices.Total, len(notices.Rows), since.Total, len(since.Rows),
				unread,
			}, []int{1, 1, 1, 1, 1, 1, 1})
			for id, n := range map[string]int{"deep": 1, "wide": 1000} {
				p, err := s.Activities(
					ctx, "acme", entity.Key{Kind: "report", ID: id}, paging.Query{Limit: paging.MaxLimit},
				)
				is.NoErr(err)
				is.Equal([]int{p.Total, len(p.Rows)}, []int{n, n})
			}
			replies, err := s.Replies(ctx, "acme", "deep000000", paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(replies.Total, 0)
		}
		check()
		steps := 0
		for more := true; more; steps++ {
			more, err = s.RemoveRest(ctx, "acme", entity.Key{Kind: "report", ID: "deep"}, comments.MaxRows)
			is.NoErr(err)
			if steps == 5 {
				check()
			}
		}
		is.True(steps >= 16) // of four rows each; some become top comments first
		check()
		n, err := s.Count(ctx, "acme")
		is.NoErr(err)
		is.Equal(n, 1001)
	})
}

// TestLongThreadSize: a page of 100,000 replies or comments is read only from indexes, without
// sorting or counting.
func TestLongThreadSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db, count := dbtest.Counted(t, func(t testing.TB) *bun.DB { return people(t.(*testing.T), open(t)) })
		s := bunstore.New(db)
		long := 100_000
		if db.Dialect().Name() == dialect.SQLite {
			long = 5_000 // its plans do not depend on sizes
		}
		grow(t, db, "long", long+1, false, func(i int) int { return min(i, 1) - 1 }) // replies to the first
		grow(t, db, "flat", 5_000, true, func(i int) int { return -1 })
		is.NoErr(bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
			// SQLite and PostgreSQL read a table of one page as a whole
			var rows []any
			for i := range 5_000 {
				rows = append(rows, "acme", "report", fmt.Sprint(i), 0)
			}
			_, err := c.Exec(ctx, "INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) VALUES "+
				bunx.Values(5_000, 4), rows...)
			if err == nil {
				_, err = c.Exec(
					ctx,
					"INSERT INTO tc_totals SELECT tenant_id, 'others', entity_id, 0, 1 FROM tc_comment_threads "+
						"WHERE tenant_id = $1",
					"acme",
				)
			}
			return err
		}))
		_, err := db.ExecContext(ctx, "ANALYZE")
		is.NoErr(err)
		flat := entity.Key{Kind: "report", ID: "flat"}
		for name, page := range map[string]func(q paging.Query) (int, *paging.Position, error){
			"replies": func(q paging.Query) (int, *paging.Position, error) {
				p, err := s.Replies(ctx, "acme", "long000000", q)
				return p.Total, p.Last, err
			},
			"top": func(q paging.Query) (int, *paging.Position, error) {
				p, err := s.List(ctx, "acme", flat, q)
				return p.Total, p.Last, err
			},
			"activities": func(q paging.Query) (int, *paging.Position, error) {
				p, err := s.Activities(ctx, "acme", flat, q)
				return p.Total, p.Last, err
			},
			"feed": func(q paging.Query) (int, *paging.Position, error) {
				p, err := s.Feed(ctx, "acme", "mia", q)
				return p.Total, p.Last, err
			},
		} {
			for _, sort := range []string{"-createdAt", "createdAt"} {
				count.Take()
				_, last, err := page(paging.Query{Start: 1_000_000, Limit: 100, Sort: sort})
				is.NoErr(err)
				is.True(last == nil)
				if beyond := count.Statements(); db.Dialect().Name() == dialect.PG { // it skips no rows
					if name == "activities" || name == "feed" {
						beyond = beyond[1:]
					}
					is.True(strings.Contains(explain(t, db, beyond[0]), "One-Time Filter: ("))
				}
				count.Take()
				total, last, err := page(paging.Query{Limit: 100, Sort: sort})
				is.NoErr(err)
				is.Equal(total, map[string]int{"replies": long, "top": 5_000, "activities": 5_000, "feed": 5_000}[name])
				first := count.Statements()
				_, _, err = page(paging.Query{Start: 100, Limit: 100, Sort: sort, After: last})
				is.NoErr(err)
				second := count.Statements()
				if name == "activities" || name == "feed" { // after it was checked that all comments are present
					is.True(strings.Contains(first[0].Text, "removing_at"))
					is.True(strings.Contains(second[0].Text, "removing_at"))
					first, second = first[1:], second[1:]
				}
				is.Equal(len(first), 1)
				is.Equal(len(second), 1)
				for _, statement := range []dbtest.Statement{first[0], second[0]} {
					if plan := explain(t, db, statement); readsAll.MatchString(plan) ||
						strings.Contains(plan, "Sort") || strings.Contains(plan, "TEMP B-TREE") ||
						!strings.Contains(plan, "tc_") {
						t.Errorf("%s %s:\n%s\n%s", name, sort, statement.Text, plan)
					}
				}
				is.True(!strings.Contains(first[0].Text, "count("))
			}
		}
		// A delete, of one reply or of all of them, reads no whole table, and neither do the checks
		// of foreign keys.
		for _, id := range []string{"long004000", "flat000001", "long000000"} {
			all := id == "long000000"
			count.Take()
			rest, err := s.Delete(ctx, "acme", id, monday)
			is.NoErr(err)
			is.Equal(rest, all)
			statements := count.Statements()
			is.True(len(statements) >= 3)
			if db.Dialect().Name() == dialect.PG && !all {
				for _, of := range []string{
					"tc_comments x WHERE $1 = tenant_id AND $2 = parent_id",
					"tc_activities x WHERE $1 = tenant_id AND $2 = comment_id",
					"tc_notifications x WHERE $1 = tenant_id AND $2 = comment_id",
				} {
					statements = append(
						statements, dbtest.Statement{Text: "SELECT 1 FROM ONLY " + of, Args: []any{"acme", id}},
					)
				}
			}
			for _, statement := range statements {
				if !strings.Contains(statement.Text, "tc_") {
					continue
				}
				if plan := strings.ReplaceAll(
					explain(t, db, statement), "SCAN t\n", "",
				); readsAll.MatchString(plan) || strings.Contains(plan, "JIT") {
					// t is the table
					t.Errorf("delete of %s:\n%s\n%s", id, statement.Text, plan)
				}
			}
		}
	})
}

// TestRemovedCommentsAreFoundByKeySize: with the statistics of 500 comments, 10,000 removed
// comments are found by keys, both to hide them and to delete their rows in a step.
func TestRemovedCommentsAreFoundByKeySize(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	const kept, gone = 1_000, 10_000
	db := people(t, dbtest.Postgres(t))
	dbtest.WithoutStatistics(t, db, "tc_comments", "tc_activities", "tc_feed", "tc_notifications")
	s := bunstore.New(db)
	grow(t, db, "kept", kept, true, func(int) int { return -1 })
	grow(t, db, "gone", gone, true, func(int) int { return -1 })
	of := entity.Key{Kind: "report", ID: "gone"}
	later, err := s.DeleteAll(ctx, "acme", of.Kind, []string{of.ID}, monday)
	is.NoErr(err)
	is.Equal(later, []string{of.ID})
	q := paging.Query{Limit: 20}
	for name, read := range map[string]func(context.Context) (total int, err error){
		"feed": func(ctx context.Context) (int, error) {
			p, err := s.Feed(ctx, "acme", "mia", q)
			return p.Total, err
		},
		"activities": func(ctx context.Context) (int, error) {
			p, err := s.Activities(ctx, "acme", entity.Key{}, q)
			return p.Total, err
		},
		"notifications": func(ctx context.Context) (int, error) {
			p, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, q)
			return p.Total + kept, err
		},
	} {
		n := dbtest.RowsRead(t, db, "acme", func(ctx context.Context) error {
			total, err := read(ctx)
			is.Equal(total, kept)
			return err
		})
		t.Log(name, n)
		if n > 10*(kept+gone) {
			t.Errorf("%s reads %d rows", name, n)
		}
	}
	for range 3 {
		n := dbtest.RowsRead(t, db, "acme", func(ctx context.Context) error {
			_, err := s.RemoveRest(ctx, "acme", of, comments.MaxRows)
			return err
		})
		t.Log("step", n)
		if n > 20*comments.MaxRows {
			t.Errorf("a step reads %d rows", n)
		}
	}
}

// TestDeletesOfManyEntitiesSize: the comments on many entities are deleted by few statements, which
// find them by keys, beside many others and without statistics.
func TestDeletesOfManyEntitiesSize(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		const gone = 2_000
		db, count := dbtest.Counted(t, func(t testing.TB) *bun.DB { return people(t.(*testing.T), open(t)) })
		s := bunstore.New(db)
		grow(t, db, "kept", 10_000, false, func(int) int { return -1 })
		var ids []string
		for i := range gone {
			ids = append(ids, fmt.Sprintf("gone%d", i))
			if i%2 == 0 {
				is.NoErr(s.Insert(ctx, "acme", comments.Comment{
					ID:        ids[i],
					Message:   "Hello",
					UserID:    "jo",
					Entity:    entity.Key{Kind: "report", ID: ids[i]},
					CreatedAt: monday,
					UpdatedAt: monday,
				}))
			}
		}
		is.NoErr(bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
			count.Take()
			later, err := s.DeleteAll(ctx, "acme", "report", ids, monday)
			is.Equal(len(later), 0)
			n := len(count.Take())
			t.Log(n, "statements")
			is.True(n <= 40)
			return err
		}))
		n, err := s.Count(ctx, "acme")
		is.NoErr(err)
		is.Equal(n, 10_000)
	})
}

// TestDeletesOfManyEntitiesByKeySize: without statistics, the statements of
// TestDeletesOfManyEntitiesSize find rows by keys, except for one statement that may read a small
// table.
func TestDeletesOfManyEntitiesByKeySize(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	db := people(t, dbtest.Postgres(t))
	dbtest.WithoutStatistics(t, db, "tc_comments", "tc_comment_threads", "tc_activities", "tc_feed", "tc_notifications")
	s := bunstore.New(db)
	grow(t, db, "kept", 20_000, true, func(int) int { return -1 })
	var ids []string
	for i := range 500 {
		ids = append(ids, fmt.Sprintf("gone%d", i))
		is.NoErr(s.Insert(ctx, "acme", comments.Comment{
			ID:        ids[i],
			Message:   "Hello",
			UserID:    "jo",
			Entity:    entity.Key{Kind: "report", ID: ids[i]},
			CreatedAt: monday,
			UpdatedAt: monday,
		}))
	}
	n := dbtest.RowsRead(t, db, "acme", func(ctx context.Context) error {
		_, err := s.DeleteAll(ctx, "acme", "report", ids, monday)
		return err
	})
	t.Log(n)
	if n > 20_000+20*len(ids) {
		t.Errorf("a delete of %d entities reads %d rows", len(ids), n)
	}
}

// readsAll matches the plan of a statement that reads a whole table. It ignores tc_former_users,
// which is empty here.
var readsAll = regexp.MustCompile(`SCAN [acft]\b|Seq Scan on tc_(comments|comment_threads|activities|feed)\b`)

// explain returns the plan of a statement.
func explain(t *testing.T, db *bun.DB, statement dbtest.Statement) string {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	return strings.Join(dbtest.Explain(ctx, t, c, statement.Text, statement.Args...), "\n")
}

// TestDeletedUser: the comments of a deleted user are kept; the feed and notifications are deleted.
func TestDeletedUser(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db := people(t, open(t))
		s := bunstore.New(db)
		grow(t, db, "r", 3, true, func(i int) int { return i - 1 })
		id := "r000001"
		is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{{
			ID:        "n",
			Username:  "mia",
			CommentID: &id,
			CreatedAt: monday,
			UpdatedAt: monday,
		}}))
		for _, name := range []string{"jo", "mia"} {
			_, err := principalstore.New(db).DeleteUser(ctx, "acme", name)
			is.NoErr(err)
		}
		c, err := s.Get(ctx, "acme", id)
		is.NoErr(err)
		is.Equal(c.UserID, "jo")
		feed, err := s.Feed(ctx, "acme", "mia", paging.Query{Limit: 1})
		is.NoErr(err)
		is.Equal(feed.Total, 0)
		queued, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, paging.Query{Limit: 1})
		is.NoErr(err)
		is.Equal(queued.Total, 0)
		all, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 1})
		is.NoErr(err)
		is.Equal(all.Total, 3)
	})
}

// TestWrongReplies: comments whose numbers of replies are wrong, because another program changed
// them, can be removed.
func TestWrongReplies(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db := people(t, open(t))
		s := bunstore.New(db)
		const n = comments.MaxRows/3 + 100
		grow(t, db, "r", n, true, func(i int) int { return (i+2)/3 - 1 })
		grow(t, db, "s", 3, false, func(i int) int { return i - 1 })
		is.NoErr(bunx.Write(ctx, db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx,
				`UPDATE tc_comments SET replies = CASE WHEN id < 'r000010' THEN 0 WHEN id < 'r000300' THEN
					replies + 7 WHEN id < 's' THEN -1 ELSE 0 END
				WHERE tenant_id = 'acme'`)
			return err
		}))
		rest, err := s.Delete(ctx, "acme", "s000000", monday)
		is.NoErr(err)
		is.True(!rest)
		later, err := s.DeleteAll(ctx, "acme", "report", []string{"r"}, monday)
		is.NoErr(err)
		is.Equal(later, []string{"r"})
		steps := 0
		for more := true; more; steps++ {
			is.True(steps < n)
			more, err = s.RemoveRest(ctx, "acme", entity.Key{Kind: "report", ID: "r"}, 100)
			is.NoErr(err)
		}
		left, err := s.Count(ctx, "acme")
		is.NoErr(err)
		is.Equal(left, 0)
	})
}
