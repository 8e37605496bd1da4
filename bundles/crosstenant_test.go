package bundles_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// same makes a user with an email in both tenants.
func (w *world) same(t *testing.T, name string) {
	t.Helper()
	for _, tenant := range []string{"acme", "evil"} {
		email := name + "@" + tenant + ".example"
		_, err := w.Principals.CreateUser(
			w.as(t, tenant), principals.User{Username: name, Enabled: true, Email: &email}, "",
		)
		is.New(t).NoErr(err)
	}
}

// owner is who owns a report of evil.
func (w *world) owner(t *testing.T, id string) string {
	t.Helper()
	e, err := w.Content.Get(w.as(t, "evil"), "report", id)
	is.New(t).NoErr(err)
	return e.OwnerID
}

// told returns what the notifications of a user of evil say.
func (w *world) told(t *testing.T, username string) string {
	t.Helper()
	page, err := w.Comments.Notifications(
		actor.With(t.Context(), actor.Actor{Tenant: "evil", User: username}), comments.NotificationFilter{},
		pageOf(100),
	)
	is.New(t).NoErr(err)
	var all []string
	for _, n := range page.Rows {
		all = append(all, n.Title+"\n"+n.Body)
	}
	return strings.Join(all, "\n")
}

// TestDeployGivesNoRights to users of another tenant: no role, no profile and no content, whether a
// bundle or a manifest is deployed, and whatever the rule. An import of the same archive by the
// tenant's own superuser gives them.
func TestDeployGivesNoRights(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		w.same(t, "mallory")
		_, err := w.Principals.CreateUser(acme, principals.User{Username: "sam", Enabled: true}, "")
		is.NoErr(err)
		team := w.team(t)
		for name, role := range map[string]actor.Role{
			"mallory": actor.Admin,
			"jo":      actor.Member,
			"sam":     actor.Publisher,
		} {
			_, err := w.Principals.PutMember(acme, team, name, role)
			is.NoErr(err)
		}
		of := func(owner, name string) string {
			ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: owner, Superuser: true})
			e, err := w.Content.Create(ctx, content.Entity{Kind: "report", Name: name})
			is.NoErr(err)
			return e.ID
		}
		mallorys, sams := of("mallory", "M"), of("sam", "S")
		entries := []string{"user mallory", "user sam", "team " + team, "report " + mallorys, "report " + sams}
		b := w.bundle(t, "B", entries...)
		var m bundles.Manifest
		for _, e := range entries {
			kind, id, _ := strings.Cut(e, " ")
			m.Entries = append(m.Entries, bundles.Entry{Type: kind, EntityID: id})
		}
		check := func() {
			u, err := w.Principals.User(evil, "mallory")
			is.NoErr(err)
			is.Equal(*u.Email, "mallory@evil.example")
			members, err := w.Principals.Members(evil, team, paging.Query{Limit: 10})
			is.NoErr(err)
			is.Equal(members.Total, 0)
			is.Equal(w.owner(t, mallorys), "eve")
			is.Equal(w.owner(t, sams), "eve")
			_, err = w.Principals.User(evil, "sam")
			is.Equal(errs.CodeOf(err), errs.NotFound)
		}
		left := []string{
			"2 users did not come along: a tenant's own people decide who its users are.",
			"3 members of teams did not come along: roles in a tenant are given by its own people.",
		}
		owners := "The owner of 2 new items did not come along: the tenant's own people own what is new there."
		for i, rule := range []entity.Rule{entity.Overwrite, entity.Overwrite, entity.Skip} {
			for _, dry := range []bool{true, false} {
				done, err := w.Bundles.Deploy(
					acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: rule, DryRun: dry},
				)
				is.NoErr(err)
				is.Equal(done[0].ByKind["user"], bundles.Counts{Skipped: 2})
				if i == 0 {
					is.Equal(done[0].Warnings, append(slices.Clone(left), owners))
				} else {
					is.Equal(done[0].Warnings, left)
				}
			}
			check()
		}
		_, err = w.Bundles.DeployManifest(acme, m, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		check()
		notified := w.told(t, "eve")
		for _, want := range append(
			left, "What a deploy from the tenant acme did and left out", "The users left out: mallory, sam.",
			"team "+team+" is new here: T.",
		) {
			is.True(strings.Contains(notified, want))
		}
		is.Equal(w.told(t, "mallory"), "")

		email := "changed@acme.example"
		_, err = w.Principals.UpdateUser(acme, "mallory", func(u *principals.User) error {
			u.Email = &email
			return nil
		})
		is.NoErr(err)
		_, err = w.Bundles.Import(
			evil, strings.NewReader(string(w.export(t, "acme", b.ID))),
			bundles.ImportOptions{Rule: entity.Overwrite},
		)
		is.NoErr(err)
		u, err := w.Principals.User(evil, "mallory")
		is.NoErr(err)
		is.Equal(*u.Email, email)
		members, err := w.Principals.Members(evil, team, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(members.Total, 3)
		is.Equal(w.owner(t, mallorys), "mallory")
	})
}

// TestDeployTellsNotWhoIsThere: the answers are the same, whoever is a user of the target, in
// whatever spelling.
func TestDeployTellsNotWhoIsThere(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		var answers []string
		for _, name := range []string{"abel", "cain"} {
			_, err := w.Principals.CreateUser(acme, principals.User{
				Username:          name,
				Enabled:           true,
				GlobalPermissions: principals.GlobalPermissions{AI: true},
			}, "")
			is.NoErr(err)
			if name == "abel" {
				_, err = w.Principals.CreateUser(evil, principals.User{Username: "Abel", Enabled: true}, "")
				is.NoErr(err)
			}
			ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: name, Superuser: true})
			report, err := w.Content.Create(ctx, content.Entity{Kind: "report", Name: "R"})
			is.NoErr(err)
			b := w.bundle(t, "Of "+name, "user "+name, "report "+report.ID)
			answer := ""
			for _, how := range []bundles.ImportOptions{
				{DryRun: true}, {Rule: entity.Fail}, {}, {Rule: entity.Skip}, {Changes: true},
			} {
				done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, how)
				is.NoErr(err)
				r := done[0].ImportResult
				r.Archive = nil
				text, err := json.Marshal(r)
				is.NoErr(err)
				answer += strings.NewReplacer(name, "X", report.ID, "R").Replace(string(text))
				if how.Rule == entity.Fail { // or it would be there
					is.NoErr(w.Content.Delete(evil, "report", report.ID))
				}
			}
			w.undo(t, b.ID, name)
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.Equal(done[0].Warnings, []string{})
			answers = append(answers, answer)
		}
		is.Equal(answers[0], answers[1])
	})
}

// TestDeployLeavesTeamsAlone that no deploy made; it renames those that one made, and keeps the
// members that they have by now.
func TestDeployLeavesTeamsAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		brought, imported := w.team(t), ""
		made, err := w.Principals.CreateTeam(acme, principals.Team{Name: "Other"})
		is.NoErr(err)
		imported = made.ID
		_, err = w.Bundles.Import(
			evil, strings.NewReader(string(w.export(t, "acme", "", "team "+imported))), bundles.ImportOptions{},
		)
		is.NoErr(err)
		b := w.bundle(t, "B", "team "+brought, "team "+imported)
		deploy := func() bundles.Counts {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			return done[0].Counts
		}
		is.Equal(deploy(), bundles.Counts{Created: 1, Skipped: 1})
		_, err = w.Principals.PutMember(evil, brought, "jo", actor.Designer)
		is.NoErr(err)
		for _, id := range []string{brought, imported} {
			_, err = w.Principals.UpdateTeam(acme, id, func(t *principals.Team) error {
				t.Name += " of acme"
				return nil
			})
			is.NoErr(err)
		}
		is.Equal(deploy(), bundles.Counts{Updated: 1, Skipped: 1})
		for id, name := range map[string]string{brought: "T of acme", imported: "Other"} {
			got, err := w.Principals.Team(evil, id)
			is.NoErr(err)
			is.Equal(got.Name, name)
		}
		members, err := w.Principals.Members(evil, brought, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(members.Total, 1)
	})
}

// TestDeployLeavesOwnAlone: of rows that are there, a deploy overwrites those alone that its
// tenant's deploys brought.
func TestDeployLeavesOwnAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		_, err := w.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{ID: "other"})
		is.NoErr(err)
		for _, tenant := range []string{"acme", "evil"} {
			_, err := w.Tenants.Update(w.as(t, tenant), func(s *tenants.Tenant) error {
				s.Settings.AI, s.Settings.DeployFrom = true, tenants.Sources("acme", "other")
				return nil
			})
			is.NoErr(err)
		}
		other := actor.With(t.Context(), actor.Actor{Tenant: "other", User: "olga", Superuser: true})
		_, err = w.Principals.Unchecked().AddSuperuser(other, principals.Credentials{
			Tenant: "other", Username: "olga", Password: "open sesame",
		})
		is.NoErr(err)

		report, library := w.make(
			t, "evil", "report", "Own", `{"of": "evil"}`,
		), w.make(t, "evil", "library", "Own", `{"of": "evil"}`)
		_, err = w.Content.PutFile(evil, library, entity.File{
			Path: "a.txt", ContentType: "text/plain",
		}, strings.NewReader("evil's"))
		is.NoErr(err)
		_, err = w.Colors.Put(evil, "brand", "#00ff00")
		is.NoErr(err)
		instruction, err := w.AIInstructions.Create(evil, aiinstr.Instruction{Slug: "tone", Content: "evil's"})
		is.NoErr(err)
		entries := []string{"report " + report, "library " + library, "global "}
		file := string(w.export(t, "evil", "", entries...))
		_, err = w.Bundles.Import(acme, strings.NewReader(file), bundles.ImportOptions{Owner: "admin"})
		is.NoErr(err)
		for kind, id := range map[entity.Kind]string{"report": report, "library": library} {
			w.setData(t, "acme", kind, id, `{"of": "acme"}`)
		}
		_, err = w.Content.PutFile(acme, library, entity.File{
			Path: "a.txt", ContentType: "text/plain",
		}, strings.NewReader("acme's"))
		is.NoErr(err)
		_, err = w.Colors.Put(acme, "brand", "#ff0000")
		is.NoErr(err)
		_, err = w.AIInstructions.Update(acme, instruction.ID, func(i *aiinstr.Instruction) error {
			i.Content = "acme's"
			return nil
		})
		is.NoErr(err)

		b := w.bundle(t, "B", entries...)
		before := w.dump(t, "evil")
		for _, dry := range []bool{true, false} {
			done, err := w.Bundles.Deploy(
				acme, b.ID, []string{"evil"}, bundles.ImportOptions{DryRun: dry, Changes: true},
			)
			is.NoErr(err)
			is.Equal(done[0].Counts, bundles.Counts{Skipped: 4})
			is.Equal(done[0].Warnings, []string{})
			is.Equal(done[0].Archive, nil)
		}
		is.Equal(w.dump(t, "evil"), before)
		for _, want := range []string{
			"color brand", "aiInstruction " + instruction.ID, "report " + report, "library " + library,
		} {
			is.True(strings.Contains(
				w.told(t, "eve"), want+" is your own and stays as it is: no deploy from acme brought it.",
			))
		}
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: entity.Fail})
		is.Equal(errs.CodeOf(err), errs.Conflict)

		// What another tenant brought is not acme's either, and what acme's own brought is.
		is.NoErr(w.Content.Delete(evil, "report", report))
		_, err = w.Bundles.Import(other, strings.NewReader(file), bundles.ImportOptions{})
		is.NoErr(err)
		m := bundles.Manifest{Entries: []bundles.Entry{{Type: "report", EntityID: report}}}
		deploy := func(from ctx) bundles.Counts {
			done, err := w.Bundles.DeployManifest(from, m, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			return done[0].Counts
		}
		is.Equal(deploy(other), bundles.Counts{Created: 1})
		is.Equal(deploy(other), bundles.Counts{Updated: 1})
		is.Equal(deploy(acme), bundles.Counts{Skipped: 1})
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(done[0].Counts, bundles.Counts{Skipped: 4})
		is.Equal(deploy(acme), bundles.Counts{Skipped: 1}) // and the bundle did not make it acme's
		is.NoErr(w.Content.Delete(evil, "report", report))
		is.Equal(deploy(acme), bundles.Counts{Created: 1})
		is.Equal(deploy(acme), bundles.Counts{Updated: 1})
		is.Equal(deploy(other), bundles.Counts{Skipped: 1})
		w.undo(t, b.ID, report)
		done, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(done[0].Counts, bundles.Counts{Skipped: 3})
		is.Equal(w.owner(t, report), "eve") // no bundle removes what a manifest brought
	})
}

// TestDeployLeavesDraftsAlone: the id of a draft is that of a row that is there.
func TestDeployLeavesDraftsAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		report := w.make(t, "evil", "report", "R", `{}`)
		_, err := w.Bundles.Import(
			acme, strings.NewReader(string(w.export(t, "evil", "", "report "+report))), bundles.ImportOptions{},
		)
		is.NoErr(err)
		is.NoErr(bunx.Write(t.Context(), w.db, "evil", func(ctx ctx, c bunx.Conn) error {
			_, err := c.Exec(ctx, `UPDATE tc_entities SET editing_id = $1 WHERE tenant_id = 'evil' AND id = $1`, report)
			return err
		}))
		b := w.bundle(t, "B", "report "+report)
		for rule, code := range map[entity.Rule]errs.Code{
			entity.Overwrite: "",
			entity.Skip:      "",
			entity.Fail:      errs.Conflict,
		} {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: rule})
			if code != "" {
				is.Equal(errs.CodeOf(err), code)
				is.Equal(errs.MessageOf(err), "report "+report+" exists already.")
				continue
			}
			is.NoErr(err)
			is.Equal(done[0].Counts, bundles.Counts{Skipped: 1})
		}
	})
}

// TestDeployClaimsNobodyOfADirectory: teams come without the ids that they have in a directory of
// the source, as one of the target may have the same. Users do not come: the person of the target's
// directory who has the name gets a user at login.
func TestDeployClaimsNobodyOfADirectory(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		_, err := w.Principals.CreateUser(acme, principals.User{Username: "sam", Enabled: true}, "")
		is.NoErr(err)
		team := w.team(t)
		set := func(tenant, source string) {
			is.NoErr(bunx.Write(t.Context(), w.db, tenant, func(ctx ctx, c bunx.Conn) error {
				_, err := c.Exec(
					ctx, `UPDATE tc_teams SET source = $1, source_id = $1 WHERE tenant_id = $2 AND id = $3`,
					source, tenant, team,
				)
				return err
			}))
		}
		set("acme", "theirs")
		b := w.bundle(t, "B", "user sam", "team "+team)
		deploy := func() principals.Team {
			_, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			got, err := w.Principals.Team(evil, team)
			is.NoErr(err)
			return got
		}
		got := deploy()
		is.Equal([]*string{got.Source, got.SourceID}, []*string{nil, nil})
		_, err = w.Principals.User(evil, "sam")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		set("evil", "own")
		got = deploy()
		is.Equal(*got.SourceID, "own")
		is.Equal(*got.Source, "own")
	})
}

// TestDeployMakesSlugsUnique: a slug that something else of the target has is no conflict, which
// would tell that it has, but gets a number. The target's superusers are told.
func TestDeployMakesSlugsUnique(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		for _, tenant := range []string{"acme", "evil"} {
			_, err := w.Tenants.Update(w.as(t, tenant), func(s *tenants.Tenant) error {
				s.Settings.AI = true
				return nil
			})
			is.NoErr(err)
		}
		own, err := w.Principals.CreateTeam(evil, principals.Team{Name: "T"})
		is.NoErr(err)
		_, err = w.AIInstructions.Create(evil, aiinstr.Instruction{Slug: "tone", Content: "evil's"})
		is.NoErr(err)
		tone, err := w.AIInstructions.Create(acme, aiinstr.Instruction{Slug: "tone", Content: "acme's"})
		is.NoErr(err)
		taken := "plan"
		_, err = w.Content.Create(evil, content.Entity{Kind: "report", Name: "Evil's", Slug: &taken})
		is.NoErr(err)
		_, err = w.Content.Create(acme, content.Entity{Kind: "report", Name: "Admin's", Slug: &taken})
		is.NoErr(err)
		first := w.make(t, "acme", "report", "Plan", `{}`) // two owners, who are one there
		second, err := w.Content.Get(acme, "report", "admin:plan")
		is.NoErr(err)
		team := w.team(t)
		b := w.bundle(t, "B", "team "+team, "report "+first, "report "+second.ID, "global ")
		slugs := func() string {
			var all []string
			got, err := w.Principals.Team(evil, team)
			is.NoErr(err)
			i, err := w.AIInstructions.Get(evil, tone.ID)
			is.NoErr(err)
			for _, id := range []string{first, second.ID} {
				e, err := w.Content.Get(evil, "report", id)
				is.NoErr(err)
				all = append(all, *e.Slug)
			}
			slices.Sort(all) // which of the two is first is up to their ids
			return got.Slug + " " + i.Slug + " " + strings.Join(all, " ")
		}
		deploy := func(rule entity.Rule) bundles.Counts {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{Rule: rule})
			is.NoErr(err)
			is.NoErr(done[0].Err)
			for _, warning := range done[0].Warnings { // the owners and nothing else
				is.Equal(
					warning,
					"The owner of 3 new items did not come along: the tenant's own people own what is new there.",
				)
			}
			return done[0].Counts
		}
		is.Equal(deploy(entity.Fail), bundles.Counts{Created: 4})
		is.Equal(slugs(), "t-2 tone-2 plan-2 plan-3")
		is.True(strings.Contains(
			w.told(t, "eve"),
			"aiInstruction "+tone.ID+" has the slug tone-2 here: tone belongs to another one.",
		))
		is.Equal(deploy(entity.Overwrite), bundles.Counts{Updated: 4})
		is.Equal(slugs(), "t-2 tone-2 plan-2 plan-3") // and keeps it
		_, err = w.Principals.UpdateTeam(evil, own.ID, func(t *principals.Team) error { t.Slug = "other"; return nil })
		is.NoErr(err)
		is.Equal(deploy(entity.Overwrite), bundles.Counts{Updated: 4})
		is.Equal(slugs(), "t tone-2 plan-2 plan-3")

		_, err = w.Principals.PutMember(evil, team, "jo", actor.Member) // so that it stays
		is.NoErr(err)
		w.undo(t, b.ID, team)
		is.NoErr(w.Principals.DeleteTeam(acme, team, ""))
		team = w.team(t)
		_, err = w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "team", EntityID: team})
		is.NoErr(err)
		done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(done[0].Counts, bundles.Counts{Created: 1, Updated: 3})
		is.Equal(slugs(), "t-2 tone-2 plan-2 plan-3")
	})
}

// TestDeployKeepsOwners: a row that is there keeps its owner, and a new one belongs to the user
// whom deployFrom names.
func TestDeployKeepsOwners(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme, evil := is.New(t), w.as(t, "acme"), w.as(t, "evil")
		w.same(t, "mallory")
		w.same(t, "runner")
		first, second := w.make(t, "acme", "report", "First", `{}`), w.make(t, "acme", "report", "Second", `{}`)
		b := w.bundle(t, "B", "report "+first)
		deploy := func() {
			done, err := w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
			is.NoErr(err)
			is.NoErr(done[0].Err)
		}
		runAs := func(name string) {
			_, err := w.Tenants.Update(evil, func(s *tenants.Tenant) error {
				s.Settings.DeployFrom = []tenants.Source{{Tenant: "acme", RunAs: name}}
				return nil
			})
			is.NoErr(err)
		}
		deploy()
		is.Equal(w.owner(t, first), "eve")
		_, err := w.Principals.Reassign(evil, "eve", "jo")
		is.NoErr(err)
		_, err = w.Principals.Reassign(acme, "jo", "mallory")
		is.NoErr(err)
		_, err = w.Bundles.CreateEntry(acme, b.ID, bundles.Entry{Type: "report", EntityID: second})
		is.NoErr(err)
		runAs("runner")
		deploy()
		is.Equal(w.owner(t, first), "jo")
		is.Equal(w.owner(t, second), "runner")

		is.NoErr(w.Content.Delete(evil, "report", second))
		is.NoErr(w.Principals.DeleteUser(evil, "runner", ""))
		t0, err := w.Tenants.Get(evil)
		is.NoErr(err)
		is.Equal(t0.Settings.DeployFrom, tenants.Sources()) // nobody else gets what comes
		_, err = w.Bundles.Deploy(acme, b.ID, []string{"evil"}, bundles.ImportOptions{})
		is.Equal(errs.CodeOf(err), errs.Forbidden)
		runAs("")
		deploy()
		is.Equal(w.owner(t, second), "eve")
	})
}

// recorder is a transferer that keeps the options of its imports.
type recorder struct {
	entity.FileTransferer
	got *[]entity.ImportOptions
}

func (l recorder) Import(
	ctx ctx, tenant string, rows []entity.Row, into entity.ImportOptions,
) ([]entity.ImportAction, []string, error) {
	*l.got = append(*l.got, into)
	return l.FileTransferer.Import(ctx, tenant, rows, into)
}

// TestTransferersLearnOfOtherTenants: a host's own kind is told that a deploy comes from another
// tenant, and which principals did.
func TestTransferersLearnOfOtherTenants(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, acme := is.New(t), w.as(t, "acme")
		var got []entity.ImportOptions
		s := opened(t, w.db, libraries(w, func(p entity.FileTransferer) entity.Transferer { return recorder{p, &got} }))
		team := w.team(t)
		b := w.bundle(t, "B", "library "+w.make(t, "acme", "library", "L", `{}`), "team "+team, "user jo")
		_, err := s.Bundles.Deploy(acme, b.ID, []string{"evil", "acme"}, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal([]bool{got[0].CrossTenant, got[1].CrossTenant}, []bool{true, false})
		is.Equal(slices.Collect(maps.Keys(got[0].DeployedTeams)), []string{team})
		is.Equal(got[0].Owner, "eve")
	})
}

// TestDeletedTenantLeavesNoRight: a tenant that is made with the id of a deleted one may not deploy
// where that one might, and what that one brought is not its own.
func TestDeletedTenantLeavesNoRight(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		is, evil := is.New(t), w.as(t, "evil")
		team := w.team(t)
		b := w.bundle(t, "B", "team "+team)
		deploy := func(bundle string) error {
			_, err := w.Bundles.Deploy(w.as(t, "acme"), bundle, []string{"evil"}, bundles.ImportOptions{})
			return err
		}
		is.NoErr(deploy(b.ID))
		archive := w.export(t, "acme", b.ID)
		_, err := w.Tenants.Update(evil, func(s *tenants.Tenant) error {
			s.Settings.DeployFrom = []tenants.Source{{Tenant: "other"}, {Tenant: "acme", RunAs: "jo"}}
			return nil
		})
		is.NoErr(err)

		is.NoErr(w.Tenants.Unchecked().Delete(t.Context(), "acme", tenants.DeleteOptions{}))
		_, err = w.Tenants.Unchecked().Add(t.Context(), tenants.Tenant{ID: "acme"})
		is.NoErr(err)
		_, err = w.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "admin", Password: "open sesame",
		})
		is.NoErr(err)
		_, err = w.Bundles.Import(w.as(t, "acme"), strings.NewReader(string(archive)), bundles.ImportOptions{})
		is.NoErr(err)
		_, err = w.Principals.UpdateTeam(w.as(t, "acme"), team, func(t *principals.Team) error {
			t.Name = "Stolen"
			return nil
		})
		is.NoErr(err)
		again := w.bundle(t, "B", "team "+team)
		is.Equal(errs.CodeOf(deploy(again.ID)), errs.Forbidden)
		now, err := w.Tenants.Get(evil)
		is.NoErr(err)
		is.Equal(now.Settings.DeployFrom, tenants.Sources("other"))

		_, err = w.Tenants.Update(evil, func(s *tenants.Tenant) error {
			s.Settings.DeployFrom = tenants.Sources("acme")
			return nil
		})
		is.NoErr(err)
		is.NoErr(deploy(again.ID))
		got, err := w.Principals.Team(evil, team)
		is.NoErr(err)
		is.Equal(got.Name, "T")
	})
}
