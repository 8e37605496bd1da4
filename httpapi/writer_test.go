package httpapi_test

import (
	"context"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLoginsAndReadsWhileAnotherWrites: neither waits for a long transaction on SQLite, and a
// request that writes is told when to try again.
func TestLoginsAndReadsWhileAnotherWrites(t *testing.T) {
	is := is.New(t)
	w := newWorld(t, dbtest.SQLite)
	token := ""
	is.NoErr(bunx.InTx(t.Context(), w.db, func(context.Context) error {
		a := w.do(
			t, "", "POST", "/api/login/local",
			`{"tenant": "acme", "username": "dana", "password": "`+password+`"}`,
		)
		is.Equal(a.status, 200)
		token = "Authorization: Bearer " + read[struct{ Token string }](t, a).Token
		for _, path := range []string{
			"/api/session", "/api/users", "/api/colors-list", "/api/notifications", "/api/apps",
		} {
			is.Equal(w.do(t, "", "GET", path, "", token).status, 200)
		}
		a = w.do(t, "", "POST", "/api/tokens", `{}`, token) // waits for some seconds
		is.Equal(a.status, 503)
		is.Equal(a.header.Get("Retry-After"), "5")
		is.Equal(a.message(t), "Another change of the database takes long, such as an import or a restore. Try again.")
		return nil
	}))
	is.Equal(w.do(t, "", "POST", "/api/tokens", `{}`, token).status, 201)
	is.Equal(w.do(t, "", "GET", "/api/session", "", token).status, 200)
	is.Equal(w.do(t, "", "POST", "/api/logout", "", token).status, 200)
	is.Equal(w.do(t, "", "GET", "/api/session", "", token).status, 401)
}
