package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestCommentListStatements: a page of 100 comments with their embedded authors takes two
// statements, one for the rows with their total and one for all authors, however many they are.
// Beside them stands at most the look-up of what it is about.
func TestCommentListStatements(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		var count *dbtest.Counter
		w := newWorld(t, func(t testing.TB) (db *bun.DB) {
			db, count = dbtest.Counted(t, open)
			return db
		})
		root := read[struct{ ID string }](
			t, w.must(t, "mia", "POST", "/api/teams/design/comments", `{"message": "root"}`),
		).ID
		names := []string{"mia", "dana", "nora", "tim", "admin"}
		for i := range 110 {
			for _, target := range []string{"/api/teams/design/comments", "/api/comments/" + root + "/replies"} {
				w.must(t, names[i%len(names)], "POST", target, fmt.Sprintf(`{"message": "%d"}`, i))
			}
		}
		for target, lookups := range map[string]map[string]int{
			// nora may edit what is hers: who owns the team?
			"/api/comments/" + root + "/replies": {"admin": 0, "nora": 1},
			"/api/teams/design/comments":         {"admin": 1, "nora": 1}, // the team, with its owner
		} {
			for user, lookups := range lookups {
				w.must(t, user, "GET", "/api/session", "") // the session is known now
				count.Take()
				p := read[page](t, w.must(t, user, "GET", target, ""))
				statements := count.Take()
				is.Equal(p.Count, 100)
				for _, row := range p.Embedded["inf:comment"] {
					author := row["_embedded"].(map[string]any)["inf:user"].(map[string]any)
					is.Equal(author["username"], row["userId"])
					is.True(author["globalPermissions"] != nil) // the full one
				}
				if len(statements) != 2+lookups {
					t.Errorf("%s as %s:\n%s", target, user, strings.Join(statements, "\n"))
				}
			}
		}
	})
}

// TestMessageSize: 64 KiB are a message, one byte more is 400.
func TestMessageSize(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	for n, status := range map[int]int{64 << 10: 201, 64<<10 + 1: 400} {
		a := w.do(t, "mia", "POST", "/api/teams/design/comments", `{"message": "`+strings.Repeat("x", n)+`"}`)
		is.Equal(a.status, status)
	}
}
