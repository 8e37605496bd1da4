package tenantcontent_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/examples/bundledriver/kitchen"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// TestHostHooks: a host's kind is told of what its rows belong to, and what belongs to its rows
// goes with them.
func TestHostHooks(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db, ctx := is.New(t), opener(t), as(t.Context(), "acme")
		_, err := db.ExecContext(ctx, kitchen.Table)
		is.NoErr(err)
		var told []string
		recipes := kitchen.Recipes{DB: db}
		kind := recipes.Type()
		kind.Hooks = entity.Hooks{
			Renamed: func(_ context.Context, tenant string, names map[string]string) error {
				told = append(told, fmt.Sprint("renamed ", tenant, names))
				return nil
			},
			Deleted: func(_ context.Context, tenant string, gone ...entity.Key) error {
				told = append(told, fmt.Sprint("deleted ", tenant, gone))
				return nil
			},
			Dependents: func(
				_ context.Context, _ string, kind entity.Kind, ids []string, _ time.Time,
			) ([]entity.Dependent, error) {
				if kind != kitchen.Kind {
					return nil, nil
				}
				return []entity.Dependent{{Count: entity.Count{N: 2 * len(ids), Of: "photo"}}}, nil
			},
			Sweep: func(_ context.Context, tenant string) (int, error) {
				told = append(told, "sweep "+tenant)
				return 0, nil
			},
		}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), DomainDrivers: []domains.Driver{ldap.LDAP{}},
			Entities: []entity.Type{kind}, BundleDrivers: []bundles.Driver{recipes},
		})
		is.NoErr(err)
		_, err = app.Principals.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		put := func(id string) {
			is.NoErr(recipes.Insert(ctx, kitchen.Recipe{TenantID: "acme", ID: id, Title: id, Steps: "Cook."}))
			_, err := app.Comments.Create(ctx, entity.Key{Kind: kitchen.Kind, ID: id}, "More salt?")
			is.NoErr(err)
		}
		comments := func(id string) int {
			page, err := app.Comments.Activities(ctx, entity.Key{Kind: kitchen.Kind, ID: id}, paging.Query{Limit: 10})
			is.NoErr(err)
			return page.Total
		}
		put("soup")
		var archive bytes.Buffer
		e, err := app.Bundles.ExportManifest(ctx, bundles.Manifest{Entries: []bundles.Entry{{
			Type:     "recipe",
			EntityID: "soup",
		}}})
		is.NoErr(err)
		is.NoErr(e.Write(ctx, &archive))
		put("stew")
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})

		r, err := app.Bundles.Restore(ctx, &archive, bundles.ImportOptions{})
		is.NoErr(err)
		is.Equal(r.Warnings, []string{
			"Lost with the content that is removed: 1 comment thread, 2 photos. The archive of what is replaced " +
				"does not hold them.",
		})
		put("stew") // is another one: nobody said anything of it before
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 1})
		is.NoErr(app.Deleted(ctx, "acme", entity.Key{Kind: kitchen.Kind, ID: "stew"}))
		is.Equal([]int{comments("soup"), comments("stew")}, []int{1, 0})

		addLDAP(t, app)
		for _, name := range []string{"old", "new"} {
			_, err := app.Principals.Unchecked().Admit(
				ctx, "acme", principals.Source{
					Domain: "ldap", Driver: "LDAP",
				}, principals.Identity{ID: "1", Username: name},
			)
			is.NoErr(err)
		}
		is.NoErr(app.Principals.DeleteUser(ctx, "new", ""))
		is.NoErr(app.Sweep(ctx))
		is.Equal(told, []string{
			"deleted acme[{recipe stew}]", "deleted acme[{recipe stew}]", "renamed acmemap[old:new]",
			"deleted acme[{user new}]", "sweep acme", "sweep evil",
		})
	})
}

// TestReassignHostKinds: what a principal has of a host's kind moves with its other content, in one
// transaction.
func TestReassignHostKinds(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		owners := map[string]string{"acme/soup": "jo", "acme/stew": "mia", "evil/soup": "jo"}
		var fault error
		dish := entity.Type{Kind: "dish",
			Reassign: func(_ context.Context, tenant, from, to string) (moved []entity.Ref, err error) {
				for _, id := range []string{"soup", "stew"} {
					if owners[tenant+"/"+id] == from && fault == nil {
						owners[tenant+"/"+id] = to
						moved = append(moved, entity.Ref{Kind: "dish", ID: id, Name: id, OwnerID: to})
					}
				}
				return moved, fault
			}}
		app, err := tenantcontent.Open(tenantcontent.Config{
			DB: db, SecretKey: tenantcontent.NewSecretKey(), Entities: []entity.Type{dish, {Kind: "plate"}},
		})
		is.NoErr(err)
		for _, name := range []string{"jo", "mia"} {
			_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
				Tenant: "acme", Username: name, Password: password,
			})
			is.NoErr(err)
		}
		ctx := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo", Superuser: true})
		report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
		is.NoErr(err)

		fault = errors.New("the kitchen is closed")
		_, err = app.Principals.Reassign(ctx, "jo", "mia")
		is.True(errors.Is(err, fault))
		same, err := app.Content.Get(ctx, "report", report.ID)
		is.NoErr(err)
		is.Equal(same.OwnerID, "jo") // nothing has moved

		fault = nil
		moved, err := app.Principals.Reassign(ctx, "jo", "mia")
		is.NoErr(err)
		is.Equal(moved, []entity.Ref{
			{Kind: "report", ID: report.ID, Name: "Sales", OwnerID: "mia"},
			{Kind: "dish", ID: "soup", Name: "soup", OwnerID: "mia"},
		})
		is.Equal(owners, map[string]string{"acme/soup": "mia", "acme/stew": "mia", "evil/soup": "jo"})
	})
}

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
	"tc_changes":             "kind entity_id action before after", // an id of a user is renamed
	"tc_new_changes":         "id kind entity_id action before after",
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
				t.Context(), "acme", principals.Source{
					Domain: "ldap", Driver: "LDAP",
				}, principals.Identity{ID: "1", Username: name},
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
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "root", Password: password,
		})
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
		is.NoErr(err) // the old names are free, and no row has them
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
	_, w.token, err = app.Sessions.CreateToken(ctx, ownTokens, sessions.NewToken{})
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
	w.comment, err = app.Comments.Create(ctx, entity.Key{Kind: "report", ID: w.report.ID}, "@jo and @mia")
	is.NoErr(err)
	upload, err := app.Uploads.Create(ctx, files.Draft{Filename: "a.txt"}, strings.NewReader("a"))
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
	activities, err := w.app.Comments.Activities(ctx, entity.Key{
		Kind: "report", ID: w.report.ID,
	}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(activities.Rows[0].UserID, name)
}

// TestRemovedDomainLeavesNothing but content, which somebody else has then.
func TestRemovedDomainLeavesNothing(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		addLDAP(t, app)
		_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		_, err = syncOf(app, db).Sync(t.Context(), "acme", "ldap", dirsync.Snapshot{
			People: []principals.Identity{{ID: "1", Username: "jo.ldap"}, {ID: "2", Username: "mia"}},
			Groups: []dirsync.Group{{ID: "g", Name: "Sales"}},
		}, dirsync.SyncOptions{Source: "LDAP"})
		is.NoErr(err)
		mia := settle(t, app, "mia")
		team, err := app.Principals.Team(as(t.Context(), "acme"), "sales")
		is.NoErr(err)
		comment, err := app.Comments.Create(as(t.Context(), "acme"), entity.Key{
			Kind: principals.KindTeam, ID: team.ID,
		}, "hello")
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
		is.Equal(errs.CodeOf(err), errs.NotFound) // drafts end with the users that began them
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
					_, err = app.Principals.Unchecked().AddSuperuser(b.Context(), principals.Credentials{
						Tenant: "acme", Username: "root", Password: password,
					})
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

// TestDeletedUserLeavesNoFiles: the files of a deleted user have no owner at once, also when a user
// of the same name is made, and are swept.
func TestDeletedUserLeavesNoFiles(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, opener dbtest.Opener) {
		is, db := is.New(t), opener(t)
		app := open(t, db, time.Now)
		for _, tenant := range []string{"acme", "evil"} {
			for _, user := range []string{"jo", "other"} {
				_, err := app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
					Tenant: tenant, Username: user, Password: password,
				})
				is.NoErr(err)
			}
			fill(t, app, tenant)
		}
		jo := as(t.Context(), "acme")
		before, err := app.Downloads.List(jo, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(before.Total, 1)
		is.NoErr(app.Principals.DeleteUser(jo, "jo", ""))
		_, err = app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		page, err := app.Downloads.List(jo, paging.Query{Limit: 10})
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
		_, err := app.Principals.Unchecked().AddSuperuser(ctx, principals.Credentials{
			Tenant: "acme", Username: "jo", Password: password,
		})
		is.NoErr(err)
		report, err := app.Content.Create(ctx, content.Entity{Kind: "report", Name: "Sales"})
		is.NoErr(err)
		team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Sales"})
		is.NoErr(err)
		var made []string
		for _, of := range []entity.Key{{Kind: "report", ID: report.ID}, {Kind: "team", ID: team.ID}} {
			c, err := app.Comments.Create(ctx, entity.Key{Kind: of.Kind, ID: of.ID}, "hello")
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
// its own, with the content reassigned or by a restore, but a later user of the name is not their
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
					_, err := app.Principals.Unchecked().AddSuperuser(root, principals.Credentials{
						Tenant: tenant, Username: "jo", Password: password,
					})
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
					c, err := app.Comments.Create(mia(root, tenant), entity.Key{Kind: "team", ID: team.ID}, "hello")
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

// host is a program with an App and a table of its own.
type host struct {
	*is.I
	app *tenantcontent.App
	db  *bun.DB
	ctx context.Context // of the superuser of the tenant acme
}

func eachHost(t *testing.T, test func(t *testing.T, h host)) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		h := host{I: is.New(t), db: open(t)}
		var err error
		h.app, err = tenantcontent.Open(tenantcontent.Config{DB: h.db, SecretKey: tenantcontent.NewSecretKey()})
		h.NoErr(err)
		_, err = h.db.ExecContext(t.Context(), `CREATE TABLE host_orders (id text PRIMARY KEY)`)
		h.NoErr(err)
		t.Cleanup(func() { _, _ = h.db.Exec(`DROP TABLE host_orders`) })
		for _, tenant := range []string{"ours", "theirs"} {
			_, err = h.app.AddTenant(
				t.Context(), tenants.Tenant{ID: tenant, Settings: tenants.Settings{AI: true}}, password,
			)
			h.NoErr(err)
		}
		h.ctx = h.of(t.Context(), "ours")
		test(t, h)
	})
}

// of returns a context of the superuser of a tenant.
func (h host) of(ctx context.Context, tenant string) context.Context {
	return actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true, AI: true})
}

// orders returns how many rows the host's table has.
func (h host) orders() (n int) {
	h.NoErr(h.db.QueryRowContext(context.Background(), `SELECT count(*) FROM host_orders`).Scan(&n))
	return n
}

// stored returns how many colors, users and comments a tenant has.
func (h host) stored(ctx context.Context) [3]int {
	colors, err := h.app.Colors.List(ctx, paging.Query{})
	h.NoErr(err)
	users, err := h.app.Principals.Users(ctx, paging.Query{})
	h.NoErr(err)
	reports, err := h.app.Content.List(ctx, "report", paging.Query{})
	h.NoErr(err)
	return [3]int{colors.Total, users.Total, reports.Total}
}

// TestTransactionOfHost: what services of both tenants do in a transaction of the host, and what
// the host does itself, is there together or not at all.
func TestTransactionOfHost(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		for _, commit := range []bool{false, true} {
			before, beforeTheirs := h.stored(h.ctx), h.stored(h.of(t.Context(), "theirs"))
			tx, err := h.db.BeginTx(h.ctx, nil)
			h.NoErr(err)
			within, err := tenantcontent.WithTx(h.ctx, tx)
			h.NoErr(err)
			_, err = tx.ExecContext(within, `INSERT INTO host_orders (id) VALUES ('1')`)
			h.NoErr(err)
			_, err = h.app.Colors.Put(within, "red", "#ff0000")
			h.NoErr(err)
			_, err = h.app.Principals.CreateUser(within, principals.User{Username: "jo"}, password)
			h.NoErr(err)
			report, err := h.app.Content.Create(within, content.Entity{Kind: "report", Name: "Sales"})
			h.NoErr(err)
			_, err = h.app.Comments.Create(within, entity.Key{Kind: "report", ID: report.ID}, "Look.")
			h.NoErr(err)
			_, err = h.app.Colors.Put(h.of(within, "theirs"), "green", "#00ff00")
			h.NoErr(err)
			_, err = h.app.Colors.Put(within, "blue", "no color")
			h.Equal(errs.CodeOf(err), errs.Invalid)
			_, err = h.app.Principals.CreateUser(within, principals.User{Username: "jo"}, password)
			h.Equal(errs.CodeOf(err), errs.Conflict) // and the transaction goes on
			want := [3]int{before[0] + 1, before[1] + 1, before[2] + 1}
			h.Equal(h.stored(within), want)
			if commit {
				h.NoErr(tx.Commit())
				h.NoErr(tenantcontent.Committed(within))
				h.Equal(h.stored(h.ctx), want)
				h.Equal(h.stored(h.of(t.Context(), "theirs"))[0], beforeTheirs[0]+1)
				h.Equal(h.orders(), 1)
				page, err := h.app.Comments.List(h.ctx, entity.Key{Kind: "report", ID: report.ID}, paging.Query{})
				h.NoErr(err)
				h.Equal(page.Total, 1)
				continue
			}
			h.NoErr(tx.Rollback())
			h.Equal(h.stored(h.ctx), before)
			h.Equal(h.stored(h.of(t.Context(), "theirs")), beforeTheirs)
			h.Equal(h.orders(), 0)
		}
	})
}

// TestTransactionSeesItsChanges: what is cached outside of a transaction is neither what is read in
// it nor read from it.
func TestTransactionSeesItsChanges(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		allowed := func(ctx context.Context) bool {
			_, err := h.app.AIInstructions.Allowed(ctx)
			return err == nil
		}
		h.True(allowed(h.ctx)) // cached
		tx, err := h.db.BeginTx(h.ctx, nil)
		h.NoErr(err)
		within, err := tenantcontent.WithTx(h.ctx, tx)
		h.NoErr(err)
		_, err = h.app.Tenants.Update(within, func(s *tenants.Tenant) error {
			s.Settings.AI = false
			return nil
		})
		h.NoErr(err)
		h.True(!allowed(within))
		h.NoErr(tx.Rollback())
		h.True(allowed(h.ctx))
		h.NoErr(h.app.InTx(h.ctx, func(ctx context.Context) error {
			h.True(allowed(ctx))
			_, err := h.app.Tenants.Update(ctx, func(s *tenants.Tenant) error {
				s.Settings.AI = false
				return nil
			})
			h.True(!allowed(ctx))
			return err
		}))
		h.True(!allowed(h.ctx))
	})
}

// TestOutsideTransactions: dry runs and requests are not part of a transaction of the host.
func TestOutsideTransactions(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		h := host{I: is.New(t), db: open(t)}
		var err error
		h.app, err = tenantcontent.Open(tenantcontent.Config{DB: h.db, SecretKey: tenantcontent.NewSecretKey()})
		h.NoErr(err)
		_, err = h.app.AddTenant(t.Context(), tenants.Tenant{ID: "ours"}, password)
		h.NoErr(err)
		ctx := h.of(t.Context(), "ours")
		tx, err := h.db.BeginTx(ctx, nil)
		h.NoErr(err)
		within, err := tenantcontent.WithTx(ctx, tx)
		h.NoErr(err)
		answer := httptest.NewRecorder()
		h.app.ServeHTTP(answer, httptest.NewRequestWithContext(within, "GET", "/api/colors-list", nil))
		h.Equal(answer.Code, 401)
		h.NoErr(tx.Rollback())
		answer = httptest.NewRecorder()
		// the transaction has ended
		h.app.ServeHTTP(answer, httptest.NewRequestWithContext(within, "GET", "/readyz", nil))
		h.Equal(answer.Code, 200)
	})
}

// TestMigrateInTransaction makes the tables in a transaction of the host.
func TestMigrateInTransaction(t *testing.T) {
	for engine, url := range map[string]string{
		"sqlite":   "sqlite:" + filepath.Join(t.TempDir(), "empty.db"),
		"postgres": dbtest.PostgresURL(t),
	} {
		t.Run(engine, func(t *testing.T) {
			is := is.New(t)
			db, err := engines.Open(url)
			is.NoErr(err)
			t.Cleanup(func() { _ = db.Close() })
			for _, commit := range []bool{false, true} {
				tx, err := db.BeginTx(t.Context(), nil)
				is.NoErr(err)
				within, err := tenantcontent.WithTx(t.Context(), tx)
				is.NoErr(err)
				is.NoErr(tenantcontent.Migrate(within, db))
				if commit {
					is.NoErr(tx.Commit())
					is.NoErr(tenantcontent.Committed(within))
				} else {
					is.NoErr(tx.Rollback())
				}
				_, err = db.ExecContext(t.Context(), `SELECT 1 FROM tc_colors`)
				is.Equal(err == nil, commit)
			}
		})
	}
}
