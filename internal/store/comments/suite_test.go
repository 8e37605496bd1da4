package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	commentsMonday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday        = commentsMonday.Add(24 * time.Hour)

	sales  = entity.Key{Kind: "report", ID: "sales"}
	orders = entity.Key{Kind: "dataset", ID: "orders"}
)

// Store is what the checks use: the store of comments, its queue, and the deletion of users'
// accounts.
type Store interface {
	comments.Store
	comments.Queue
	// CloseAccounts counts some users as deleted but keeps them, as if they were created again
	// under the same names. It returns their former accounts.
	CloseAccounts(ctx context.Context, tenant string, usernames ...string) ([]string, error)
}

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil, each with the users jo and mia and the principals joan and Jö.Doe@example.com.
func testStore(t *testing.T, open func(t *testing.T) Store) {
	for name, check := range map[string]func(*testing.T, Store){
		"RoundTrip":             testRoundTrip,
		"NoAuthor":              testNoAuthor,
		"Missing":               testMissing,
		"Isolation":             testIsolation,
		"Threads":               testThreads,
		"DeleteBelow":           testDelete,
		"DeleteAll":             testDeleteAll,
		"RemovedReplies":        testRemovedReplies,
		"RemovedEntity":         testRemovedEntity,
		"RemovedEntities":       testRemovedEntities,
		"AuthorsGone":           testAuthorsGone,
		"Accounts":              testAccounts,
		"RenameUsers":           testRenameUsers,
		"ThreadsOfEntities":     testThreadsOfEntities,
		"OfUsers":               testOfUsers,
		"FailedEditWritesNone":  testFailedEdit,
		"FailedTxWritesNone":    testFailedTx,
		"ParallelEditsAllLand":  testParallelEdits,
		"RepliesWhileDeleting":  testRepliesWhileDeleting,
		"Pages":                 testPages,
		"Activities":            testActivities,
		"ActivitiesGo":          testActivitiesGo,
		"Feed":                  testFeed,
		"Notifications":         testNotifications,
		"Notices":               testNotices,
		"SweepOld":              testSweepOld,
		"CanceledWritesNothing": testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// failure returns the error of a Delete.
func failure[T any](_ T, err error) error { return err }

func text(s string) *string { return &s }

// comment returns a comment on sales; parent is "" for a top comment.
func comment(id, parent string) comments.Comment {
	c := comments.Comment{
		Tenant:    "acme",
		ID:        id,
		Message:   "says " + id,
		UserID:    "jo",
		Entity:    sales,
		CreatedAt: commentsMonday,
		UpdatedAt: commentsMonday,
	}
	if parent != "" {
		c.ParentID = &parent
	}
	return c
}

func insert(t *testing.T, s Store, tenant string, all ...comments.Comment) {
	t.Helper()
	is.New(t).NoErr(s.InTx(t.Context(), func(ctx context.Context) error { // one transaction is much faster
		for _, c := range all {
			if err := s.Insert(ctx, tenant, c); err != nil {
				return err
			}
		}
		return nil
	}))
}

// top and replies return the ids of the first page, newest first, and check the total.
func top(t *testing.T, s Store, tenant string, of entity.Key) []string {
	t.Helper()
	p, err := s.List(t.Context(), tenant, of, paging.Query{Limit: 1000})
	return checked(t, p, err)
}

func replies(t *testing.T, s Store, tenant, id string) []string {
	t.Helper()
	p, err := s.Replies(t.Context(), tenant, id, paging.Query{Limit: 1000})
	return checked(t, p, err)
}

func checked(t *testing.T, p paging.Page[comments.Comment], err error) []string {
	t.Helper()
	is := is.New(t)
	is.NoErr(err)
	is.Equal(p.Total, len(p.Rows))
	ids := []string{}
	for _, c := range p.Rows {
		ids = append(ids, c.ID)
	}
	return ids
}

func testRoundTrip(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	first := comment("1", "")
	full := comments.Comment{
		Tenant: "acme", ID: "2",
		Message: "'; DROP TABLE tc_comments; --?$1\\ 日本 🎨\n\t", Public: true, UserID: "Jö.Doe@example.com",
		Entity: sales, ParentID: text("1"), CreatedAt: commentsMonday, UpdatedAt: tuesday, EditedAt: &tuesday,
		Mentions: []comments.Mention{{Username: "mia", DisplayName: text(`M "ü" <a>`)}, {Username: "jo"}},
	}
	fieldtest.Full(t, full, "AuthorGone", "May") // the deletion of the author sets one, the Service the other
	empty := comment("3", "")
	empty.Message, empty.Entity = "", orders
	long := comment("4", "2")
	long.Message = strings.Repeat("ü", comments.MaxMessage/2)
	insert(t, s, "acme", first, full, empty, long)
	for _, want := range []comments.Comment{first, full, empty, long} {
		got, err := s.Get(ctx, "acme", want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", first)), errs.Conflict)
	is.Equal(top(t, s, "acme", sales), []string{"1"}) // the failed insert is not counted
	page, err := s.Replies(ctx, "acme", "1", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Rows, []comments.Comment{full}) // a list has all fields, too

	got, err := s.Update(ctx, "acme", "2", func(c *comments.Comment) error {
		is.Equal(*c, full)
		*c = comments.Comment{Message: "new", UpdatedAt: tuesday.Add(time.Hour), ID: "x", UserID: "x", Entity: orders}
		return nil
	})
	is.NoErr(err)
	full.Message, full.Public, full.Mentions, full.UpdatedAt, full.EditedAt =
		"new", false, nil, tuesday.Add(time.Hour), nil
	is.Equal(got, full) // nothing else changes
	got, err = s.Get(ctx, "acme", "2")
	is.NoErr(err)
	is.Equal(got, full)
}

func testMissing(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""))
	_, err := s.Get(ctx, "acme", "x")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.MessageOf(err), "Comment not found.")
	_, err = s.Replies(ctx, "acme", "x", paging.Query{Limit: 1})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Update(ctx, "acme", "x", func(*comments.Comment) error { t.Error("edited"); return nil })
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(errs.CodeOf(failure(s.Delete(ctx, "acme", "x", commentsMonday))), errs.NotFound)
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", comment("2", "x"))), errs.NotFound)
	stray := comment("2", "1")
	stray.Entity = orders
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", stray)), errs.NotFound) // the parent belongs to another entity
	is.Equal(top(t, s, "acme", orders), []string{})
	is.Equal(top(t, s, "acme", sales), []string{"1"})
	is.Equal(replies(t, s, "acme", "1"), []string{})
	is.NoErr(failure(s.DeleteAll(ctx, "acme", orders.Kind, []string{orders.ID}, commentsMonday))) // without comments
}

func testIsolation(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("2", "1"))
	is.NoErr(s.PutActivity(ctx, "acme", activity("a", "1"), []string{"mia"}))
	is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{notification("n", "1", "mia")}))
	own := comment("2", "")
	own.Message = "evil"
	insert(t, s, "evil", own)
	for tenant, want := range map[string]int{"acme": 2, "evil": 1, "none": 0} {
		n, err := s.Count(ctx, tenant)
		is.NoErr(err)
		is.Equal(n, want)
	}

	_, err := s.Get(ctx, "evil", "1")
	is.Equal(errs.CodeOf(err), errs.NotFound) // another tenant sees nothing
	_, err = s.Replies(ctx, "evil", "1", paging.Query{Limit: 1})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.Equal(top(t, s, "evil", sales), []string{"2"})
	is.Equal(replies(t, s, "evil", "2"), []string{})
	for _, of := range []entity.Key{{}, sales} {
		p, err := s.Activities(ctx, "evil", of, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(p.Total, 0)
	}
	feed, err := s.Feed(ctx, "evil", "mia", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(feed.Total, 0)
	queued, err := s.Notifications(ctx, "evil", "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(queued.Total, 0)

	is.Equal(errs.CodeOf(s.Insert(ctx, "evil", comment("3", "1"))), errs.NotFound) // another tenant cannot change it
	is.Equal(errs.CodeOf(failure(s.Delete(ctx, "evil", "1", commentsMonday))), errs.NotFound)
	_, err = s.Update(ctx, "evil", "2", func(c *comments.Comment) error { c.Message = "changed"; return nil })
	is.NoErr(err)
	is.NoErr(failure(s.DeleteAll(ctx, "evil", sales.Kind, []string{sales.ID}, commentsMonday)))
	got, err := s.Get(ctx, "acme", "2")
	is.NoErr(err)
	is.Equal(got, comment("2", "1"))
	is.Equal(top(t, s, "acme", sales), []string{"1"})
	is.Equal(replies(t, s, "acme", "1"), []string{"2"})
}

func testThreads(t *testing.T, s Store) {
	is := is.New(t)
	other := comment("o", "")
	other.Entity = entity.Key{Kind: "dataset", ID: "sales"} // the same id, another kind
	insert(
		t, s, "acme", comment("1", ""), comment("2", ""), comment("1a", "1"), comment("1b", "1"),
		comment("1aa", "1a"), other,
	)
	is.Equal(top(t, s, "acme", sales), []string{"2", "1"})
	is.Equal(top(t, s, "acme", other.Entity), []string{"o"})
	is.Equal(replies(t, s, "acme", "1"), []string{"1b", "1a"}) // only direct replies
	is.Equal(replies(t, s, "acme", "1a"), []string{"1aa"})
	is.Equal(replies(t, s, "acme", "2"), []string{})
}

func testDelete(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("2", ""), comment("1a", "1"), comment("1b", "1"),
		comment("1aa", "1a"),
		comment("1ab", "1a"), comment("1aaa", "1aa"), comment("2a", "2"))
	is.NoErr(failure(s.Delete(ctx, "acme", "1a", commentsMonday)))
	for id, there := range map[string]bool{
		"1":    true,
		"1a":   false,
		"1b":   true,
		"1aa":  false,
		"1ab":  false,
		"1aaa": false,
		"2":    true,
		"2a":   true,
	} {
		_, err := s.Get(ctx, "acme", id)
		is.Equal(err == nil, there)
	}
	is.Equal(replies(t, s, "acme", "1"), []string{"1b"})
	is.Equal(top(t, s, "acme", sales), []string{"2", "1"})
	is.NoErr(failure(s.Delete(ctx, "acme", "2", commentsMonday)))
	is.Equal(top(t, s, "acme", sales), []string{"1"})
	is.Equal(errs.CodeOf(failure(s.Delete(ctx, "acme", "2", commentsMonday))), errs.NotFound)
	is.Equal(errs.CodeOf(failure(s.Delete(ctx, "acme", "2a", commentsMonday))), errs.NotFound)
	is.Equal(top(t, s, "acme", sales), []string{"1"}) // missing comments are not counted either
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", comment("3", "1aa"))), errs.NotFound)
}

func testDeleteAll(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	other := comment("o", "")
	other.Entity = orders
	insert(t, s, "acme", comment("1", ""), comment("2", ""), comment("1a", "1"), comment("1aa", "1a"), other)
	is.NoErr(s.PutActivity(ctx, "acme", activity("a", "1aa"), []string{"mia"}))
	is.NoErr(failure(s.DeleteAll(ctx, "acme", sales.Kind, []string{sales.ID}, commentsMonday)))
	for _, id := range []string{"1", "2", "1a", "1aa"} {
		_, err := s.Get(ctx, "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.Equal(top(t, s, "acme", sales), []string{})
	is.Equal(top(t, s, "acme", orders), []string{"o"})
	feed, err := s.Feed(ctx, "acme", "mia", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(feed.Total, 0)
	insert(t, s, "acme", comment("1", ""))
	is.Equal(top(t, s, "acme", sales), []string{"1"})
}

func testFailedEdit(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""))
	fault := errors.New("fault")
	_, err := s.Update(ctx, "acme", "1", func(c *comments.Comment) error { c.Message = "new"; return fault })
	is.True(errors.Is(err, fault))
	got, err := s.Get(ctx, "acme", "1")
	is.NoErr(err)
	is.Equal(got, comment("1", ""))
}

func testFailedTx(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("1a", "1"))
	fault := errors.New("fault")
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", comment("2", "")))
		is.NoErr(s.Insert(ctx, "acme", comment("2a", "2")))
		is.NoErr(s.PutActivity(ctx, "acme", activity("a", "2a"), []string{"mia"}))
		is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{notification("n", "2a", "mia")}))
		is.NoErr(failure(s.Delete(ctx, "acme", "1", commentsMonday)))
		_, err := s.Get(ctx, "acme", "2a")
		is.NoErr(err) // the transaction sees its own writes
		return fault
	})
	is.True(errors.Is(err, fault))
	is.Equal(top(t, s, "acme", sales), []string{"1"})
	is.Equal(replies(t, s, "acme", "1"), []string{"1a"})
	p, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(p.Total, 0)
	queued, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(queued.Total, 0)
}

// all runs n concurrent calls and fails if one of them fails.
func all(t *testing.T, n int, call func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	fails := make([]error, n)
	for i := range n {
		wg.Go(func() { fails[i] = call(i) })
	}
	wg.Wait()
	is.New(t).NoErr(errors.Join(fails...))
}

func testParallelEdits(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""))
	all(t, 20, func(i int) error {
		_, err := s.Update(ctx, "acme", "1", func(c *comments.Comment) error { c.Message += "+"; return nil })
		return errors.Join(err, s.Insert(ctx, "acme", comment(fmt.Sprintf("r%02d", i), "1")),
			s.Insert(ctx, "acme", comment(fmt.Sprintf("t%02d", i), "")))
	})
	got, err := s.Get(ctx, "acme", "1")
	is.NoErr(err)
	is.Equal(got.Message, "says 1"+strings.Repeat("+", 20))
	is.Equal(len(replies(t, s, "acme", "1")), 20) // which compares with the total
	is.Equal(len(top(t, s, "acme", sales)), 21)
}

// testRepliesWhileDeleting: whichever call is first, no reply is left without its parent. The only
// error for callers is that the parent does not exist.
func testRepliesWhileDeleting(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	for round := range 10 {
		root := fmt.Sprintf("%d", round)
		insert(t, s, "acme", comment(root, ""), comment(root+"a", root), comment(root+"aa", root+"a"))
		all(t, 9, func(i int) error {
			var err error
			switch i {
			case 4:
				return failure(s.Delete(ctx, "acme", root, commentsMonday))
			case 5:
				err = failure(s.Delete(ctx, "acme", root+"a", commentsMonday))
			case 6:
				_, err = s.Update(ctx, "acme", root+"aa", func(c *comments.Comment) error {
					c.Message = "new"
					return nil
				})
			default:
				err = s.Insert(ctx, "acme", comment(fmt.Sprintf("%s-%d", root, i), root+strings.Repeat("a", i%3)))
			}
			if errs.CodeOf(err) == errs.NotFound {
				return nil
			}
			return err
		})
		for i := range 9 {
			_, err := s.Get(ctx, "acme", fmt.Sprintf("%s-%d", root, i))
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		is.Equal(top(t, s, "acme", sales), []string{})
	}
}

func testPages(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("root", ""))
	for i := range 25 {
		for _, parent := range []string{"root", ""} {
			c := comment(fmt.Sprintf("%s%02d", parent, i), parent)
			c.CreatedAt = commentsMonday.Add(time.Duration(i%3) * time.Hour) // equal times, which are ordered by id
			if parent == "" {
				c.Entity = orders
			}
			insert(t, s, "acme", c)
		}
	}
	for name, page := range map[string]func(context.Context, paging.Query) (paging.Page[comments.Comment], error){
		"replies": func(ctx context.Context, q paging.Query) (paging.Page[comments.Comment], error) {
			return s.Replies(ctx, "acme", "root", q)
		},
		"top": func(ctx context.Context, q paging.Query) (paging.Page[comments.Comment], error) {
			return s.List(ctx, "acme", orders, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			id := func(c comments.Comment) string { return c.ID }
			newest := pagingtest.TestCursor(t, "", page, id)
			is.Equal(pagingtest.TestCursor(t, "-createdAt", page, id), newest)
			oldest := pagingtest.TestCursor(t, "createdAt", page, id)
			slices.Reverse(oldest)
			is.Equal(oldest, newest)
			is.True(strings.HasSuffix(newest[0], "23")) // the last id of the last hour
			last := &paging.Position{Value: commentsMonday.Add(-time.Hour).Format(time.RFC3339Nano), Key: "0"}
			for _, q := range []paging.Query{
				{CountOnly: true}, {Limit: 5, Start: 25}, {Limit: 5, Start: 1000},
				{Limit: 5, Start: 25, After: last},
			} {
				p, err := page(ctx, q)
				is.NoErr(err)
				is.Equal(p.Total, 25)
				is.Equal(len(p.Rows), 0)
			}
			for _, q := range []paging.Query{
				{Limit: 5, Sort: "message"}, {Limit: 5, Sort: "updatedAt"}, {Limit: 5, Q: "x"},
				{Limit: 5, After: &paging.Position{Value: "x", Key: "y"}},
			} {
				_, err := page(ctx, q)
				is.Equal(errs.CodeOf(err), errs.Invalid)
			}
			pagingtest.TestBytes(t, page)
			pagingtest.TestNewest(t, page, id, func(c comments.Comment) time.Time { return c.CreatedAt })
		})
	}
	_, err := s.Replies(ctx, "acme", "nobody", paging.Query{CountOnly: true})
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testCanceled(t *testing.T, s Store) {
	is := is.New(t)
	insert(t, s, "acme", comment("1", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(s.Insert(ctx, "acme", comment("2", "")) != nil)
	is.True(failure(s.Delete(ctx, "acme", "1", commentsMonday)) != nil)
	is.Equal(top(t, s, "acme", sales), []string{"1"})
}
