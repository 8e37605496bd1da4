package bundles_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// attach hangs on the users jo, kim and lee of a tenant, and on a report, what no archive holds.
func (w *world) attach(t *testing.T, tenant string) (team string) {
	t.Helper()
	is, super := is.New(t), w.as(t, tenant)
	_, err := w.Principals.CreateUser(super, principals.User{Username: "kim", Enabled: true}, "")
	is.NoErr(err)
	_, err = w.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
		Tenant: tenant, Username: "lee", Password: "a long password",
	})
	is.NoErr(err)
	var teams []string
	for _, name := range []string{"Design", "Sales"} {
		team, err := w.Principals.CreateTeam(super, principals.Team{Name: name})
		is.NoErr(err)
		teams = append(teams, team.ID)
		_, err = w.Principals.PutMember(super, team.ID, "jo", actor.Member)
		is.NoErr(err)
	}
	_, err = w.Principals.PutMember(super, teams[0], "kim", actor.Admin)
	is.NoErr(err)
	_, err = w.Sessions.Login(t.Context(), principals.Credentials{
		Tenant: tenant, Domain: "local", Username: "jo", Password: "jo has a secret",
	})
	is.NoErr(err)
	for _, name := range []string{"jo", "jo", "kim"} {
		who := actor.With(t.Context(), actor.Actor{Tenant: tenant, User: name})
		_, _, err = w.Sessions.CreateToken(who, sessions.TokensOf{Type: sessions.Personal}, sessions.NewToken{})
		is.NoErr(err)
		_, err = w.Uploads.Create(who, files.Draft{Filename: "a"}, strings.NewReader("x"))
		is.NoErr(err)
	}
	_, err = w.Principals.UpdateUser(super, "jo", func(u *principals.User) error {
		prompt := "Be kind."
		u.GlobalPermissions.AI, u.GlobalPermissions.ViewAllUsers = true, true
		u.MFA, u.AIConsent, u.AIMessage = true, true, &prompt
		return nil
	})
	is.NoErr(err)
	_, err = w.Principals.UpdateUser(super, "kim", func(u *principals.User) error {
		u.GlobalPermissions.AI, u.AIConsent = true, true
		return nil
	})
	is.NoErr(err)
	on, err := w.Comments.Create(super, entity.Key{
		Kind: "team", ID: teams[0],
	}, "of admin, who stays, to @jo and @kim")
	is.NoErr(err)
	_, err = w.Comments.Reply(actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "jo"}), on.ID, "of jo")
	is.NoErr(err)
	_, err = w.Principals.PutPicture(
		actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "jo"}), "jo", strings.NewReader("GIF89a"),
	)
	is.NoErr(err)
	report := w.make(t, tenant, "report", "Goes", `{"password": "x", "deep": [{"apiKey": "y"}]}`)
	c, err := w.Comments.Create(super, entity.Key{Kind: "report", ID: report}, "one")
	is.NoErr(err)
	_, err = w.Comments.Reply(super, c.ID, "two")
	is.NoErr(err)
	_, err = w.Comments.Create(super, entity.Key{Kind: "report", ID: report}, "three")
	is.NoErr(err)
	return teams[0]
}

const notHeld = " The archive of what is replaced does not hold them."

// TestRestoreSaysWhatIsLost before it is done, too: what hangs on users and content and is in no
// archive.
func TestRestoreSaysWhatIsLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		team := w.attach(t, "acme")
		w.attach(t, "evil") // is not counted
		file := packed(t, map[string]string{
			"user newcomer": `{}`,
			"report 00000000-0000-7000-8000-000000000001": `{"name": "R", "ownerId": "admin"}`,
		}, nil)
		want := []string{
			"The user admin stays: it is yours.",
			"Lost with the content that is removed: 2 secrets, 2 comment threads." + notHeld,
			"Lost with 3 users: 2 passwords, 1 superuser right, 3 global permissions, " +
				"1 multi-factor setting, 2 AI consents, 1 AI message, 2 notifications, 3 API tokens, 1 session, 3 " +
				"team memberships, 1 picture, 3 files, 1 comment authorship." + notHeld,
		}
		for _, dry := range []bool{true, false} {
			r, err := w.Bundles.Restore(acme, bytes.NewReader(file), bundles.ImportOptions{DryRun: dry})
			is.NoErr(err)
			is.Equal(r.Warnings, want)
		}
		for _, name := range []string{"jo", "kim", "lee"} {
			_, err := w.Principals.User(acme, name)
			is.True(err != nil)
		}
		members, err := w.Principals.Members(acme, team, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(members.Total, 0)
	})
}

// TestWhatStaysIsNotLost: the secrets of a user who is not removed.
func TestWhatStaysIsNotLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		for name, fields := range map[string]string{"admin": `{"token": "x", "apiKey": "y"}`, "jo": `{"token": "z"}`} {
			_, err := w.Principals.UpdateUser(acme, name, func(u *principals.User) error {
				u.UserFields = []byte(fields)
				return nil
			})
			is.NoErr(err)
		}
		r, err := w.Bundles.Restore(
			acme, bytes.NewReader(packed(t, map[string]string{"user newcomer": `{}`}, nil)),
			bundles.ImportOptions{},
		)
		is.NoErr(err)
		is.Equal(r.Warnings, []string{
			"The user admin stays: it is yours.",
			"Lost with the content that is removed: 1 secret." + notHeld, "Lost with 1 user: 1 password." + notHeld,
		})
		_, rows := unpacked(t, w.fetch(t, "acme", r.Archive))
		is.Equal(len(rows), 2) // all that were there
	})
}

// TestTeamsHoldMembers: the memberships of teams that are replaced too are in the archive.
// TestKindsInOrder: an archive that was packed by hand in another order is refused with what to do,
// and not read as one whose people are missing.
func TestKindsInOrder(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		team := w.attach(t, "acme")
		rows := map[string]string{"team " + team: `{"name": "Design", "slug": "design"}`, "user newcomer": `{}`}
		_, err := w.Bundles.Import(
			acme, bytes.NewReader(packedBy(t, []string{"team", "user"}, rows, nil)), bundles.ImportOptions{},
		)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(strings.Contains(errs.MessageOf(err), "rows of user come after") &&
			strings.Contains(errs.MessageOf(err), archive.Repack))
	})
}

func TestTeamsHoldMembers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		team := w.attach(t, "acme")
		file := packed(t, map[string]string{
			"team " + team:  `{"name": "Design", "slug": "design"}`,
			"user newcomer": `{}`,
		}, nil)
		r, err := w.Bundles.Restore(acme, bytes.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(len(r.Warnings), 3)
		is.True(!strings.Contains(r.Warnings[2], "membership"))
		is.True(strings.Contains(
			r.Warnings[1],
			"jo owned 1 item of content, which admin owns now. The archive of what is replaced does not give 1 of "+
				"them back.",
		))
		_, err = w.Bundles.Restore(acme, bytes.NewReader(w.fetch(t, "acme", r.Archive)), bundles.ImportOptions{})
		is.NoErr(err)
		members, err := w.Principals.Members(acme, team, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(members.Total, 2) // and come back with it
	})
}

// TestOwnersAreHeld: content that is replaced too comes back to its owner with the archive.
func TestOwnersAreHeld(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		tag := w.make(t, "acme", "tag", "Held", `{}`)
		file := packed(t, map[string]string{
			"user newcomer": `{}`,
			"tag " + tag:    `{"name": "Held", "ownerId": "jo"}`,
		}, nil)
		r, err := w.Bundles.Restore(acme, bytes.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Warnings[1], "jo owned 1 item of content, which admin owns now.")
		_, err = w.Bundles.Restore(acme, bytes.NewReader(w.fetch(t, "acme", r.Archive)), bundles.ImportOptions{})
		is.NoErr(err)
		e, err := w.Content.Get(acme, "tag", tag)
		is.NoErr(err)
		is.Equal(e.OwnerID, "jo")
	})
}

// TestDeployRemovesNoUser of another tenant whom a bundle had and ships no more: who has rights
// there is not for others to remove. The tenant's superusers are told.
func TestDeployRemovesNoUser(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		w.same(t, "sam")
		team := w.team(t)
		b := w.bundle(t, "B", "user sam", "team "+team)
		deploy := func() bundles.ImportResult {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			return done[0].ImportResult
		}
		deploy()
		_, err := w.Principals.PutMember(evil, team, "sam", actor.Member)
		is.NoErr(err)
		is.NoErr(w.Principals.DeleteUser(acme, "sam", ""))
		is.NoErr(w.Principals.DeleteTeam(acme, team, ""))
		r := deploy()
		is.Equal(r.Counts, bundles.Counts{})
		is.Equal(len(r.Warnings), 3) // two of entries of nothing, and the team has a member
		_, err = w.Principals.User(evil, "sam")
		is.NoErr(err)
	})
}

// TestLossesAreCountedAtOnce: with as many statements for twenty users and reports as for two.
func TestLossesAreCountedAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, counter := dbtest.Counted(t, open)
		w := newWorld(t, db)
		var cost []int
		for tenant, n := range map[string]int{"acme": 2, "evil": 20} {
			for i := range n {
				_, err := w.Principals.CreateUser(w.as(t, tenant), principals.User{Username: fmt.Sprint("u", i)}, "")
				is.NoErr(err)
				w.make(t, tenant, "report", fmt.Sprint("t", i), `{}`)
			}
			file := packed(t, map[string]string{"user jo": `{}`}, map[entity.Kind]int{"report": 0})
			counter.Take()
			r, err := w.Bundles.Restore(w.as(t, tenant), bytes.NewReader(file), bundles.ImportOptions{DryRun: true})
			is.NoErr(err)
			is.Equal(r.Deleted, 2*n)
			asked := 0
			for _, q := range counter.Take() {
				if strings.Contains(q, "total FROM tc_comment_threads ") ||
					strings.Contains(q, "count(*) FROM tc_comments ") ||
					strings.Contains(q, "count(*) FROM tc_tokens ") {
					asked++
				}
			}
			cost = append(cost, asked)
		}
		is.Equal(cost, []int{3, 3}) // comments on reports and of users, and the tokens and sessions of users
	})
}

// TestRestoreSaysWhatAppsLose: what users have of apps goes with the apps, and with the users.
func TestRestoreSaysWhatAppsLose(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		for _, tenant := range []string{"acme", "evil"} {
			app := w.make(t, tenant, apps.Kind, "Goes", `{}`)
			jo := actor.With(t.Context(), actor.Actor{Tenant: tenant, User: "jo", Superuser: true})
			_, err := w.Apps.Edit(jo, app, false)
			is.NoErr(err)
			for _, ctx := range []context.Context{jo, w.as(t, tenant)} {
				_, err = w.Apps.SetFavorite(ctx, app, true)
				is.NoErr(err)
			}
			is.NoErr(w.Apps.Visit(jo, app))
			is.NoErr(w.Apps.Visit(jo, app))
		}
		is.NoErr(w.Apps.Unchecked().FlushAll(t.Context()))
		users := packed(t, map[string]string{"user newcomer": `{}`}, nil)
		r, err := w.Bundles.Restore(acme, bytes.NewReader(users), bundles.ImportOptions{DryRun: true})
		is.NoErr(err)
		is.Equal(
			r.Warnings[len(r.Warnings)-1],
			"Lost with 1 user: 1 password, 1 favorite, 1 app visit, 2 app views."+notHeld,
		)

		other := packed(t, map[string]string{
			"app 00000000-0000-7000-8000-000000000001": `{"name": "R", "ownerId": "admin", "type": "report"}`,
		}, nil)
		r, err = w.Bundles.Restore(acme, bytes.NewReader(other), bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(
			r.Warnings[len(r.Warnings)-1],
			"Lost with the content that is removed: 1 draft, 2 favorites, 1 app visit, 2 app views."+notHeld,
		)
		r, err = w.Bundles.Restore(acme, bytes.NewReader(users), bundles.ImportOptions{DryRun: true})
		is.NoErr(err)
		is.Equal(r.Warnings[len(r.Warnings)-1], "Lost with 1 user: 1 password."+notHeld)
	})
}
