package bunstore_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/paging"
)

// testRenameUsers has more mentions than one statement reads.
func testRenameUsers(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	mentions := func(names ...string) (all []comments.Mention) {
		for _, name := range names {
			all = append(all, comments.Mention{Username: name, DisplayName: text("Shown")})
		}
		return all
	}
	first, answer, other := comment("1", ""), comment("2", "1"), comment("3", "1")
	first.Message, first.Mentions = "@jo and @mia", mentions("jo", "mia", "joan")
	answer.UserID, other.UserID, other.Mentions = "mia", "joan", mentions("joan")
	insert(t, s, "acme", first, answer, other)
	insert(t, s, "evil", first)
	many := make([]comments.Comment, 1001)
	for n := range many {
		many[n] = comment(fmt.Sprintf("m%04d", n), "1")
		many[n].Mentions = mentions("mia")
	}
	insert(t, s, "acme", many...)
	is.NoErr(s.PutActivity(ctx, "acme", activity("a", "1"), []string{"mia"}))

	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}))
	is.NoErr(s.RenameUsers(ctx, "acme", nil))
	theirs := first
	theirs.Tenant = "evil"
	first.UserID, first.Mentions, answer.UserID = "Joe", mentions("Joe", "maria", "joan"), "maria"
	for _, want := range []comments.Comment{first, answer, other, theirs} { // nothing else has changed
		got, err := s.Get(ctx, want.Tenant, want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
	for _, id := range []string{"m0000", "m1000"} {
		got, err := s.Get(ctx, "acme", id)
		is.NoErr(err)
		is.Equal(got.UserID, "Joe")
		is.Equal(got.Mentions, mentions("maria"))
	}
	page, err := s.Activities(ctx, "acme", entity.Key{}, paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(page.Rows[0].UserID, "Joe")
}
