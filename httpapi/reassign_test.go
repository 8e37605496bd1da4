package httpapi_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestReassign: the content of the eleven kinds moves, and no other; drafts of datasets, reports,
// queries and apps go with what hangs on them, other drafts move.
func TestReassign(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		kinds := map[string]string{
			"dataset": "datasets", "datasource": "datasources", "report": "reports",
			"query": "queries", "file": "files", "job": "jobs",
			"visual": "visuals", "assistant": "assistants", "library": "libraries",
			"template": "templates", "app": "apps", "tag": "tags",
			"letterhead": "letterheads", "code": "codes", "toolkit": "toolkits", "integration": "integrations",
		}
		w.must(t, "admin", "PUT", "/api/tenant", `{"settings": {"ai": {"enabled": true}}}`)
		w.must(t, "admin", "PUT", "/api/users/dana", `{"globalPermissions": {"ai": true}}`)
		made := map[string]string{}
		drafts := map[string]string{}
		for kind, plural := range kinds {
			for _, draft := range []bool{false, true} {
				if draft && (kind == "app" || kind == "assistant") {
					drafts[kind] = read[struct{ ID string }](
						t, w.must(t, "dana", "POST", "/api/"+plural+"/"+made[kind]+"/_edit", ""),
					).ID
					continue
				}
				body := `{"name": "A ` + kind + `"}`
				if kind == "app" {
					body = `{"type": "report", "name": "A app"}`
				}
				id := read[struct{ ID string }](t, w.must(t, "dana", "POST", "/api/"+plural, body)).ID
				if !draft {
					made[kind] = id
					continue
				}
				drafts[kind] = id
				if kind == "report" {
					w.must(t, "mia", "POST", "/api/reports/"+id+"/comments", `{"message": "On a draft"}`)
				}
				is.NoErr(bunx.Write(t.Context(), w.db, "acme", func(ctx context.Context, c bunx.Conn) error {
					_, err := c.Exec(
						ctx, `UPDATE tc_entities SET editing_id = $1 WHERE tenant_id = 'acme' AND id = $2`,
						made[kind], id,
					)
					return err
				}))
			}
		}
		owner := func(kind, id string) string {
			a := w.do(t, "admin", "GET", "/api/"+kinds[kind]+"/"+id, "")
			if a.status == 404 {
				return "gone"
			}
			return read[struct{ OwnerID string }](t, a).OwnerID
		}
		is.Equal(w.do(t, "mia", "POST", "/api/principals/dana/_reassign", `{"to": "mia"}`).status, 401)
		type row struct{ Type, ID, Name, OwnerID string }
		a := w.must(t, "dana", "POST", "/api/principals/dana/_reassign", `{"to": "`+strings.ToUpper(teamID)+`"}`)
		rows := read[[]row](t, a)
		is.Equal(len(rows), 11+7) // each of the kinds, and the drafts of seven
		for kind := range kinds {
			moves := !slices.Contains([]string{"tag", "letterhead", "code", "toolkit", "integration"}, kind)
			want, draft := "dana", "dana"
			if moves {
				want, draft = teamID, teamID
				is.True(slices.Contains(rows, row{kind, made[kind], "A " + kind, teamID}))
			}
			if kind == "dataset" || kind == "report" || kind == "query" || kind == "app" {
				draft = "gone"
			}
			is.Equal(owner(kind, made[kind]), want)
			is.Equal(owner(kind, drafts[kind]), draft)
		}
		var comments int
		ctx, c := bunx.For(t.Context(), w.db, "acme")
		is.NoErr(c.One(
			ctx, "Comment", `SELECT count(*) FROM tc_comments WHERE tenant_id = $1`, []any{"acme"}, &comments,
		))
		is.Equal(comments, 0) // the draft's went with it
		is.Equal(w.must(t, "dana", "POST", "/api/principals/dana/_reassign", `{"to": "mia"}`).body, "[]")
		is.Equal(w.do(t, "admin", "POST", "/api/principals/dana/_reassign", `{}`).message(t), "to is required")
	})
}
