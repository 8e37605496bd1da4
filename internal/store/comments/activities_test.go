package bunstore_test

import (
	"context"
	"fmt"
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

func activity(id, comment string) comments.Activity {
	return comments.Activity{
		Tenant: "acme", ID: id, Type: "reportAddedComment", Entity: sales,
		CommentID: &comment, UserID: "jo", Excerpt: "of " + id, CreatedAt: commentsMonday,
	}
}

func notification(id, comment, username string) comments.Notification {
	return comments.Notification{
		Tenant: "acme", ID: id, Username: username,
		Type: comments.TypeMention, State: comments.Pending, Title: "title '?$1", Body: "body\nü",
		Entity: sales, CommentID: &comment, CreatedAt: commentsMonday, UpdatedAt: tuesday,
	}
}

func testActivities(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("2", ""))
	first, second := activity("a", "1"), activity("b", "2")
	second.CreatedAt = tuesday
	fieldtest.Full(t, first)
	free := comments.Activity{
		Tenant:    "acme",
		ID:        "c",
		Type:      "other",
		Entity:    orders,
		UserID:    "mia",
		CreatedAt: tuesday.Add(time.Hour),
	}
	for _, a := range []comments.Activity{first, second, free} {
		is.NoErr(s.PutActivity(ctx, "acme", a, nil))
	}
	list := func(of entity.Key, want ...comments.Activity) {
		t.Helper()
		p, err := s.Activities(ctx, "acme", of, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(p.Total, len(want))
		is.Equal(append([]comments.Activity{}, p.Rows...), append([]comments.Activity{}, want...))
	}
	list(entity.Key{}, free, second, first)
	list(sales, second, first)
	list(orders, free)
	list(entity.Key{Kind: "dataset", ID: "sales"})

	again := activity("x", "1")
	again.Excerpt, again.CreatedAt = "new", tuesday
	is.NoErr(s.PutActivity(ctx, "acme", again, nil))
	first.Excerpt = "new" // id and time do not change
	list(sales, second, first)

	pagingtest.TestBytes(t, func(ctx context.Context, q paging.Query) (paging.Page[comments.Activity], error) {
		return s.Activities(ctx, "acme", entity.Key{}, q)
	})
	p, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 2})
	is.NoErr(err)
	p, err = s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 2, Start: 2, After: p.Last})
	is.NoErr(err)
	is.Equal(p.Rows, []comments.Activity{first})
	p, err = s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 1, Sort: "createdAt"})
	is.NoErr(err)
	is.Equal(p.Rows, []comments.Activity{first})
	_, err = s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 1, Sort: "type"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

// testActivitiesGo: activities are deleted with their comment, and so are those of all its replies.
func testActivitiesGo(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("1a", "1"), comment("1aa", "1a"), comment("2", ""))
	for _, id := range []string{"1", "1a", "1aa", "2"} {
		is.NoErr(s.PutActivity(ctx, "acme", activity("a"+id, id), []string{"mia"}))
		is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{notification("n"+id, id, "mia")}))
	}
	is.NoErr(failure(s.Delete(ctx, "acme", "1", commentsMonday)))
	p, err := s.Activities(ctx, "acme", sales, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(p.Rows, []comments.Activity{activity("a2", "2")})
	feed, err := s.Feed(ctx, "acme", "mia", paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(feed.Rows, p.Rows)
	queued, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(queued.Rows, []comments.Notification{notification("n2", "2", "mia")})
}

func testFeed(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	for i := range 25 {
		id := fmt.Sprintf("%02d", i)
		insert(t, s, "acme", comment(id, ""))
		a := activity(id, id)
		a.CreatedAt = commentsMonday.Add(time.Duration(i/2) * time.Hour)
		concerned := []string{"mia"}
		if i == 7 {
			concerned = []string{"jo", "mia"}
		}
		is.NoErr(s.PutActivity(ctx, "acme", a, concerned))
	}
	feed := func(user string, q paging.Query) (ids []string, p paging.Page[comments.Activity]) {
		t.Helper()
		p, err := s.Feed(ctx, "acme", user, q)
		is.NoErr(err)
		for _, a := range p.Rows {
			ids = append(ids, a.ID)
		}
		return ids, p
	}
	ids, p := feed("mia", paging.Query{Limit: 3})
	is.Equal(ids, []string{"24", "23", "22"})
	is.Equal(p.Total, 25)
	ids, _ = feed("mia", paging.Query{Limit: 3, Start: 3, After: p.Last})
	is.Equal(ids, []string{"21", "20", "19"})
	ids, _ = feed("mia", paging.Query{Limit: 3, Start: 3})
	is.Equal(ids, []string{"21", "20", "19"})
	ids, _ = feed("mia", paging.Query{Limit: 2, Sort: "createdAt"})
	is.Equal(ids, []string{"00", "01"})
	mias := func(ctx context.Context, q paging.Query) (paging.Page[comments.Activity], error) {
		return s.Feed(ctx, "acme", "mia", q)
	}
	pagingtest.TestBytes(t, mias)
	for _, page := range []func(context.Context, paging.Query) (paging.Page[comments.Activity], error){
		mias,
		func(ctx context.Context, q paging.Query) (paging.Page[comments.Activity], error) {
			return s.Activities(ctx, "acme", entity.Key{}, q)
		},
		func(ctx context.Context, q paging.Query) (paging.Page[comments.Activity], error) {
			return s.Activities(ctx, "acme", sales, q)
		},
	} {
		pagingtest.TestNewest(t, page, func(a comments.Activity) string {
			return a.ID
		}, func(a comments.Activity) time.Time { return a.CreatedAt })
	}
	ids, p = feed("jo", paging.Query{Limit: 3})
	is.Equal(ids, []string{"07"})
	is.Equal(p.Total, 1)
	one, err := s.Activity(ctx, "acme", "07")
	is.NoErr(err)
	is.Equal(one, p.Rows[0])
	for _, missing := range [][2]string{{"acme", "99"}, {"evil", "07"}} {
		_, err = s.Activity(ctx, missing[0], missing[1])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}

	is.NoErr(s.PutActivity(ctx, "acme", activity("x", "07"), []string{"mia"})) // it no longer concerns jo
	ids, _ = feed("jo", paging.Query{Limit: 3})
	is.Equal(len(ids), 0)
	_, p = feed("mia", paging.Query{Limit: 3})
	is.Equal(p.Total, 25)
	_, err = s.Feed(ctx, "acme", "mia", paging.Query{Limit: 1, After: &paging.Position{Value: "x"}})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testNotifications(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("2", ""))
	first, second := notification("n1", "1", "mia"), notification("n2", "2", "mia")
	path := "orders/5"
	second.Path = &path
	second.CreatedAt = tuesday
	free := comments.Notification{
		Tenant: "acme", ID: "n3", Username: "mia", Type: "note",
		State: comments.Dead, Title: "", Body: "", CreatedAt: tuesday.Add(time.Hour), UpdatedAt: commentsMonday,
	}
	is.NoErr(s.Enqueue(ctx, "acme", nil))
	is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{first, second, free, notification("n4", "1", "jo")}))
	again, other, twin := notification("n5", "1", "mia"), notification("n6", "2", "jo"), free
	again.Body, twin.ID = "new", "n7"
	is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{again, other, twin})) // a notification like again exists
	p, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(p.Rows, []comments.Notification{twin, free, second, first})
	is.Equal(p.Total, 4)
	mias := func(ctx context.Context, q paging.Query) (paging.Page[comments.Notification], error) {
		return s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, q)
	}
	pagingtest.TestBytes(t, mias)
	pagingtest.TestNewest(t, mias, func(n comments.Notification) string {
		return n.ID
	}, func(n comments.Notification) time.Time { return n.CreatedAt })
	p, err = s.Notifications(ctx, "acme", "jo", comments.NotificationFilter{}, paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(p.Total, 2)
	next, err := s.Notifications(
		ctx, "acme", "jo", comments.NotificationFilter{}, paging.Query{Limit: 1, Start: 1, After: p.Last},
	)
	is.NoErr(err)
	is.Equal(next.Rows, []comments.Notification{notification("n4", "1", "jo")})
	testRead(t, s)
	is.NoErr(failure(s.Delete(ctx, "acme", "1", commentsMonday)))
	p, err = s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(p.Total, 3)
}

// testNotices: notices of apps do not belong to a comment. They are deleted with their app, and
// when they are old.
func testNotices(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""))
	shop := entity.Key{Kind: "app", ID: "shop"}
	notice := func(id string, of entity.Key, at time.Time) comments.Notification {
		return comments.Notification{
			ID: id, Username: "mia", Type: comments.TypeApp, State: comments.Delivered,
			Title: "t", Entity: of, CreatedAt: at, UpdatedAt: at,
		}
	}
	about := notification("n1", "1", "mia") // belongs to a comment
	about.Entity = shop
	is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{
		about, notice("n2", shop, commentsMonday), notice("n3", orders, commentsMonday),
		notice("n4", orders, tuesday),
	}))
	is.NoErr(s.Enqueue(ctx, "evil", []comments.Notification{notice("n2", shop, commentsMonday)}))
	left := func(tenant string) (ids []string) {
		p, err := s.Notifications(
			ctx, tenant, "mia", comments.NotificationFilter{}, paging.Query{Limit: 10, Sort: "createdAt"},
		)
		is.NoErr(err)
		for _, n := range p.Rows {
			ids = append(ids, n.ID)
		}
		return ids
	}
	is.NoErr(s.DeleteNotices(ctx, "acme", shop))
	is.Equal(left("acme"), []string{"n1", "n3", "n4"})
	n, err := s.SweepNotices(ctx, "acme", comments.TypeApp, tuesday)
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(left("acme"), []string{"n1", "n4"})
	is.Equal(left("evil"), []string{"n2"})
}

// testSweepOld removes activities with their feed items, and notifications of all types.
func testSweepOld(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	for _, tenant := range []string{"acme", "evil"} {
		for id, at := range map[string]time.Time{"1": commentsMonday, "2": tuesday} {
			insert(t, s, tenant, comment(id, ""))
			a := activity("a"+id, id)
			a.CreatedAt = at
			is.NoErr(s.PutActivity(ctx, tenant, a, []string{"mia", "jo"}))
			n := notification("n"+id, id, "mia")
			n.CreatedAt, n.UpdatedAt = at, at
			is.NoErr(s.Enqueue(ctx, tenant, []comments.Notification{n}))
		}
	}
	n, err := s.SweepOld(ctx, "acme", tuesday)
	is.NoErr(err)
	is.Equal(n, 2)
	for tenant, want := range map[string]int{"acme": 1, "evil": 2} {
		all, err := s.Activities(ctx, tenant, entity.Key{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(all.Total, want)
		feed, err := s.Feed(ctx, tenant, "mia", paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(feed.Total, want)
		notes, err := s.Notifications(ctx, tenant, "mia", comments.NotificationFilter{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(notes.Total, want)
		is.Equal(notes.Rows[0].ID, "n2")
	}
	_, err = s.Get(ctx, "acme", "1") // the comment is not deleted
	is.NoErr(err)
}

// testRead has the notifications n7, n3, n2 and n1 of mia, newest first, of which n7 and n3 have
// the same time, and two of jo.
func testRead(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	yes, no := true, false
	ids := func(f comments.NotificationFilter) (ids []string) {
		p, err := s.Notifications(ctx, "acme", "mia", f, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(p.Total, len(p.Rows))
		for _, n := range p.Rows {
			ids = append(ids, n.ID)
		}
		return ids
	}
	unread := func(tenant, user string) int {
		n, err := s.Unread(ctx, tenant, user)
		is.NoErr(err)
		return n
	}
	is.Equal(unread("acme", "mia"), 4)
	is.Equal(unread("evil", "mia"), 0)
	at := tuesday.Add(2 * time.Hour)
	n, err := s.SetRead(ctx, "acme", "mia", "n2", true, at)
	is.NoErr(err)
	is.Equal(*n.ReadAt, at)
	is.Equal(n.UpdatedAt, at)
	again, err := s.SetRead(ctx, "acme", "mia", "n2", true, at.Add(time.Hour)) // it is read already
	is.NoErr(err)
	is.Equal(again, n)
	stored, err := s.Notification(ctx, "acme", "mia", "n2")
	is.NoErr(err)
	is.Equal(stored, n)
	fieldtest.Full(t, stored)
	is.Equal(unread("acme", "mia"), 3)
	is.Equal(ids(comments.NotificationFilter{Read: &yes}), []string{"n2"})
	is.Equal(ids(comments.NotificationFilter{Read: &no}), []string{"n7", "n3", "n1"})
	is.Equal(ids(comments.NotificationFilter{Since: tuesday}), []string{"n7", "n3", "n2"}) // n2 has exactly that time
	is.Equal(ids(comments.NotificationFilter{Since: tuesday.Add(time.Microsecond), Read: &no}), []string{"n7", "n3"})
	for _, of := range [][3]string{{"acme", "jo", "n2"}, {"evil", "mia", "n2"}, {"acme", "mia", "n9"}} {
		// of another user, or missing
		_, err = s.Notification(ctx, of[0], of[1], of[2])
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.SetRead(ctx, of[0], of[1], of[2], false, at)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	changed, err := s.SetAllRead(ctx, "acme", "mia", true, at)
	is.NoErr(err)
	is.Equal(changed, 3)
	is.Equal(unread("acme", "mia"), 0)
	is.Equal(unread("acme", "jo"), 2)
	changed, err = s.SetAllRead(ctx, "acme", "mia", false, at)
	is.NoErr(err)
	is.Equal(changed, 4)
	n, err = s.SetRead(ctx, "acme", "mia", "n2", true, at)
	is.NoErr(err)
	n, err = s.SetRead(ctx, "acme", "mia", "n2", false, at)
	is.NoErr(err)
	is.Equal(n.ReadAt, nil)
	is.Equal(unread("acme", "mia"), 4)
}
