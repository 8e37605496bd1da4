package endtoend_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/exampletest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestPermissionsAreTheCallers: every noun says of an id what the caller may do with it, to its
// owner another thing than to a stranger, and nothing of an id that is not there.
func TestPermissionsAreTheCallers(t *testing.T) {
	app, ctx, remove := exampletest.Open()
	defer remove()
	is := is.New(t)
	_, err := app.Principals.CreateUser(ctx, principals.User{Username: "jo", Domain: "local"}, "a long password")
	is.NoErr(err)
	team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Sales"})
	is.NoErr(err)
	text, err := app.AIInstructions.Create(ctx, aiinstr.Instruction{Slug: "tone", Content: "Be brief."})
	is.NoErr(err)
	report, err := app.Content.Create(ctx, content.Entity{Kind: "dashboard", Name: "Sales"})
	is.NoErr(err)
	domain, err := app.Domains.Get(ctx, domains.Local)
	is.NoErr(err)
	assistant, err := app.Assistants.Create(ctx, assistants.Assistant{Name: "Helper"})
	is.NoErr(err)
	page, err := app.Apps.Create(ctx, apps.App{Name: "Sales", Type: apps.Report})
	is.NoErr(err)
	jo := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", AI: true})
	for noun, of := range map[string]struct {
		id   string
		edit func(ctx context.Context, id string) (bool, error)
		jo   error // what a stranger gets instead of permissions
	}{
		"user": {"admin", func(ctx context.Context, id string) (bool, error) {
			p, err := app.Principals.UserPermissions(ctx, id)
			return p.Edit, err
		}, nil},
		"team": {team.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.Principals.TeamPermissions(ctx, id)
			return p.Edit, err
		}, nil},
		"instruction": {text.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.AIInstructions.Permissions(ctx, id)
			return p.Edit, err
		}, nil},
		"dashboard": {report.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.Content.Permissions(ctx, "dashboard", id)
			return p.Edit, err
		}, nil},
		"domain": {domain.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.Domains.Permissions(ctx, id)
			return p.Edit, err
		}, errs.New(errs.Forbidden, "")},
		"assistant": {assistant.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.Assistants.Permissions(ctx, id)
			return p.Edit, err
		}, errs.New(errs.NotFound, "")},
		"app": {page.ID, func(ctx context.Context, id string) (bool, error) {
			p, err := app.Apps.Permissions(ctx, id)
			return p.Edit, err
		}, errs.New(errs.NotFound, "")},
	} {
		t.Run(noun, func(t *testing.T) {
			is := is.New(t)
			edits, err := of.edit(ctx, of.id)
			is.NoErr(err)
			is.True(edits)
			edits, err = of.edit(jo, of.id)
			is.Equal(errs.CodeOf(err), errs.CodeOf(of.jo))
			is.True(!edits)
			_, err = of.edit(ctx, "0197f3a2-7c11-7abc-8def-0123456789ab")
			is.Equal(errs.CodeOf(err), errs.NotFound)
			_, err = of.edit(t.Context(), of.id)
			is.True(err != nil) // nobody calls
		})
	}
}

// TestAllIsEveryPage: All of a noun has the rows of all pages of List, ends with the error of a
// context without an actor, and goes no further when its caller has enough.
func TestAllIsEveryPage(t *testing.T) {
	app, ctx, remove := exampletest.Open()
	defer remove()
	is := is.New(t)
	const n = paging.MaxLimit + 2
	is.NoErr(app.InTx(ctx, func(ctx context.Context) error {
		for range n {
			if _, err := app.Content.Create(ctx, content.Entity{Kind: "dashboard", Name: "Sales"}); err != nil {
				return err
			}
		}
		return nil
	}))
	all, err := paging.Collect(app.Content.All(ctx, "dashboard"))
	is.NoErr(err)
	ids := map[string]bool{}
	for _, e := range all {
		ids[e.ID] = true
	}
	is.Equal(len(ids), n)
	rows := 0
	for _, err := range app.Content.All(ctx, entity.Kind("dashboard")) {
		is.NoErr(err)
		if rows++; rows == 3 {
			break
		}
	}
	is.Equal(rows, 3)

	for i, err := range []error{
		second(paging.Collect(app.AIInstructions.All(t.Context()))),
		second(paging.Collect(app.Content.All(t.Context(), "dashboard"))),
		second(paging.Collect(app.Domains.All(t.Context()))),
		second(paging.Collect(app.Bundles.All(t.Context()))),
		second(paging.Collect(app.Colors.All(t.Context()))),
		second(paging.Collect(app.Apps.All(t.Context()))),
		second(paging.Collect(app.Assistants.All(t.Context()))),
		second(paging.Collect(app.Principals.AllUsers(t.Context()))),
		second(paging.Collect(app.Principals.AllTeams(t.Context()))),
		second(paging.Collect(app.Comments.All(t.Context(), entity.Key{Kind: "team", ID: "x"}))),
		second(paging.Collect(app.Downloads.All(t.Context()))),
	} {
		if err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("list %d without an actor: %v", i, err)
		}
	}
}

// TestAllIsTheTenants: All of users, teams, comments and downloads has the rows of all pages, of
// the caller's tenant and, of downloads, of the caller.
func TestAllIsTheTenants(t *testing.T) {
	app, ctx, remove := exampletest.Open()
	defer remove()
	is := is.New(t)
	_, err := app.AddTenant(ctx, tenants.Tenant{ID: "evil"}, "a long password")
	is.NoErr(err)
	const n = paging.MaxLimit + 1
	evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "admin", Superuser: true})
	jo := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"})
	var on entity.Key
	for ctx, n := range map[context.Context]int{ctx: n, evil: 1} {
		is.NoErr(app.InTx(ctx, func(ctx context.Context) error {
			for i := range n {
				name := fmt.Sprint("u", i)
				_, err := app.Principals.CreateUser(ctx, principals.User{Username: name, Domain: domains.Local}, "")
				is.NoErr(err)
				team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: name})
				is.NoErr(err)
				if a, err := actor.From(ctx); err == nil && a.Tenant == "acme" && i == 0 {
					on = entity.Key{Kind: principals.KindTeam, ID: team.ID}
				}
				_, err = app.Downloads.Create(ctx, files.Draft{Filename: name}, func(io.Writer) error { return nil })
				is.NoErr(err)
			}
			return nil
		}))
	}
	is.NoErr(app.InTx(ctx, func(ctx context.Context) error {
		for range n {
			_, err := app.Comments.Create(ctx, on, "hello")
			is.NoErr(err)
		}
		return nil
	}))
	for ctx, n := range map[context.Context]int{ctx: n, evil: 1} {
		users, err := paging.Collect(app.Principals.AllUsers(ctx))
		is.NoErr(err)
		is.Equal(distinct(users, func(u principals.User) string { return u.Username }), n+1) // and admin
		teams, err := paging.Collect(app.Principals.AllTeams(ctx))
		is.NoErr(err)
		is.Equal(distinct(teams, func(t principals.Team) string { return t.ID }), n)
		downloads, err := paging.Collect(app.Downloads.All(ctx))
		is.NoErr(err)
		is.Equal(distinct(downloads, func(f files.File) string { return f.ID }), n)
	}
	said, err := paging.Collect(app.Comments.All(ctx, on))
	is.NoErr(err)
	is.Equal(distinct(said, func(c comments.Comment) string { return c.ID }), n)
	_, err = paging.Collect(app.Comments.All(evil, on))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	others, err := paging.Collect(app.Downloads.All(jo))
	is.NoErr(err)
	is.Equal(len(others), 0)
}

// distinct returns the number of rows, which have different ids.
func distinct[T any](rows []T, id func(T) string) int {
	ids := map[string]bool{}
	for _, r := range rows {
		ids[id(r)] = true
	}
	return len(ids)
}

func second[T any](_ T, err error) error { return err }
