package bunstore_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

func testSearch(t *testing.T, s principals.Store) {
	t.Run("users", func(t *testing.T) {
		pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
			u := user(fmt.Sprint("u", n))
			u.DisplayName, u.FamilyName = &name, &text
			addUsers(t, s, "acme", u)
		}, s.Users, func(u principals.User) string { return *u.DisplayName })
	})
	t.Run("teams", func(t *testing.T) {
		pagingtest.TestSearch(t, func(t *testing.T, n int, name, text string) {
			tm := team(n, name)
			tm.Description = &text
			is.New(t).NoErr(s.InsertTeam(t.Context(), "acme", tm))
		}, s.Teams, func(t principals.Team) string { return t.Name })
	})
}
