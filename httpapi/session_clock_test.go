package httpapi_test

import (
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestLoginAfterTheClockWentBack: a session works whenever it begins, and ends with the password
// that it began under.
func TestLoginAfterTheClockWentBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		login := func() string {
			t.Helper()
			a := w.do(
				t, "", "POST", "/api/login/local",
				`{"tenant": "acme", "username": "dana", "password": "`+password+`"}`,
			)
			is.Equal(a.status, 200)
			return "Authorization: Bearer " + read[struct{ Token string }](t, a).Token
		}
		set := func() {
			t.Helper()
			is.Equal(w.do(t, "admin", "PUT", "/api/users/dana/password", `{"password": "`+password+`"}`).status, 200)
		}
		works := func(token string) bool { return w.do(t, "", "GET", "/api/session", "", token).status == 200 }
		set()
		early := login()
		is.True(works(early))
		w.pass(-time.Hour)
		late := login()
		is.True(works(late))
		is.True(works(early))
		set() // at a time before those sessions began
		is.True(!works(early))
		is.True(!works(late))
		is.True(works(login()))
	})
}
