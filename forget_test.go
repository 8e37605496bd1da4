package tenantcontent_test

import (
	"bytes"
	"context"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestDeletedUserLeavesNoFiles: the files of a deleted user are nobody's at once, also when a user
// of the same name is made, and are swept.
func TestDeletedUserLeavesNoFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		for _, tenant := range []string{"acme", "evil"} {
			for _, user := range []string{"jo", "other"} {
				_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), tenant, user, password)
				is.NoErr(err)
			}
			fill(t, app, tenant)
		}
		jo := as(t.Context(), "acme")
		before, err := app.Downloads.Page(jo, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(before.Total, 1)
		is.NoErr(app.Principals.DeleteUser(jo, "jo", ""))
		_, err = app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", "jo", password)
		is.NoErr(err)
		page, err := app.Downloads.Page(jo, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, 0)
		_, err = app.Downloads.Get(jo, before.Rows[0].ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.NoErr(app.Sweep(t.Context()))
		is.Equal(rows(t, db, "acme"), [6]int{})
		is.Equal(rows(t, db, "evil"), [6]int{1, 1, 1, 2, 2, 0})
	})
}

// TestDeletedContentLeavesNoComments deletes a report and a team that were commented.
func TestDeletedContentLeavesNoComments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		app := open(t, opener(t), time.Now)
		_, err := app.Principals.Unchecked().AddSuperuser(ctx, "acme", "jo", password)
		is.NoErr(err)
		report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
		is.NoErr(err)
		team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Sales"})
		is.NoErr(err)
		var made []string
		for _, of := range []entity.Key{{Kind: "report", ID: report.ID}, {Kind: "team", ID: team.ID}} {
			c, err := app.Comments.Create(ctx, of.Kind, of.ID, "hello")
			is.NoErr(err)
			r, err := app.Comments.Reply(ctx, c.ID, "hello yourself")
			is.NoErr(err)
			made = append(made, c.ID, r.ID)
		}
		is.NoErr(app.Content.Delete(ctx, "report", report.ID))
		is.NoErr(app.Principals.DeleteTeam(ctx, team.ID, ""))
		for _, id := range made {
			_, err := app.Comments.Get(ctx, id)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
	})
}

// TestCommentsOfDeletedUserHaveNoAuthor: the comments of a user stay when the user is deleted, on
// its own, with the content reassigned or by a restore, but whoever gets the name then is not their
// author.
func TestCommentsOfDeletedUserHaveNoAuthor(t *testing.T) {
	for name, remove := range map[string]func(ctx context.Context, app *tenantcontent.App) error{
		"alone": func(ctx context.Context, app *tenantcontent.App) error {
			return app.Principals.DeleteUser(ctx, "mia", "")
		},
		"reassigned": func(ctx context.Context, app *tenantcontent.App) error {
			return app.Principals.DeleteUser(ctx, "mia", "jo")
		},
		"restored": func(ctx context.Context, app *tenantcontent.App) error {
			_, err := app.Bundles.Restore(ctx, users(ctx, app), bundles.ImportOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
				is, root := is.New(t), as(t.Context(), "acme")
				app := open(t, opener(t), time.Now)
				for _, tenant := range []string{"acme", "evil"} {
					_, err := app.Principals.Unchecked().AddSuperuser(root, tenant, "jo", password)
					is.NoErr(err)
					_, err = app.Principals.CreateUser(
						as(root, tenant), principals.User{Username: "mia", Enabled: true}, "",
					)
					is.NoErr(err)
				}
				made := map[string]string{}
				for _, tenant := range []string{"acme", "evil"} {
					team, err := app.Principals.CreateTeam(as(root, tenant), principals.Team{Name: "Sales"})
					is.NoErr(err)
					c, err := app.Comments.Create(mia(root, tenant), "team", team.ID, "hello")
					is.NoErr(err)
					made[tenant] = c.ID
				}
				is.NoErr(remove(root, app))
				_, err := app.Principals.CreateUser(root, principals.User{Username: "mia", Enabled: true}, "")
				is.NoErr(err)

				c, err := app.Comments.Get(mia(root, "acme"), made["acme"])
				is.NoErr(err)
				is.True(c.AuthorGone)
				is.Equal(c.UserID, "mia")
				is.Equal(c.May, comments.Permissions{})
				is.Equal(errs.CodeOf(app.Comments.Delete(mia(root, "acme"), c.ID)), errs.Forbidden)
				is.NoErr(app.Comments.Delete(mia(root, "evil"), made["evil"])) // the other tenant's mia is still there
			})
		})
	}
}

// mia is an ordinary user of a tenant.
func mia(ctx context.Context, tenant string) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: tenant, User: "mia"})
}

// users is an archive that has of all users jo.
func users(ctx context.Context, app *tenantcontent.App) io.Reader {
	var packed bytes.Buffer
	e, err := app.Bundles.ExportManifest(
		ctx, bundles.Manifest{Entries: []bundles.Entry{{Type: "user", EntityID: "jo"}}},
	)
	if err == nil {
		err = e.Write(ctx, &packed)
	}
	if err != nil {
		return iotest.ErrReader(err)
	}
	return &packed
}
