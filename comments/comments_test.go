package comments_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/comments"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)

// fixture is a service over an empty database. The report sales of acme belongs to olga; its
// natural id is olga:sales.
type fixture struct {
	*comments.Service
	db     *bun.DB
	people *principals.Service
	count  *dbtest.Counter

	mu  sync.Mutex
	now time.Time
	ids int
}

func each(t *testing.T, test func(t *testing.T, f *fixture)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) { test(t, newFixture(t, open)) })
}

func newFixture(t *testing.T, open dbtest.Opener) *fixture {
	t.Helper()
	is := is.New(t)
	f := &fixture{now: monday}
	f.db, f.count = dbtest.Counted(t, open)
	f.people = principals.New(principals.Options{Store: principalstore.New(f.db)})
	find := func(_ context.Context, tenant, id string) (entity.Ref, error) {
		if tenant != "acme" || id != "sales" && id != "olga:sales" {
			return entity.Ref{}, errs.New(errs.NotFound, "Report not found.")
		}
		return entity.Ref{Kind: "report", ID: "sales", OwnerID: "olga"}, nil
	}
	registry := entity.NewRegistry()
	is.NoErr(registry.Add(
		entity.Type{Kind: "report", Lookup: find, Commented: true}, entity.Type{Kind: "job", Lookup: find},
		entity.Type{Kind: "recipe",
			Commented: true, Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				ref, err := find(ctx, tenant, id)
				ref.Kind = "recipe"
				return ref, err
			}},
		entity.Type{Kind: "diary",
			Commented: true, Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
				ref, err := find(ctx, tenant, id)
				ref.Kind = "diary"
				return ref, err
			}, Visible: func(ctx context.Context, _ string) error {
				if a, _ := actor.From(ctx); a.User != "olga" {
					return errs.New(errs.Forbidden, "This is private.")
				}
				return nil
			}},
	))
	s := bunstore.New(f.db)
	f.Service = comments.New(comments.Options{
		Store:    s,
		Queue:    s,
		Entities: registry,
		Users:    f.people,
		Now:      f.clock,
		NewID:    f.newID,
	})
	for _, u := range []struct{ tenant, name, shown string }{
		{"acme", "olga", "Olga O."}, {"acme", "jo", "Jo"}, {"acme", "mia", ""},
		{"acme", "al", ""}, {"acme", "root", ""}, {"evil", "eve", ""}, {"evil", "jo", ""},
	} {
		_, err := f.people.CreateUser(as(t, actor.Actor{Tenant: u.tenant, User: "x", Superuser: true}),
			principals.User{Username: u.name, DisplayName: &u.shown, Enabled: true}, "")
		is.NoErr(err)
	}
	return f
}

// clock goes on by a second with each look at it.
func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(time.Second)
	return f.now
}

func (f *fixture) newID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	return fmt.Sprintf("01932e00-0000-7000-8000-%012d", f.ids)
}

func as(t testing.TB, a actor.Actor) context.Context { return actor.With(t.Context(), a) }

// by is a user of acme without a team.
func by(t testing.TB, name string) context.Context {
	return as(t, actor.Actor{Tenant: "acme", User: name})
}

func root(t testing.TB) context.Context {
	return as(t, actor.Actor{Tenant: "acme", User: "root", Superuser: true})
}

func (f *fixture) create(t *testing.T, user, message string) comments.Comment {
	t.Helper()
	c, err := f.Create(by(t, user), entity.Key{Kind: "report", ID: "sales"}, message)
	is.New(t).NoErr(err)
	return c
}

func (f *fixture) reply(t *testing.T, user, to, message string) comments.Comment {
	t.Helper()
	c, err := f.Reply(by(t, user), to, message)
	is.New(t).NoErr(err)
	return c
}

// TestRepliesAreHiddenWithTheirEntity: who does not see what a comment is about does not learn
// whether it is there, whether it has replies or not.
func TestRepliesAreHiddenWithTheirEntity(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first, err := f.Create(by(t, "olga"), entity.Key{Kind: "diary", ID: "sales"}, "Dear diary")
		is.NoErr(err)
		for replies := range 2 {
			for _, limit := range []int{0, 10} {
				for user, want := range map[string]errs.Code{"olga": "ok", "jo": errs.NotFound} {
					_, err := f.Get(by(t, user), first.ID)
					is.Equal(code(err), want)
					page, err := f.Replies(by(t, user), first.ID, paging.Query{Limit: limit})
					is.Equal(code(err), want)
					is.True(want != "ok" || page.Total == replies)
				}
			}
			f.reply(t, "olga", first.ID, "and so on")
		}
	})
}

// code is an error's code, "ok" for none.
func code(err error) errs.Code {
	if err == nil {
		return "ok"
	}
	return errs.CodeOf(err)
}

func TestRepliesInherit(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first, err := f.Create(by(t, "jo"), entity.Key{Kind: "report", ID: "olga:sales"}, "")
		is.NoErr(err)
		is.Equal(first.Entity, entity.Key{Kind: "report", ID: "sales"}) // a natural id is resolved
		is.Equal(first.ParentID, nil)
		is.Equal(first.Message, "")
		is.Equal(first.Public, false)
		is.Equal(first.May, comments.Permissions{Edit: true, Delete: true})
		reply := f.reply(t, "mia", strings.ToUpper(first.ID), "deep")
		is.Equal(*reply.ParentID, first.ID)
		is.Equal(reply.Entity, first.Entity)
		is.Equal(reply.UserID, "mia")
		deeper := f.reply(t, "al", reply.ID, "deeper")
		is.Equal(*deeper.ParentID, reply.ID)
		got, err := f.Get(by(t, "al"), deeper.ID)
		is.NoErr(err)
		is.Equal(got, deeper)
		top, err := f.List(by(t, "al"), entity.Key{Kind: "report", ID: "olga:sales"}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(len(top.Rows), 1)
		is.Equal(top.Rows[0].May, comments.Permissions{})
		replies, err := f.Replies(by(t, "al"), reply.ID, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(replies.Rows, []comments.Comment{deeper})
	})
}

// TestHostKind: entities of a host's own kind are commented as all others are.
func TestHostKind(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		c, err := f.Create(by(t, "jo"), entity.Key{Kind: "recipe", ID: "olga:sales"}, "More salt, @mia")
		is.NoErr(err)
		is.Equal(c.Entity, entity.Key{Kind: "recipe", ID: "sales"})
		reply, err := f.Reply(by(t, "mia"), c.ID, "No")
		is.NoErr(err)
		is.Equal(reply.Entity, c.Entity)
		page, err := f.List(by(t, "olga"), entity.Key{Kind: "recipe", ID: "sales"}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(len(page.Rows), 1)
		is.Equal(page.Rows[0].May, comments.Permissions{Edit: true}) // who owns the recipe
		done, err := f.Activities(by(t, "olga"), entity.Key{Kind: "recipe", ID: "sales"}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(len(done.Rows), 2)
		is.Equal(done.Rows[0].Type, "recipeAddedComment")
		is.NoErr(f.Unchecked().Hooks().Deleted(root(t), "acme", c.Entity))
		_, err = f.Get(by(t, "jo"), reply.ID)
		is.Equal(code(err), errs.NotFound)
	})
}

func TestUnknownEntityType(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		const unknown = "Unknown entity type for comment"
		for _, kind := range []entity.Kind{"", "nothing", "job"} { // no kind, not known, not commented
			_, err := f.Create(by(t, "jo"), entity.Key{Kind: kind, ID: "sales"}, "x")
			is.Equal(code(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), unknown)
			_, err = f.List(by(t, "jo"), entity.Key{Kind: kind, ID: "sales"}, paging.Query{Limit: 1})
			is.Equal(errs.MessageOf(err), unknown)
		}
		_, err := f.Create(by(t, "jo"), entity.Key{Kind: "report", ID: "nothing"}, "x")
		is.Equal(code(err), errs.NotFound)

		s := bunstore.New(f.db) // from a time when the host knew these
		for i, kind := range []entity.Kind{"job", "query", "old"} {
			id := fmt.Sprintf("01932e00-0000-7000-9000-%012d", i)
			is.NoErr(s.Insert(t.Context(), "acme", comments.Comment{
				ID:        id,
				UserID:    "jo",
				Entity:    entity.Key{Kind: kind, ID: "sales"},
				CreatedAt: monday,
				UpdatedAt: monday,
			}))
			_, err := f.Reply(by(t, "mia"), id, "x")
			is.Equal(code(err), errs.Invalid)
			is.Equal(errs.MessageOf(err), unknown)
			got, err := f.Get(by(t, "olga"), id) // it can be read, and nobody owns what it is about
			is.NoErr(err)
			is.Equal(got.May, comments.Permissions{})
			_, err = f.Update(by(t, "jo"), id, comments.Edit{})
			is.NoErr(err)
			is.NoErr(f.Delete(by(t, "jo"), id))
		}
	})
}

func TestIDs(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), root(t)
		for id, want := range map[string]errs.Code{
			"not-a-uuid": errs.Invalid, "": errs.Invalid,
			"1": errs.Invalid, "a\x00": errs.Invalid, "01932e00-0000-7000-8000-000000009999": errs.NotFound,
		} {
			_, get := f.Get(ctx, id)
			_, replies := f.Replies(ctx, id, paging.Query{Limit: 1})
			_, reply := f.Reply(ctx, id, "x")
			_, update := f.Update(ctx, id, comments.Edit{})
			for _, err := range []error{get, replies, reply, update, f.Delete(ctx, id)} {
				is.Equal(code(err), want)
			}
		}
	})
}

func TestMessages(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		most := strings.Repeat("x", comments.MaxMessage)
		c := f.create(t, "jo", most)
		for _, bad := range []string{most + "x", "a\x00", "\xff"} {
			_, create := f.Create(by(t, "jo"), entity.Key{Kind: "report", ID: "sales"}, bad)
			_, reply := f.Reply(by(t, "jo"), c.ID, bad)
			_, update := f.Update(by(t, "jo"), c.ID, comments.Edit{Message: &bad})
			for _, err := range []error{create, reply, update} {
				is.Equal(code(err), errs.Invalid)
				is.True(strings.HasPrefix(errs.MessageOf(err), "message "))
			}
		}
		got, err := f.Get(by(t, "jo"), c.ID)
		is.NoErr(err)
		is.Equal(got, c)
	})
}

// TestPermissions checks that the permissions shown are those that the methods enforce.
func TestPermissions(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		user := func(a actor.Actor) context.Context {
			a.Tenant = "acme"
			return as(t, a)
		}
		for name, c := range map[string]struct {
			ctx  context.Context
			want comments.Permissions
		}{
			"author":    {user(actor.Actor{User: "jo"}), comments.Permissions{Edit: true, Delete: true}},
			"superuser": {root(t), comments.Permissions{Edit: true, Delete: true}},
			"admin": {
				user(actor.Actor{User: "al", Teams: map[string]actor.Role{"t": actor.Admin}}),
				comments.Permissions{Edit: true},
			},
			"owner": {user(actor.Actor{User: "olga"}), comments.Permissions{Edit: true}},
			"publisher": {
				user(actor.Actor{User: "al", Teams: map[string]actor.Role{"t": actor.Publisher}}),
				comments.Permissions{},
			},
			"stranger": {user(actor.Actor{User: "mia"}), comments.Permissions{}},
		} {
			t.Run(name, func(t *testing.T) {
				is := is.New(t)
				first := f.create(t, "jo", "first")
				made := f.reply(t, "jo", first.ID, "second")
				got, err := f.Get(c.ctx, made.ID)
				is.NoErr(err)
				is.Equal(got.May, c.want)
				page, err := f.Replies(c.ctx, first.ID, paging.Query{Limit: 10})
				is.NoErr(err)
				is.Equal(page.Rows[0].May, c.want)
				yes, same, text := true, "second", "edited"
				edited, err := f.Update(c.ctx, made.ID, comments.Edit{Message: &same, Public: &yes})
				if c.want.Edit {
					is.NoErr(err)
					is.Equal(edited.EditedAt, nil) // the message is as it was written
				}
				edited, err = f.Update(c.ctx, made.ID, comments.Edit{Message: &text})
				if c.want.Edit {
					is.NoErr(err)
					is.Equal(edited.May, c.want)
					is.Equal(edited.UserID, "jo") // it stays the author's
					is.Equal(edited.Message, "edited")
					is.Equal(edited.Public, true)
					is.True(edited.UpdatedAt.After(edited.CreatedAt))
					is.Equal(*edited.EditedAt, edited.UpdatedAt)
					was := edited.EditedAt
					edited, err = f.Update(c.ctx, made.ID, comments.Edit{})
					is.NoErr(err)
					is.Equal(edited.Message, "edited") // what is left out stays
					is.Equal(edited.Public, true)
					is.Equal(edited.EditedAt, was)
				} else {
					is.Equal(code(err), errs.Forbidden)
				}
				_, err = f.Reply(c.ctx, made.ID, "anybody may reply")
				is.NoErr(err)
				err = f.Delete(c.ctx, first.ID)
				is.Equal(err == nil, c.want.Delete)
				if !c.want.Delete {
					is.Equal(code(err), errs.Forbidden)
				}
				_, err = f.Get(root(t), made.ID)
				is.Equal(err != nil, c.want.Delete) // a thread goes with its first comment, whoever replied
			})
		}
	})
}

func TestNobody(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), t.Context()
		c := f.create(t, "jo", "x")
		_, get := f.Get(ctx, c.ID)
		_, replies := f.Replies(ctx, c.ID, paging.Query{})
		_, top := f.List(ctx, entity.Key{Kind: "report", ID: "sales"}, paging.Query{})
		_, create := f.Create(ctx, entity.Key{Kind: "report", ID: "sales"}, "x")
		_, reply := f.Reply(ctx, c.ID, "x")
		_, update := f.Update(ctx, c.ID, comments.Edit{})
		_, activities := f.Activities(ctx, entity.Key{}, paging.Query{})
		_, feed := f.Feed(ctx, "jo", paging.Query{})
		_, notifications := f.Notifications(ctx, comments.NotificationFilter{}, paging.Query{})
		for _, err := range []error{
			get, replies, top, create, reply, update, f.Delete(ctx, c.ID), activities, feed, notifications,
		} {
			is.Equal(code(err), errs.Unauthenticated)
		}
	})
}

// TestOtherTenant: a superuser of another tenant finds nothing.
func TestOtherTenant(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is, ctx := is.New(t), as(t, actor.Actor{Tenant: "evil", User: "jo", Superuser: true})
		c := f.create(t, "jo", "@mia @jo")
		_, get := f.Get(ctx, c.ID)
		_, replies := f.Replies(ctx, c.ID, paging.Query{})
		_, top := f.List(ctx, entity.Key{Kind: "report", ID: "sales"}, paging.Query{})
		_, create := f.Create(ctx, entity.Key{Kind: "report", ID: "sales"}, "x")
		_, reply := f.Reply(ctx, c.ID, "x")
		_, update := f.Update(ctx, c.ID, comments.Edit{})
		_, activities := f.Activities(ctx, entity.Key{Kind: "report", ID: "sales"}, paging.Query{})
		_, feed := f.Feed(ctx, "mia", paging.Query{})
		for _, err := range []error{get, replies, top, create, reply, update, f.Delete(ctx, c.ID), activities, feed} {
			is.Equal(code(err), errs.NotFound)
		}
		all, err := f.Activities(ctx, entity.Key{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(all.Total, 0)
		own, err := f.Notifications(ctx, comments.NotificationFilter{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(own.Total, 0)
	})
}

// notes returns whom notifications went to: user by user the bodies, oldest first.
func (f *fixture) notes(t *testing.T, users ...string) string {
	t.Helper()
	var all []string
	for _, user := range users {
		page, err := f.Notifications(
			by(t, user), comments.NotificationFilter{}, paging.Query{Limit: 100, Sort: "createdAt"},
		)
		is.New(t).NoErr(err)
		for _, n := range page.Rows {
			is.New(t).Equal(n.State, comments.Pending)
			all = append(all, user+": "+n.Title+": "+n.Body)
		}
	}
	return strings.Join(all, "; ")
}

func TestMentionsNotifyOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		shown := "Jo"
		c := f.create(t, "jo", "@MIA, @eve and @jo: look\nhere")
		// of the tenant alone
		is.Equal(c.Mentions, []comments.Mention{{Username: "mia"}, {Username: "jo", DisplayName: &shown}})
		is.Equal(f.notes(t, "mia", "jo", "al"), "mia: Jo mentioned you in a comment: @MIA, @eve and @jo: look here")
		edit := func(message string) {
			t.Helper()
			var err error
			c, err = f.Update(root(t), c.ID, comments.Edit{Message: &message})
			is.NoErr(err)
		}
		edit("nobody")
		is.Equal(c.Mentions, nil)
		edit("@mia @al.")
		is.Equal(len(c.Mentions), 2)
		is.Equal(
			f.notes(t, "mia", "jo", "al"),
			"mia: Jo mentioned you in a comment: @MIA, @eve and @jo: look here; al: Jo mentioned you in a "+
				"comment: @mia @al.",
		)
		f.reply(t, "mia", c.ID, "@al") // another comment
		is.Equal(strings.Count(f.notes(t, "al"), "mentioned you"), 2)
		is.True(strings.Contains(f.notes(t, "al"), "mia mentioned you in a comment: @al"))
		is.NoErr(f.Delete(root(t), c.ID))
		is.Equal(f.notes(t, "mia", "jo", "al"), "") // gone with the thread
	})
}

func TestActivitiesFollowComments(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first := f.create(t, "jo", "one")
		second := f.reply(t, "mia", first.ID, "two\n\n"+strings.Repeat("x ", 200))
		list := func() []comments.Activity {
			t.Helper()
			page, err := f.Activities(by(t, "al"), entity.Key{
				Kind: "report", ID: "olga:sales",
			}, paging.Query{Limit: 10})
			is.NoErr(err)
			all, err := f.Activities(by(t, "al"), entity.Key{}, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(all.Rows, page.Rows)
			return page.Rows
		}
		all := list()
		is.Equal(len(all), 2)
		is.Equal(all[0].Type, "reportAddedComment")
		is.Equal(all[0].UserID, "mia")
		is.Equal(*all[0].CommentID, second.ID)
		is.Equal(all[0].CreatedAt, second.CreatedAt)
		is.Equal(all[0].Excerpt, "two "+strings.Repeat("x ", 97)+"x")
		is.Equal(all[1].Excerpt, "one")
		text := "uno"
		_, err := f.Update(by(t, "jo"), first.ID, comments.Edit{Message: &text})
		is.NoErr(err)
		all[1].Excerpt = "uno"
		is.Equal(list(), all)
		is.NoErr(f.Delete(by(t, "jo"), first.ID))
		is.Equal(len(list()), 0)
		for _, bad := range [][2]string{{"report", ""}, {"", "sales"}} {
			_, err := f.Activities(by(t, "al"), entity.Key{
				Kind: entity.Kind(bad[0]), ID: bad[1],
			}, paging.Query{Limit: 10})
			is.Equal(code(err), errs.Invalid)
		}
		_, err = f.Activities(by(t, "al"), entity.Key{Kind: "nothing", ID: "x"}, paging.Query{Limit: 10})
		is.Equal(code(err), errs.NotFound)
	})
}

func TestFeed(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		feed := func(user string) string {
			t.Helper()
			page, err := f.Feed(by(t, user), user, paging.Query{Limit: 10, Sort: "createdAt"})
			is.NoErr(err)
			var all []string
			for _, a := range page.Rows {
				all = append(all, a.Excerpt)
			}
			return strings.Join(all, ", ")
		}
		first := f.create(t, "jo", "first @jo")
		f.create(t, "olga", "own @mia")
		second := f.reply(t, "mia", first.ID, "second")
		f.reply(t, "al", second.ID, "third @mia @olga")
		is.Equal(feed("olga"), "first @jo, second, third @mia @olga") // on what is hers
		is.Equal(feed("jo"), "second")                                // in reply to him
		is.Equal(feed("mia"), "own @mia, third @mia @olga")           // with her name, and once
		is.Equal(feed("al"), "")
		text := "edited @al"
		_, err := f.Update(by(t, "mia"), second.ID, comments.Edit{Message: &text})
		is.NoErr(err)
		is.Equal(feed("al"), "edited @al")
		is.Equal(feed("jo"), "edited @al")

		_, err = f.Feed(root(t), "mia", paging.Query{Limit: 1})
		is.NoErr(err)
		_, err = f.Feed(by(t, "jo"), "mia", paging.Query{Limit: 1})
		is.Equal(code(err), errs.Forbidden)
		_, err = f.Feed(by(t, "jo"), "nobody", paging.Query{Limit: 1})
		is.Equal(code(err), errs.NotFound)
		_, err = f.Feed(root(t), "MIA", paging.Query{Limit: 1})
		is.Equal(code(err), errs.NotFound)
	})
}

// TestDeletedPeople: neither a deleted author nor a deleted owner stops a thread.
func TestDeletedPeople(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first := f.create(t, "jo", "@mia")
		second := f.reply(t, "mia", first.ID, "x")
		for _, name := range []string{"jo", "mia", "olga"} {
			is.NoErr(f.people.DeleteUser(root(t), name, ""))
		}
		got, err := f.Get(by(t, "al"), first.ID)
		is.NoErr(err)
		is.Equal(got.UserID, "jo")
		is.Equal(got.Mentions, []comments.Mention{{Username: "mia"}}) // as it was said
		third := f.reply(t, "al", first.ID, "@mia?")
		is.Equal(third.Mentions, nil)
		text := "@al"
		_, err = f.Update(root(t), second.ID, comments.Edit{Message: &text})
		is.NoErr(err)
		is.Equal(f.notes(t, "al"), "al: mia mentioned you in a comment: @al")
		is.NoErr(f.Delete(root(t), first.ID))
	})
}

// TestListsTakeOneStatement: the rows with the kept total; beside them stands at most the look-up
// of what they are about, which is not of the store. httpapi adds one for all authors. A page
// without rows is two more: its total, and the comment, which the caller has to see.
func TestListsTakeOneStatement(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		first := f.create(t, "jo", "x")
		for i := range 100 {
			f.reply(t, []string{"jo", "mia", "al"}[i%3], first.ID, "x")
			f.create(t, "mia", "x")
		}
		f.count.Take()
		page, err := f.Replies(by(t, "al"), first.ID, paging.Query{Limit: 100})
		is.NoErr(err)
		is.Equal(len(page.Rows), 100)
		is.Equal(len(f.count.Take()), 1)
		page, err = f.List(by(t, "al"), entity.Key{Kind: "report", ID: "sales"}, paging.Query{Limit: 100})
		is.NoErr(err)
		is.Equal(len(page.Rows), 100)
		is.Equal(len(f.count.Take()), 1)
		page, err = f.Replies(by(t, "al"), first.ID, paging.Query{Limit: 100, Start: 100})
		is.NoErr(err)
		is.Equal(page.Total, 100)
		is.Equal(len(page.Rows), 0)
		is.Equal(len(f.count.Take()), 3)
		users, err := f.people.UsersByName(by(t, "al"), []string{"jo", "mia", "al"})
		is.NoErr(err)
		is.Equal(len(users), 3)
		is.Equal(len(f.count.Take()), 1)
	})
}

// TestRepliesAndDeleteAtOnce: a thread is deleted while people reply; nothing is left of it, and
// nobody gets another error than that it is gone.
func TestRepliesAndDeleteAtOnce(t *testing.T) {
	each(t, func(t *testing.T, f *fixture) {
		is := is.New(t)
		for range 5 {
			first := f.create(t, "jo", "x")
			second := f.reply(t, "jo", first.ID, "x")
			var wg sync.WaitGroup
			fails := make([]error, 9)
			for i := range fails {
				wg.Go(func() {
					switch {
					case i == 4:
						fails[i] = f.Delete(by(t, "jo"), first.ID)
					case i == 5:
						text := "@mia"
						_, fails[i] = f.Update(by(t, "jo"), second.ID, comments.Edit{Message: &text})
					default:
						_, fails[i] = f.Reply(by(t, "al"), []string{first.ID, second.ID}[i%2], "@mia")
					}
				})
			}
			wg.Wait()
			is.NoErr(fails[4])
			for _, err := range fails {
				is.True(slices.Contains([]errs.Code{"ok", errs.NotFound}, code(err)))
			}
			top, err := f.List(by(t, "jo"), entity.Key{Kind: "report", ID: "sales"}, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(top.Total, 0)
			all, err := f.Activities(by(t, "jo"), entity.Key{}, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(all.Total, 0)
			is.Equal(f.notes(t, "mia"), "")
		}
	})
}
