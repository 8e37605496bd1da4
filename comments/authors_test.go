package comments_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// again deletes a user and makes another one of the same name.
func (f *fixture) again(t *testing.T, name string) {
	t.Helper()
	is := is.New(t)
	_, err := f.people.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
		Tenant: "acme", Username: "keeper", Password: "a long password",
	})
	is.NoErr(err)
	is.NoErr(f.people.DeleteUser(root(t), name, ""))
	is.NoErr(f.Unchecked().Hooks().Deleted(t.Context(), "acme", entity.Key{Kind: entity.KindUser, ID: name}))
	shown := "Another one"
	_, err = f.people.CreateUser(root(t), principals.User{Username: name, DisplayName: &shown, Enabled: true}, "")
	is.NoErr(err)
}

// TestNextOfTheName: a user who gets the name of a deleted one has no more to do with what that one
// said than others.
func TestNextOfTheName(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first := f.create(t, "jo", "mine")
		nested := f.reply(t, "jo", first.ID, "mine too")
		f.again(t, "jo")

		jo := by(t, "jo")
		got, err := f.Get(jo, first.ID)
		is.NoErr(err)
		is.Equal(got.UserID, "jo") // it tells who it was
		is.True(got.AuthorGone)
		is.Equal(got.May, comments.Permissions{})
		page, err := f.Replies(jo, first.ID, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Rows[0].May, comments.Permissions{})
		top, err := f.List(jo, entity.Key{Kind: "report", ID: "sales"}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(top.Rows[0].May, comments.Permissions{})
		text := "taken over"
		_, err = f.Update(jo, first.ID, comments.Edit{Message: &text})
		is.Equal(code(err), errs.Forbidden)
		is.Equal(code(f.Delete(jo, first.ID)), errs.Forbidden)
		is.Equal(code(f.Delete(jo, nested.ID)), errs.Forbidden)

		own := f.create(t, "jo", "now")
		is.True(!own.AuthorGone)
		is.Equal(own.May, comments.Permissions{Edit: true, Delete: true})
		owner := as(t, actor.Actor{Tenant: "acme", User: "olga"})
		got, err = f.Get(owner, first.ID)
		is.NoErr(err)
		is.Equal(got.May, comments.Permissions{Edit: true}) // others may what they might
		is.NoErr(f.Delete(root(t), first.ID))
	})
}

// TestNextOfTheNameHears: of replies to what a deleted user said the next one hears nothing, and of
// mentions as anybody.
func TestNextOfTheNameHears(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first := f.create(t, "jo", "mine")
		f.again(t, "jo")
		f.reply(t, "mia", first.ID, "and mine")
		feed, err := f.Feed(by(t, "jo"), "jo", paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(feed.Total, 0)
		text := "@jo @mia"
		_, err = f.Update(by(t, "olga"), first.ID, comments.Edit{Message: &text})
		is.NoErr(err)
		is.Equal(
			f.notes(t, "jo", "mia"),
			"jo: jo mentioned you in a comment: @jo @mia; mia: jo mentioned you in a comment: @jo @mia",
		)
		feed, err = f.Feed(by(t, "jo"), "jo", paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(feed.Total, 1)
	})
}

// TestManyMentions: of a message that mentions more than 100 users it keeps all that it says, and
// the first 100 hear of it.
func TestManyMentions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		var message strings.Builder
		for i := range 120 {
			name := fmt.Sprintf("first.last-%03d_x", i)
			_, err := f.people.CreateUser(root(t), principals.User{Username: name, Enabled: true}, "")
			is.NoErr(err)
			fmt.Fprintf(&message, "Hello @%s. ", name)
		}
		c := f.create(t, "jo", message.String())
		is.Equal(c.Message, message.String())
		is.Equal(len(c.Mentions), 100)
		for i, want := range map[int]int{0: 1, 99: 1, 100: 0, 119: 0} {
			page, err := f.Notifications(
				by(t, fmt.Sprintf("first.last-%03d_x", i)), comments.NotificationFilter{},
				paging.Query{Limit: 10},
			)
			is.NoErr(err)
			is.Equal(page.Total, want)
		}
	})
}
