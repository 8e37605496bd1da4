package tenantcontent_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entities"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestDeletedUserLeavesNoFiles makes a user again under the name of a deleted one: it finds nothing of the first.
func TestDeletedUserLeavesNoFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		for _, tenant := range []string{"acme", "evil"} {
			for _, user := range []string{"jo", "other"} {
				_, err := app.Principals.AddSuperuser(t.Context(), tenant, user, password)
				is.NoErr(err)
			}
			fill(t, app, tenant)
		}
		is.NoErr(app.Principals.DeleteUser(as(t.Context(), "acme"), "jo", ""))
		is.Equal(rows(t, db, "acme"), [6]int{})
		is.Equal(rows(t, db, "evil"), [6]int{1, 1, 1, 2, 2, 0})
	})
}

// TestDeletedContentLeavesNoComments deletes a report and a team that were commented.
func TestDeletedContentLeavesNoComments(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, ctx := is.New(t), as(t.Context(), "acme")
		app := open(t, opener(t), time.Now)
		_, err := app.Principals.AddSuperuser(ctx, "acme", "jo", password)
		is.NoErr(err)
		report, err := app.Entities.Create(ctx, entities.Entity{Kind: "report", Name: "Sales"})
		is.NoErr(err)
		team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Sales"})
		is.NoErr(err)
		var said []string
		for _, of := range []entity.Key{{Kind: "report", ID: report.ID}, {Kind: "team", ID: team.ID}} {
			c, err := app.Comments.Create(ctx, of.Kind, of.ID, "hello")
			is.NoErr(err)
			r, err := app.Comments.Reply(ctx, c.ID, "hello yourself")
			is.NoErr(err)
			said = append(said, c.ID, r.ID)
		}
		is.NoErr(app.Entities.Delete(ctx, "report", report.ID))
		is.NoErr(app.Principals.DeleteTeam(ctx, team.ID, ""))
		for _, id := range said {
			_, err := app.Comments.Get(ctx, id)
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
	})
}
