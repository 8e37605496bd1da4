package tenantcontent_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// noUsernames are, by table, the columns of text that no user's name is kept in, beside tenant_id:
// ids and names of other things, keys, and what people or programs wrote, in which a name is but a
// word. A column that is not here, and not renamed, fails TestRenameReachesAll: name it here, or
// rename it in its package's Hooks.
var noUsernames = map[string]string{
	"tc_activities":      "id type kind comment_id excerpt",
	"tc_ai_instructions": "id slug search description content",
	"tc_app_favorites":   "app_id",
	"tc_app_shares":      "entity_id roles",
	"tc_app_views":       "app_id day",
	"tc_app_visits":      "app_id",
	"tc_apps": "id type name label search slug description defn env_sealed settings origin library_id editing_id " +
		"base editing_session folder_id datasets tags " +
		"source source_id webhook_secret",
	"tc_assistant_shares": "entity_id roles",
	"tc_assistants": "id name label search slug description instructions welcome suggestions model_id data skills " +
		"datasets refs secrets_sealed library_id editing_id base " +
		"editing_session folder_id",
	"tc_confirmations": "id assistant_id asked decision",
	// What an index of searches has of a user who was renamed is not shown to anybody, and goes
	// when the index is built again.
	"tc_search_docs":         "list part block ids",
	"tc_search_grams":        "list part gram docs",
	"tc_search_lists":        "list part reached",
	"tc_search_noted":        "list part id tx",
	"tc_search_segments":     "list part state",
	"tc_blob_chunks":         "blob_id",
	"tc_blobs":               "id",
	"tc_bundle_entries":      "id bundle_id type data",
	"tc_handler_calls":       "app_id day area method path",
	"tc_handler_deployments": "app_id",
	"tc_handler_programs":    "hash engine about",
	"tc_handler_routes":      "app_id area path file methods config hash",
	"tc_bundles":             "id name slug label search description",
	"tc_change_feeds":        "feed",
	"tc_changes":             "id kind entity_id action before after", // an id of a user is renamed
	"tc_colors":              "key search color source",
	"tc_former_users":        "username", // of users who are gone
	"tc_removals":            "kind id",
	"tc_comment_threads":     "kind",
	"tc_comments":            "id kind parent_id message",
	"tc_deployments":         "source_tenant bundle_id kind mark",
	"tc_domain_logins":       "id domain_id",
	"tc_domain_scans":        "domain_id id phase error",
	"tc_domains": "id name label search description type config secrets keys_sealed id_attribute " +
		"group_id_attribute",
	"tc_downloads":         "id filename content_type",
	"tc_entities":          "kind id name label search slug description data editing_id source source_id",
	"tc_agents":            "app_id name definition overrides",
	"tc_agent_runs":        "id app_id agent started_by event_id run_id input model lease state error result",
	"tc_agent_steps":       "run_id kind content calls call_id tool arguments result log",
	"tc_events":            "id app_id name search payload state error",
	"tc_feed":              "activity_id",
	"tc_library_contents":  "id sha256",
	"tc_job_schedules":     "kind key cron zone payload",
	"tc_jobs":              "id kind key payload state error node lease",
	"tc_library_files":     "kind library_id path folded content_id content_type sha256",
	"tc_library_released":  "content_id library_id",
	"tc_login_networks":    "network",
	"tc_memberships":       "team_id",
	"tc_messages":          "id app_id type search title body html sender path data state error",
	"tc_leases":            "name holder",
	"tc_migrations":        "name",
	"tc_notifications":     "id type state title body kind comment_id path",
	"tc_principals":        "id type label",
	"tc_provider_sessions": "session_id domain_id subject provider_id memory",
	"tc_scim_users":        "id external_id",
	"tc_sessions":          "id",
	"tc_teams":             "id name slug label search description domain color icon material_icon source source_id",
	"tc_tenants":           "name settings key_check hidden",
	"tc_totals":            "list part", // the database itself counts
	"tc_tokens":            "id type secret_hash notes restriction host cidr data entity_kind entity_id",
	"tc_workspaces":        "app_id engine password",
	"tc_uploads":           "id filename content_type",
	"tc_users": "folded label search domain display_name family_name given_name middle_name email timezone source " +
		"source_id " +
		"data user_fields password_hash ai_message avatar_id recent_failures",
	"tc_webhook_days":        "app_id day method path",
	"tc_webhook_invocations": "app_id area id method path error logs replay_of",
	"tc_webhook_requests":    "app_id id key_sealed",
}

// in reports whether the column is tenant_id or in a list of columns by table.
func (at column) in(lists map[string]string) bool {
	return at.name == "tenant_id" || slices.Contains(strings.Fields(lists[at.table]), at.name)
}

// ofReports are the tables whose rows are of, or about, content and never users.
var ofReports = []string{"tc_entities", "tc_comments", "tc_comment_threads", "tc_activities", "tc_notifications"}

// column is a column of text.
type column struct{ table, name string }

// columnsOf returns all columns of the program's tables, with the statement's idea of something to
// put in.
func columnsOf(t *testing.T, db *bun.DB) (text []column, filler map[column]string) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	query := `SELECT m.name, c.name, c.type, c."notnull" OR c.pk FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name LIKE 'tc\_%' ESCAPE '\' ORDER BY 1, c.cid`
	if c.Postgres() {
		query = `SELECT table_name, column_name, data_type, is_nullable = 'NO' FROM information_schema.columns
			WHERE table_schema = current_schema() ORDER BY 1, ordinal_position`
	}
	filler = map[column]string{}
	rows, err := c.Rows(ctx, query)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (at column, err error) {
		var kind string
		var required bool
		err = rows.Scan(&at.table, &at.name, &kind, &required)
		switch kind = strings.ToLower(kind); {
		case kind == "text" && !strings.HasSuffix(at.name, "_at"):
			text = append(text, at)
		case !required:
		case kind == "bytea":
			filler[at] = "''"
		case kind == "blob":
			filler[at] = "x''"
		case kind == "boolean":
			filler[at] = "false"
		case kind == "text" || strings.HasPrefix(kind, "timestamp"):
			filler[at] = "'2026-11-20T20:31:00.000000Z'"
		default:
			filler[at] = "0"
		}
		return at, err
	})
	is.New(t).NoErr(err)
	return text, filler
}

// seed puts a row into every table that refers to the user old-name of acme in every column that
// may.
func seed(t *testing.T, db *bun.DB) {
	t.Helper()
	text, filler := columnsOf(t, db)
	rows := map[string][]string{} // by table, columns and values in turn
	for at, value := range filler {
		rows[at.table] = append(rows[at.table], at.name, value)
	}
	for _, at := range text {
		value := "'old-name'"
		switch {
		case at.name == "tenant_id":
			value = "'acme'"
		case at.name == "parent_id" || at.name == "editing_id":
			value = "NULL"
		case at.name == "kind" && slices.Contains(ofReports, at.table):
			value = "'report'"
		case at.name == "type" && at.table == "tc_messages":
			value = "'notification'"
		case at.name == "kind" || at.name == "type":
			value = "'user'"
		case at.name == "entity_id" && slices.Contains(ofReports, at.table):
			value = "'x'"
		case at.name == "mentions":
			value = `'[{"username":"other","displayName":null},{"username":"old-name","displayName":"Old"}]'`
		case at.in(noUsernames):
			value = "'x'"
		}
		rows[at.table] = append(rows[at.table], at.name, value)
	}
	for _, made := range []string{"tc_tenants", "tc_users", "tc_principals", "tc_migrations"} { // are there
		delete(rows, made)
	}
	var last error
	for round := 0; len(rows) > 0; round++ { // a table may need the row of another one
		if round > 10 {
			t.Fatal(last)
		}
		for table, row := range rows {
			var names, values []string
			for pair := range slices.Chunk(row, 2) {
				names, values = append(names, pair[0]), append(values, pair[1])
			}
			err := bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(
					ctx,
					fmt.Sprintf(
						"INSERT INTO %s (%s) VALUES (%s)", table, strings.Join(names, ", "),
						strings.Join(values, ", "),
					),
				)
				return err
			})
			if last = err; err == nil {
				delete(rows, table)
			}
		}
	}
}

// holding returns the columns in which a text occurs.
func holding(t *testing.T, db *bun.DB, text string) (found []string) {
	t.Helper()
	columns, _ := columnsOf(t, db)
	ctx, c := bunx.For(t.Context(), db, "acme")
	for _, at := range columns {
		if at.table == "tc_migrations" || at.table == "tc_leases" {
			continue
		}
		var n int
		is.New(t).NoErr(c.Row(
			ctx,
			fmt.Sprintf(
				"SELECT count(*) FROM %s WHERE tenant_id = 'acme' AND %s LIKE '%%%s%%'", at.table, at.name,
				text,
			),
		).Scan(&n))
		if n > 0 {
			found = append(found, at.table+"."+at.name)
		}
	}
	slices.Sort(found)
	return found
}

// TestRenameReachesAll: after a rename nothing names the user as before, in whatever table.
func TestRenameReachesAll(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		addLDAP(t, app)
		admit := func(name string) {
			_, err := app.Principals.Unchecked().Admit(
				t.Context(), "acme", "ldap", "LDAP", principals.Identity{ID: "1", Username: name},
			)
			is.NoErr(err)
		}
		admit("old-name")
		seed(t, db)
		before := holding(t, db, "old-name")
		is.True(len(before) > 15)
		admit("new-name")
		_, err := bunx.FoldTotals(t.Context(), db) // removes the parts without rows
		is.NoErr(err)
		is.Equal(holding(t, db, "old-name"), nil)
		is.Equal(holding(t, db, "new-name"), before)
		is.Equal(holding(t, db, "other"), []string{"tc_comments.mentions"})

		all, _ := columnsOf(t, db)
		for table, columns := range noUsernames { // each of them is there
			for name := range strings.FieldsSeq(columns) {
				if !slices.Contains(all, column{table, name}) {
					t.Errorf("noUsernames: %s.%s is no column of text", table, name)
				}
			}
		}
	})
}

// addLDAP adds the domain ldap.
func addLDAP(t testing.TB, app *tenantcontent.App) {
	t.Helper()
	_, err := app.Domains.Create(as(t.Context(), "acme"), domains.Domain{Name: &[]string{"ldap"}[0], Type: "LDAP"})
	is.New(t).NoErr(err)
}

// world is what somebody has who is renamed.
type world struct {
	app           *tenantcontent.App
	token         string
	report, draft content.Entity
	comment       comments.Comment
	upload        string
}

// syncOf returns a dirsync.Service beside an App.
func syncOf(app *tenantcontent.App, db *bun.DB) *dirsync.Service {
	return dirsync.New(dirsync.Options{Store: principalstore.New(db), Principals: app.Principals.Unchecked()})
}

// TestRenamedUserKeepsAll has two people swap their names, with all that is theirs.
func TestRenamedUserKeepsAll(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is := is.New(t)
		db := opener(t)
		app := open(t, db, time.Now)
		addLDAP(t, app)
		scan := func(first, second string) dirsync.Report {
			r, err := syncOf(app, db).Sync(t.Context(), "acme", "ldap", dirsync.Snapshot{People: []principals.Identity{
				{ID: "1", Username: first}, {ID: "2", Username: second},
			}}, dirsync.SyncOptions{Source: "LDAP"})
			is.NoErr(err)
			return r
		}
		scan("jo", "mia")
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", "root", password)
		is.NoErr(err)
		jo, mia := settle(t, app, "jo"), settle(t, app, "mia")
		jo.check(t, "jo")
		mia.check(t, "mia")
		is.Equal(scan("mia", "jo").Users, dirsync.Counts{Updated: 2})
		jo.check(t, "mia") // at once: what is kept for a moment of sessions is looked up again
		mia.check(t, "jo")
		scan("x", "y")
		jo.check(t, "x")
		mia.check(t, "y")
		_, err = app.Principals.CreateUser(actor.With(
			t.Context(), actor.Actor{Tenant: "acme", User: "root", Superuser: true},
		),
			principals.User{Username: "jo", Enabled: true}, password)
		is.NoErr(err) // the old names are free, and nothing is behind them
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"})
		_, err = app.Uploads.Get(ctx, jo.upload)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		page, err := app.Comments.Notifications(ctx, comments.NotificationFilter{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(page.Total, 0)
	})
}

// settle makes a row of every kind for a user.
func settle(t *testing.T, app *tenantcontent.App, name string) *world {
	t.Helper()
	is, w := is.New(t), &world{app: app}
	ctx := actor.With(t.Context(), actor.Actor{
		Tenant: "acme",
		User:   name,
		Teams:  map[string]actor.Role{"t": actor.Designer},
	})
	var err error
	_, w.token, err = app.Sessions.CreateToken(ctx, sessions.NewToken{})
	is.NoErr(err)
	w.report, err = app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales", Slug: &[]string{"sales"}[0]})
	is.NoErr(err)
	w.draft, err = app.Content.Create(ctx, content.Entity{
		Kind:      "report",
		Name:      "Sales",
		Slug:      &[]string{"sales"}[0],
		EditingID: &w.report.ID,
	})
	is.NoErr(err)
	w.comment, err = app.Comments.Create(ctx, "report", w.report.ID, "@jo and @mia")
	is.NoErr(err)
	upload, err := app.Uploads.Create(ctx, "a.txt", "", strings.NewReader("a"))
	is.NoErr(err)
	w.upload = upload.ID
	return w
}

// check looks at all that settle made.
func (w *world) check(t *testing.T, name string) {
	t.Helper()
	is := is.New(t)
	a, err := w.app.Sessions.Authenticate(t.Context(), w.token, netip.Addr{})
	is.NoErr(err)
	is.Equal(a.User, name)
	ctx := actor.With(t.Context(), a)
	for _, was := range []content.Entity{w.report, w.draft} {
		e, err := w.app.Content.Get(ctx, "report", was.ID)
		is.NoErr(err)
		is.Equal(e.OwnerID, name)
		is.Equal(e.UpdatedAt, was.UpdatedAt) // it is the same entity
	}
	e, err := w.app.Content.Get(ctx, "report", name+":sales")
	is.NoErr(err)
	is.Equal(e.ID, w.report.ID)
	c, err := w.app.Comments.Get(ctx, w.comment.ID)
	is.NoErr(err)
	is.Equal(c.UserID, name)
	is.True(c.May.Delete)
	is.Equal(len(c.Mentions), 2)
	is.True(slices.ContainsFunc(c.Mentions, func(m comments.Mention) bool { return m.Username == name }))
	_, err = w.app.Uploads.Get(ctx, w.upload)
	is.NoErr(err)
	feed, err := w.app.Comments.Feed(ctx, name, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(feed.Total, 1) // the comment of the other one
	activities, err := w.app.Comments.Activities(ctx, "report", w.report.ID, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(activities.Rows[0].UserID, name)
}

// TestRemovedDomainLeavesNothing but content, which somebody else has then.
func TestRemovedDomainLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		addLDAP(t, app)
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), "acme", "jo", password)
		is.NoErr(err)
		_, err = syncOf(app, db).Sync(t.Context(), "acme", "ldap", dirsync.Snapshot{
			People: []principals.Identity{{ID: "1", Username: "jo.ldap"}, {ID: "2", Username: "mia"}},
			Groups: []dirsync.Group{{ID: "g", Name: "Sales"}},
		}, dirsync.SyncOptions{Source: "LDAP"})
		is.NoErr(err)
		mia := settle(t, app, "mia")
		team, err := app.Principals.Team(as(t.Context(), "acme"), "sales")
		is.NoErr(err)
		comment, err := app.Comments.Create(as(t.Context(), "acme"), principals.KindTeam, team.ID, "hello")
		is.NoErr(err)
		is.NoErr(app.Principals.Unchecked().RemoveDomain(t.Context(), "acme", "ldap", "jo"))
		_, err = app.Sessions.Authenticate(t.Context(), mia.token, netip.Addr{})
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		_, err = app.Comments.Get(as(t.Context(), "acme"), comment.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.NoErr(app.Sweep(t.Context()))        // of the bytes of files
		is.Equal(rows(t, db, "acme"), [6]int{}) // no session, file or token
		e, err := app.Content.Get(as(t.Context(), "acme"), "report", mia.report.ID)
		is.NoErr(err)
		is.Equal(e.OwnerID, "jo")
		_, err = app.Content.Get(as(t.Context(), "acme"), "report", mia.draft.ID)
		is.Equal(errs.CodeOf(err), errs.NotFound) // drafts end with who began them
	})
}

// BenchmarkManyOfADomain renames 20,000 people who own 2,000 reports, as a company does that gives
// itself another name, and removes them: go test . -run - -bench ManyOfADomain -benchtime 1x
func BenchmarkManyOfADomain(b *testing.B) {
	for engine, opener := range map[string]dbtest.Opener{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		b.Run(engine, func(b *testing.B) {
			for b.Loop() {
				db := opener(b)
				app, err := tenantcontent.Open(tenantcontent.Config{
					DB: db, SecretKey: tenantcontent.NewSecretKey(), DomainDrivers: []domains.Driver{ldap.LDAP{}},
				})
				if err == nil {
					_, err = app.Principals.Unchecked().AddSuperuser(b.Context(), "acme", "root", password)
				}
				if err == nil {
					addLDAP(b, app)
				}
				scan := func(host string) {
					snap := dirsync.Snapshot{}
					for n := range 20_000 {
						snap.People = append(
							snap.People,
							principals.Identity{ID: fmt.Sprint(n), Username: fmt.Sprintf("user%d@%s", n, host)},
						)
					}
					if err == nil {
						_, err = syncOf(app, db).Sync(
							b.Context(), "acme", "ldap", snap, dirsync.SyncOptions{Source: "LDAP"},
						)
					}
				}
				scan("old.example")
				for n := range 2_000 {
					ctx := actor.With(b.Context(), actor.Actor{
						Tenant:    "acme",
						User:      fmt.Sprintf("user%d@old.example", n*10),
						Superuser: true,
					})
					if err == nil {
						_, err = app.Content.Create(ctx, content.Entity{Kind: entity.Kind("report"), Name: "Sales"})
					}
				}
				begin := time.Now()
				scan("new.example")
				b.ReportMetric(time.Since(begin).Seconds(), "rename-s")
				begin = time.Now()
				if err == nil {
					err = app.Principals.Unchecked().RemoveDomain(b.Context(), "acme", "ldap", "root")
				}
				b.ReportMetric(time.Since(begin).Seconds(), "remove-s")
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
