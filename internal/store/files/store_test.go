package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
	never   = monday.AddDate(1000, 0, 0) // a time at which every file has expired
)

// testStore runs all checks of an empty Store whose database has the tenants acme and evil, each
// with the principals jo, joe, mia, mo, root and 日本 🎨. It leaves the Store empty.
func testStore(t *testing.T, s files.Store) {
	for name, check := range map[string]func(*testing.T, files.Store){
		"RoundTrip":            testRoundTrip,
		"TakenID":              testTaken,
		"NoUser":               testNoUser,
		"Isolation":            testIsolation,
		"DeleteIsIdempotent":   testDelete,
		"Expired":              testExpired,
		"Pages":                testPage,
		"Forget":               testForget,
		"CountOfUsers":         testCountOfUsers,
		"UsedBytes":            testUsedBytes,
		"RenameUsers":          testRenameUsers,
		"FailedTxWritesNone":   testFailedTx,
		"CanceledWritesNoRows": testCanceled,
	} {
		t.Run(name, func(t *testing.T) {
			check(t, s)
			for _, tenant := range []string{"acme", "evil"} {
				ids, err := s.Expired(t.Context(), tenant, never, 1000)
				is.New(t).NoErr(err)
				for _, id := range ids {
					is.New(t).NoErr(s.Delete(t.Context(), tenant, id))
				}
			}
		})
	}
}

func file(id string) files.File {
	return files.File{
		ID: id, Filename: "'; DROP TABLE tc_uploads; --?$1.json", ContentType: "application/json", Size: 1<<40 + 1,
		Chunks: 1<<20 + 1, Username: "jo", CreatedAt: monday, ExpiresAt: tuesday,
	}
}

func insert(t *testing.T, s files.Store, tenant string, all ...files.File) {
	t.Helper()
	for _, f := range all {
		is.New(t).NoErr(s.Insert(t.Context(), tenant, f))
	}
}

func testRoundTrip(t *testing.T, s files.Store) {
	is := is.New(t)
	fieldtest.Full(t, file("a"))
	empty := files.File{
		ID:        "b",
		Filename:  strings.Repeat("ü", 255),
		Username:  "日本 🎨",
		CreatedAt: monday,
		ExpiresAt: monday,
	}
	for _, want := range []files.File{file("a"), empty} {
		insert(t, s, "acme", want)
		got, err := s.Get(t.Context(), "acme", want.ID)
		is.NoErr(err)
		is.Equal(got, want)
	}
}

func testTaken(t *testing.T, s files.Store) {
	is := is.New(t)
	insert(t, s, "acme", file("a"))
	err := s.Insert(t.Context(), "acme", files.File{ID: "a", Username: "jo", CreatedAt: monday, ExpiresAt: monday})
	is.Equal(errs.CodeOf(err), errs.Conflict)
	got, err := s.Get(t.Context(), "acme", "a")
	is.NoErr(err)
	is.Equal(got, file("a"))
}

func testNoUser(t *testing.T, s files.Store) {
	is := is.New(t)
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", of("nobody", "a"))), errs.Forbidden)
	_, err := s.Get(t.Context(), "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testIsolation(t *testing.T, s files.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", file("a"))
	_, err := s.Get(ctx, "evil", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound) // another tenant sees nothing
	ids, err := s.Expired(ctx, "evil", tuesday, 10)
	is.NoErr(err)
	is.Equal(len(ids), 0)
	insert(t, s, "evil", file("a")) // nor which ids are in use
	is.NoErr(s.Delete(ctx, "evil", "a"))
	is.NoErr(s.Delete(ctx, "evil", "a"))
	got, err := s.Get(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(got, file("a")) // another tenant cannot change it
}

func testDelete(t *testing.T, s files.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", file("a"), file("b"))
	is.NoErr(s.Delete(ctx, "acme", "a"))
	is.NoErr(s.Delete(ctx, "acme", "a"))
	_, err := s.Get(ctx, "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Get(ctx, "acme", "b")
	is.NoErr(err)
}

func testExpired(t *testing.T, s files.Store) {
	is, ctx := is.New(t), t.Context()
	for id, at := range map[string]time.Duration{"a": 2, "b": 1, "c": 1, "d": 3} {
		f := file(id)
		f.ExpiresAt = monday.Add(at * time.Microsecond)
		insert(t, s, "acme", f)
	}
	for _, c := range []struct {
		at    time.Duration
		limit int
		want  string
	}{{0, 10, ""}, {1, 10, "b c"}, {2, 10, "b c a"}, {9, 10, "b c a d"}, {9, 2, "b c"}} {
		ids, err := s.Expired(ctx, "acme", monday.Add(c.at*time.Microsecond), c.limit)
		is.NoErr(err)
		is.Equal(strings.Join(ids, " "), c.want)
	}
}

// of makes a file of a user.
func of(username, id string) files.File {
	f := file(id)
	f.Username = username
	return f
}

func ofUsers(t *testing.T, s files.Store, tenant string, limit int, usernames ...string) string {
	t.Helper()
	page, err := s.Page(t.Context(), tenant, usernames, monday, paging.Query{Limit: limit})
	is.New(t).NoErr(err)
	var ids []string
	for _, f := range page.Rows {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func testForget(t *testing.T, s files.Store) {
	is := is.New(t)
	insert(t, s, "acme", of("jo", "a"), of("mia", "b"), of("jo", "c"), of("joe", "d"))
	insert(t, s, "evil", of("jo", "e"))
	for account, steps := range map[string]int{"jo": 3, "mia": 2, "none": 1} {
		for n := 1; n <= steps; n++ {
			more, err := s.Forget(t.Context(), "acme", account, monday, 1)
			is.NoErr(err)
			is.Equal(more, n < steps)
		}
	}
	is.Equal(ofUsers(t, s, "acme", 10, "jo", "mia"), "")
	is.Equal(ofUsers(t, s, "acme", 10, "joe"), "d")
	is.Equal(ofUsers(t, s, "evil", 10, "jo", "mia"), "e") // another tenant sees only its own
	expired, err := s.Expired(t.Context(), "acme", monday, 10)
	is.NoErr(err)
	is.Equal(strings.Join(expired, " "), "a b c")
	f, err := s.Get(t.Context(), "acme", "a")
	is.NoErr(err)
	is.Equal(f.Username, "")
}

func testCountOfUsers(t *testing.T, s files.Store) {
	is := is.New(t)
	ended := of("jo", "z")
	ended.ExpiresAt = monday
	insert(t, s, "acme", of("jo", "a"), of("mia", "b"), of("jo", "c"), of("joe", "d"), ended)
	insert(t, s, "evil", of("jo", "e"))
	var many []string
	for n := range 600 { // more than fit one statement
		many = append(many, fmt.Sprint("user", n))
	}
	for _, c := range []struct {
		tenant string
		users  []string
		want   int
	}{
		{"acme", []string{"jo"}, 2},
		{"acme", []string{"jo", "mia", "none"}, 3}, {"acme", append(many, "joe", "mia"), 2},
		{"acme", []string{"none"}, 0}, {"acme", nil, 0}, {"evil", []string{"jo", "mia"}, 1},
	} {
		n, err := s.CountOfUsers(t.Context(), c.tenant, c.users, monday)
		is.NoErr(err)
		is.Equal(n, c.want)
	}
	n, err := s.CountOfUsers(t.Context(), "acme", []string{"jo", "mia", "joe"}, tuesday)
	is.NoErr(err)
	is.Equal(n, 0) // all have expired
}

func testUsedBytes(t *testing.T, s files.Store) {
	is := is.New(t)
	insert(t, s, "acme", of("jo", "a"), of("mia", "b"), of("jo", "c"))
	insert(t, s, "evil", of("mo", "d"))
	for user, want := range map[string]int64{"jo": 2 * (1<<40 + 1), "mia": 1<<40 + 1, "mo": 0, "none": 0} {
		n, err := s.UsedBytes(t.Context(), "acme", user)
		is.NoErr(err)
		is.Equal(n, want)
	}
}

func testRenameUsers(t *testing.T, s files.Store) {
	is := is.New(t)
	insert(t, s, "acme", of("jo", "a"), of("mia", "b"), of("jo", "c"), of("mo", "d"))
	insert(t, s, "evil", of("jo", "e"))
	is.NoErr(s.RenameUsers(t.Context(), "acme", map[string]string{"jo": "Joe", "mia": "maria", "none": "nobody"}))
	is.NoErr(s.RenameUsers(t.Context(), "acme", nil))
	is.Equal(ofUsers(t, s, "acme", 10, "Joe"), "a c")
	is.Equal(ofUsers(t, s, "acme", 10, "maria"), "b")
	is.Equal(ofUsers(t, s, "acme", 10, "mo"), "d")
	is.Equal(ofUsers(t, s, "acme", 10, "jo", "mia"), "")
	is.Equal(ofUsers(t, s, "evil", 10, "jo"), "e") // files of another tenant are kept
}

func testFailedTx(t *testing.T, s files.Store) {
	is, ctx := is.New(t), t.Context()
	insert(t, s, "acme", file("old"))
	fault := errors.New("fault")
	err := s.InTx(ctx, func(ctx context.Context) error {
		is.NoErr(errors.Join(s.Insert(ctx, "acme", file("new")), s.Delete(ctx, "acme", "old")))
		_, err := s.Get(ctx, "acme", "new")
		is.NoErr(err) // the transaction sees its own writes
		return fault
	})
	is.True(errors.Is(err, fault))
	_, err = s.Get(ctx, "acme", "new")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Get(ctx, "acme", "old")
	is.NoErr(err)
}

func testCanceled(t *testing.T, s files.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Insert(ctx, "acme", file("a")), context.Canceled))
	_, err := s.Get(t.Context(), "acme", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
