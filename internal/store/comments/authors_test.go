package bunstore_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// testNoAuthor: a deleted user cannot write a comment, and the attempt is not counted.
func testNoAuthor(t *testing.T, s Store) {
	is := is.New(t)
	c := comment("1", "")
	c.UserID = "nobody"
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", c)), errs.Forbidden)
	page, err := s.List(t.Context(), "acme", sales, paging.Query{Limit: 10, Sort: "createdAt"})
	is.NoErr(err)
	is.Equal(page.Total, 0)
}

// closeAccounts deletes users and creates them again.
func closeAccounts(t *testing.T, s Store, tenant string, usernames ...string) []string {
	t.Helper()
	accounts, err := s.CloseAccounts(t.Context(), tenant, usernames...)
	is.New(t).NoErr(err)
	return accounts
}

// testAuthorsGone: the comments of deleted users of one tenant have no author, however often they
// are edited. Later users with the same names write their own comments.
func testAuthorsGone(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	first, answer, other := comment("1", ""), comment("2", "1"), comment("3", "1")
	answer.UserID, other.UserID = "mia", "joan"
	insert(t, s, "acme", first, answer, other)
	theirs := first
	theirs.Tenant = "evil"
	insert(t, s, "evil", theirs)
	is.NoErr(s.PutActivity(ctx, "acme", activity("a", "1"), []string{"mia"}))
	names := []string{"jo", "mia"}
	for n := range 1000 { // more than fit one statement
		names = append(names, fmt.Sprintf("nobody%d", n))
	}
	is.Equal(len(closeAccounts(t, s, "acme")), 0)
	is.Equal(len(closeAccounts(t, s, "acme", names...)), len(names))
	is.Equal(closeAccounts(t, s, "acme", "jo"), []string{"jo/1"}) // again

	first.AuthorGone, answer.AuthorGone = true, true
	for _, want := range []comments.Comment{first, answer, other, theirs} { // nothing else has changed
		got, err := s.Get(ctx, want.Tenant, want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
	page, err := s.Replies(ctx, "acme", "1", paging.Query{Limit: 10, Sort: "createdAt"})
	is.NoErr(err)
	is.Equal(page.Rows, []comments.Comment{answer, other}) // in a list too
	got, err := s.Update(ctx, "acme", "1", func(c *comments.Comment) error {
		is.True(c.AuthorGone)
		c.AuthorGone = false
		return nil
	})
	is.NoErr(err)
	is.Equal(got, first) // it does not change

	later := comment("4", "1")
	insert(t, s, "acme", later)
	got, err = s.Get(ctx, "acme", "4")
	is.NoErr(err)
	is.Equal(got, later)
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "joe"})) // the later user with the name
	later.UserID = "joe"
	for _, want := range []comments.Comment{first, later} {
		got, err := s.Get(ctx, "acme", want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
	activities, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(activities.Rows[0].UserID, "jo")
}

// testAccounts: a user with the name of a deleted one has none of that user's feed and
// notifications, which are removed in steps. A renamed user keeps feed and notifications.
func testAccounts(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	const n = 30
	fill := func(tenant, prefix string, users ...string) {
		t.Helper()
		for i := range n {
			c := comment(fmt.Sprint(prefix, "-", i), "")
			c.Tenant, c.UserID = tenant, "joan"
			if tenant == "evil" {
				c.UserID = "jo"
			}
			insert(t, s, tenant, c)
			is.NoErr(s.PutActivity(ctx, tenant, activity("a"+c.ID, c.ID), append(users, "nobody")))
			for _, u := range append(users, "nobody") {
				is.NoErr(s.Enqueue(ctx, tenant, []comments.Notification{notification("n"+u+c.ID, c.ID, u)}))
			}
		}
	}
	look := func(tenant, user string, want int) {
		t.Helper()
		all := paging.Query{Limit: 1000}
		feed, err := s.Feed(ctx, tenant, user, all)
		is.NoErr(err)
		is.Equal([]int{feed.Total, len(feed.Rows)}, []int{want, want})
		queued, err := s.Notifications(ctx, tenant, user, comments.NotificationFilter{}, all)
		is.NoErr(err)
		is.Equal([]int{queued.Total, len(queued.Rows)}, []int{want, want})
		for _, q := range queued.Rows {
			is.Equal(q.Username, user)
		}
		unread, err := s.Unread(ctx, tenant, user)
		is.NoErr(err)
		is.Equal(unread, want)
		counted, _, err := s.OfUsers(ctx, tenant, []string{user})
		is.NoErr(err)
		is.Equal(counted, want)
	}
	fill("acme", "old", "jo", "mia")
	fill("evil", "theirs", "jo")
	is.Equal(closeAccounts(t, s, "acme", "jo"), []string{"jo"})
	look("acme", "jo", 0)
	look("acme", "mia", n)
	_, err := s.Notification(ctx, "acme", "jo", "njoold-0")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.SetRead(ctx, "acme", "jo", "njoold-0", true, commentsMonday)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	changed, err := s.SetAllRead(ctx, "acme", "jo", true, commentsMonday)
	is.NoErr(err)
	is.Equal(changed, 0)
	fill("acme", "new", "jo")
	look("acme", "jo", n)
	is.Equal(closeAccounts(t, s, "acme", "jo"), []string{"jo/1"})
	fill("acme", "newer", "jo")
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "joe"}))
	look("acme", "jo", 0)
	look("acme", "joe", n)
	for _, account := range []string{"jo", "jo/1"} {
		steps := 0
		for more := true; more; steps++ {
			more, err = s.RemoveAccount(ctx, "acme", account, 7)
			is.NoErr(err)
			look("acme", "joe", n)
		}
		is.True(steps >= 2*n/7)
	}
	more, err := s.RemoveAccount(ctx, "acme", "jo", 1)
	is.NoErr(err)
	is.True(!more)
	look("acme", "mia", n)
	look("evil", "jo", n)
}
