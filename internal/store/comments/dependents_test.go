package bunstore_test

import (
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
)

// ids returns some texts after others that fill one statement.
func ids(some ...string) (all []string) {
	for n := range 1000 {
		all = append(all, fmt.Sprintf("none-%d", n))
	}
	return append(all, some...)
}

// testThreadsOfEntities: Threads counts the comments without a parent, of one kind and one tenant.
func testThreadsOfEntities(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	other, namesake, theirs := comment("o", ""), comment("n", ""), comment("t", "")
	other.Entity.ID, namesake.Entity.Kind, theirs.Tenant = "costs", "dataset", "evil"
	insert(t, s, "acme", comment("1", ""), comment("2", ""), comment("1a", "1"), comment("1aa", "1a"), other, namesake)
	insert(t, s, "evil", theirs)
	for _, c := range []struct {
		tenant string
		kind   entity.Kind
		ids    []string
		want   map[string]int
	}{
		{"acme", "report", ids("sales", "costs"), map[string]int{"sales": 2, "costs": 1}},
		{"acme", "report", []string{"costs"}, map[string]int{"costs": 1}},
		{"acme", "dataset", ids("sales", "costs"), map[string]int{"sales": 1}},
		{"evil", "report", ids("sales", "costs"), map[string]int{"sales": 1}},
		{"evil", "dataset", ids("sales", "costs"), map[string]int{}},
		{"acme", "report", nil, map[string]int{}},
	} {
		got, err := s.Threads(ctx, c.tenant, c.kind, c.ids)
		is.NoErr(err)
		is.Equal(got, c.want)
	}
}

// testOfUsers: OfUsers counts the notifications of some users of one tenant, and the comments of
// which they are still the authors.
func testOfUsers(t *testing.T, s Store) {
	is, ctx := is.New(t), t.Context()
	asked, theirs := comment("2", "1"), comment("1", "")
	asked.UserID, theirs.Tenant = "mia", "evil"
	insert(t, s, "acme", comment("1", ""), asked, comment("3", "2"))
	insert(t, s, "evil", theirs)
	free := notification("c", "", "mia")
	free.CommentID, free.Entity = nil, entity.Key{}
	is.NoErr(s.Enqueue(
		ctx, "acme", []comments.Notification{notification("a", "1", "mia"), notification("b", "2", "jo"), free},
	))
	own := notification("a", "1", "jo")
	own.Tenant = "evil"
	is.NoErr(s.Enqueue(ctx, "evil", []comments.Notification{own}))
	count := func(tenant string, notifications, written int, users ...string) {
		t.Helper()
		n, w, err := s.OfUsers(ctx, tenant, users)
		is.NoErr(err)
		is.Equal([]int{n, w}, []int{notifications, written})
	}
	count("acme", 3, 3, append(ids("jo"), "mia")...)
	count("acme", 1, 2, "jo")
	count("acme", 2, 1, ids("mia")...)
	count("acme", 0, 0, "joan")
	count("acme", 0, 0)
	count("evil", 1, 1, ids("jo", "mia")...)
	count("evil", 0, 0, "mia")

	closeAccounts(t, s, "acme", "jo") // the later user with the name wrote none of them
	count("acme", 0, 0, "jo")
	count("acme", 2, 1, "mia")
	count("evil", 1, 1, "jo")
}
