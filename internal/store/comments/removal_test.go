package bunstore_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// fillMany adds the comment 1 on sales with more replies, activities and notifications than one
// transaction removes, a reply to one of the replies, and the comment other.
func fillMany(t *testing.T, s Store) {
	t.Helper()
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", comment("1", ""), comment("other", ""))
	for i := range comments.MaxRows / 4 {
		id := fmt.Sprintf("1-%04d", i)
		insert(t, s, "acme", comment(id, "1"))
		is.NoErr(s.PutActivity(ctx, "acme", activity("a"+id, id), []string{"mia", "jo"}))
		is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{notification("n"+id, id, "mia")}))
	}
	insert(t, s, "acme", comment("below", "1-0000"))
	is.NoErr(s.PutActivity(ctx, "acme", activity("aother", "other"), []string{"mia"}))
	is.NoErr(s.Enqueue(ctx, "acme", []comments.Notification{notification("nother", "other", "mia")}))
}

// seen checks what all readers see: some top comments on sales, those with an activity and a
// notification of mia, and no others.
func seen(t *testing.T, s Store, want ...string) {
	t.Helper()
	is, ctx := is.New(t), t.Context()
	is.Equal(top(t, s, "acme", sales), append([]string{}, want...))
	loud := 0
	if slices.Contains(want, "other") {
		loud = 1
	}
	for _, id := range []string{"1-0000", "1-0249", "below"} {
		_, err := s.Get(ctx, "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Replies(ctx, "acme", id, paging.Query{Limit: 10})
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Update(ctx, "acme", id, func(*comments.Comment) error { return nil })
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.CodeOf(failure(s.Delete(ctx, "acme", id, commentsMonday))), errs.NotFound)
		is.Equal(errs.CodeOf(s.Insert(ctx, "acme", comment("late", id))), errs.NotFound)
	}
	_, err := s.Activity(ctx, "acme", "a1-0100")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Notification(ctx, "acme", "mia", "n1-0100")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.SetRead(ctx, "acme", "mia", "n1-0100", true, commentsMonday)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	all := paging.Query{Limit: 1000}
	for _, of := range []entity.Key{{}, sales} {
		p, err := s.Activities(ctx, "acme", of, all)
		is.NoErr(err)
		is.Equal([]int{p.Total, len(p.Rows)}, []int{loud, loud})
	}
	feed, err := s.Feed(ctx, "acme", "mia", all)
	is.NoErr(err)
	is.Equal([]int{feed.Total, len(feed.Rows)}, []int{loud, loud})
	feed, err = s.Feed(ctx, "acme", "jo", all)
	is.NoErr(err)
	is.Equal([]int{feed.Total, len(feed.Rows)}, []int{0, 0})
	queued, err := s.Notifications(ctx, "acme", "mia", comments.NotificationFilter{}, all)
	is.NoErr(err)
	is.Equal([]int{queued.Total, len(queued.Rows)}, []int{loud, loud})
	unread, err := s.Unread(ctx, "acme", "mia")
	is.NoErr(err)
	is.Equal(unread, loud)
	n, _, err := s.OfUsers(ctx, "acme", []string{"mia"})
	is.NoErr(err)
	is.Equal(n, loud)
}

// removeRest removes the remaining rows, and calls look after each step.
func removeRest(t *testing.T, s Store, look func()) {
	t.Helper()
	is, ctx := is.New(t), t.Context()
	const rows, ofEach = comments.MaxRows / 5, 5 // a comment, an activity in two feeds, and a notification
	steps := 0
	for more := true; more; steps++ {
		before, err := s.Count(ctx, "acme")
		is.NoErr(err)
		more, err = s.RemoveRest(ctx, "acme", sales, rows)
		is.NoErr(err)
		after, err := s.Count(ctx, "acme")
		is.NoErr(err)
		is.True(before-after <= rows/ofEach+10) // some have no activities
		look()
	}
	is.True(steps > 5)
	more, err := s.RemoveRest(ctx, "acme", sales, 1)
	is.NoErr(err)
	is.True(!more)
}

// testRemovedReplies: a comment with many replies is invisible at once with all of them, and their
// rows are deleted in steps.
func testRemovedReplies(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	fillMany(t, s)
	rest, err := s.Delete(ctx, "acme", "1", commentsMonday)
	is.NoErr(err)
	is.True(rest)
	look := func() { t.Helper(); seen(t, s, "other") }
	look()
	removeRest(t, s, look)
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 1)
}

// testRemovedEntity: all comments on an entity are invisible at once. Comments that are added
// before their rows are deleted are kept.
func testRemovedEntity(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	fillMany(t, s)
	theirs := comment("1", "")
	theirs.Tenant = "evil"
	insert(t, s, "evil", theirs)
	later, err := s.DeleteAll(ctx, "acme", sales.Kind, []string{sales.ID}, commentsMonday)
	is.NoErr(err)
	is.Equal(later, []string{sales.ID})
	seen(t, s)
	threads, err := s.Threads(ctx, "acme", sales.Kind, []string{sales.ID})
	is.NoErr(err)
	is.Equal(len(threads), 0)
	insert(t, s, "acme", comment("new", ""), comment("newer", "new"))
	later, err = s.DeleteAll(ctx, "acme", sales.Kind, []string{sales.ID}, commentsMonday) // again, while rows remain
	is.NoErr(err)
	is.Equal(later, []string{sales.ID})
	seen(t, s)
	insert(t, s, "acme", comment("last", ""), comment("lastly", "last"))
	look := func() {
		t.Helper()
		seen(t, s, "last")
		is.New(t).Equal(replies(t, s, "acme", "last"), []string{"lastly"})
	}
	look()
	closeAccounts(t, s, "acme", "jo")
	c, err := s.Get(ctx, "acme", "last")
	is.NoErr(err)
	is.True(c.AuthorGone)
	removeRest(t, s, look)
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(top(t, s, "evil", sales), []string{"1"})
	later, err = s.DeleteAll(ctx, "acme", sales.Kind, []string{sales.ID}, commentsMonday)
	is.NoErr(err)
	is.Equal(len(later), 0)
	insert(t, s, "acme", comment("1", ""))
	is.Equal(top(t, s, "acme", sales), []string{"1"})
}

// testRemovedEntities: the comments on many entities are removed together. Only the entity with too
// many is left to steps.
func testRemovedEntities(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	fillMany(t, s)
	of := func(i int) entity.Key { return entity.Key{Kind: sales.Kind, ID: fmt.Sprintf("%04d", i)} }
	var ids []string
	for i := range 600 {
		ids = append(ids, of(i).ID)
		if i%3 == 0 {
			top, reply := comment(
				fmt.Sprintf("on%d", i), "",
			), comment(fmt.Sprintf("below%d", i), fmt.Sprintf("on%d", i))
			top.Entity, reply.Entity = of(i), of(i)
			insert(t, s, "acme", top, reply)
		}
	}
	kept, other, theirs := comment("kept", ""), comment("order", ""), comment("theirs", "")
	kept.Entity, other.Entity, theirs.Entity = of(9999), entity.Key{Kind: "dashboard", ID: of(0).ID}, of(0)
	insert(t, s, "acme", kept, other)
	insert(t, s, "evil", theirs)
	later, err := s.DeleteAll(ctx, "acme", sales.Kind, append(append(ids, sales.ID), ids...), commentsMonday)
	is.NoErr(err)
	is.Equal(later, []string{sales.ID})
	seen(t, s)
	threads, err := s.Threads(ctx, "acme", sales.Kind, append(ids, kept.Entity.ID))
	is.NoErr(err)
	is.Equal(threads, map[string]int{kept.Entity.ID: 1})
	is.Equal(top(t, s, "acme", other.Entity), []string{"order"})
	is.Equal(top(t, s, "evil", of(0)), []string{"theirs"})
	removeRest(t, s, func() {})
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 2)
}
