package commentstest

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
)

// testNoAuthor: nobody says something after they are gone, and it counts as no comment.
func testNoAuthor(t *testing.T, s Store) {
	is := is.New(t)
	c := comment("1", "")
	c.UserID = "nobody"
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", c)), errs.Forbidden)
	page, err := s.List(t.Context(), "acme", sales, paging.Query{Limit: 10, Sort: "createdAt"})
	is.NoErr(err)
	is.Equal(page.Total, 0)
}

// testMarkAuthorsGone: the comments of some users of one tenant are nobody's then, however often they are edited; who gets their names
// later says things of their own.
func testMarkAuthorsGone(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	first, answer, other := comment("1", ""), comment("2", "1"), comment("3", "1")
	answer.UserID, other.UserID = "mia", "joan"
	insert(t, s, "acme", first, answer, other)
	theirs := first
	theirs.Tenant = "evil"
	insert(t, s, "evil", theirs)
	is.NoErr(s.PutActivity(ctx, "acme", activity("a", "1"), []string{"mia"}))
	names := []string{"jo", "mia"}
	for n := range 1000 { // more than one statement takes
		names = append(names, fmt.Sprintf("nobody%d", n))
	}
	is.NoErr(s.MarkAuthorsGone(ctx, "acme"))
	is.NoErr(s.MarkAuthorsGone(ctx, "acme", names...))
	is.NoErr(s.MarkAuthorsGone(ctx, "acme", "jo")) // again

	first.AuthorGone, answer.AuthorGone = true, true
	for _, want := range []comments.Comment{first, answer, other, theirs} { // and nothing else has changed
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
	is.Equal(got, first) // it stays

	later := comment("4", "1")
	insert(t, s, "acme", later)
	got, err = s.Get(ctx, "acme", "4")
	is.NoErr(err)
	is.Equal(got, later)
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "joe"})) // who has the name now
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
