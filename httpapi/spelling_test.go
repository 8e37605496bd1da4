package httpapi_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestUsernamesHaveManySpellings: whatever names a user takes every spelling that is the same after
// NFKC and without case, and what is stored and answered is the user's own.
func TestUsernamesHaveManySpellings(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		for _, name := range []string{"DANA", "Ｄａｎａ"} {
			in := url.PathEscape(name)
			report := read[struct{ ID, NaturalID, OwnerID string }](
				t, w.must(t, "dana", "POST", "/api/reports", `{"name": "N", "slug": "n6"}`),
			)
			at := "/api/reports/" + in + ":n6"
			is.Equal(w.do(t, "mia", "GET", "/api/principals/"+in, "").header.Get("Location"), "/api/users/dana")
			is.Equal(read[struct{ ID string }](t, w.must(t, "mia", "GET", at, "")).ID, report.ID)
			is.Equal(read[struct{ OwnerID string }](t, w.must(t, "dana", "PUT", at, `{"name": "M"}`)).OwnerID, "dana")
			w.must(t, "mia", "POST", at+"/comments", `{"message": "One"}`)
			is.Equal(w.do(t, "mia", "GET", "/api/reports/"+in+"x:n6", "").status, 404)

			bundle := read[struct{ ID string }](t, w.must(t, "admin", "POST", "/api/bundles", `{"name": "B"}`)).ID
			entry := w.must(
				t, "admin", "POST", "/api/bundles/"+bundle+"/entries",
				`{"type": "user", "username": "`+name+`"}`,
			)
			is.Equal(read[struct{ Username string }](t, entry).Username, "dana")
			is.Equal(
				w.do(
					t, "admin", "POST", "/api/bundles/"+bundle+"/entries",
					`{"type": "user", "username": "dana"}`,
				).status,
				409,
			)
			w.must(
				t, "admin", "POST", "/api/bundles/"+bundle+"/entries",
				`{"type": "report", "reportId": "`+name+`:n6"}`,
			)
			w.must(t, "admin", "DELETE", "/api/bundles/"+bundle, "")

			is.Equal(w.do(t, "admin", "POST", "/api/principals/"+in+"/_reassign", `{"to": "dana"}`).status, 400)
			is.Equal(w.do(t, "admin", "POST", "/api/principals/mia/_reassign", `{"to": "`+name+`x"}`).status, 400)
			moved := w.must(t, "admin", "POST", "/api/principals/"+in+"/_reassign", `{"to": "Mia"}`)
			is.Equal(read[[]struct{ OwnerID string }](t, moved)[0].OwnerID, "mia")
			w.must(t, "admin", "POST", "/api/principals/MIA/_reassign", `{"to": "`+name+`"}`)

			w.must(t, "admin", "POST", "/api/users", `{"username": "leaver"}`)
			is.Equal(w.do(t, "admin", "DELETE", "/api/users/leaver?reassignTo=LEAVER", "").status, 400)
			w.must(t, "admin", "DELETE", "/api/users/LEAVER?reassignTo="+in, "")

			answer := w.must(
				t, "admin", "PUT", "/api/tenant",
				`{"settings": {"deployFrom": [{"tenant": "evil", "runAs": "`+name+`"}]}}`,
			)
			is.True(strings.Contains(string(answer.body), `"runAs":"dana"`))
			stored := read[struct{ Settings json.RawMessage }](t, w.must(t, "admin", "GET", "/api/tenant", "")).Settings
			is.True(strings.Contains(string(stored), `"runAs":"dana"`))

			w.must(t, "dana", "DELETE", at, "")
			is.Equal(w.do(t, "dana", "GET", "/api/reports/"+report.ID, "").status, 404)
		}
	})
}
