package bunstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pagingtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// paged reads a list of files, two at a time, and returns their ids.
func paged(t *testing.T, s files.Store, tenant, sort string, usernames ...string) string {
	t.Helper()
	is, ids, total := is.New(t), "", 0
	q := paging.Query{Limit: 2, Sort: sort}
	for {
		p, err := s.Page(t.Context(), tenant, usernames, monday, q)
		is.NoErr(err)
		for _, f := range p.Rows {
			ids, total = ids+f.ID, total+1
		}
		is.Equal(p.More, total < p.Total)
		if !p.More {
			is.Equal(total, p.Total)
			return ids
		}
		q.Start, q.After = total, p.Last
	}
}

func testPage(t *testing.T, s files.Store) {
	is := is.New(t)
	for i, id := range []string{"c", "a", "b", "d", "e"} { // two have the same time
		f := file(id)
		f.CreatedAt = monday.Add(time.Duration(i/2) * time.Microsecond)
		insert(t, s, "acme", f)
	}
	insert(t, s, "acme", of("mia", "m"))
	insert(t, s, "evil", file("x"))
	expired := file("y")
	expired.ExpiresAt = monday
	insert(t, s, "acme", expired)
	for sort, want := range map[string]string{"": "edbca", "-createdAt": "edbca", "createdAt": "acbde"} {
		is.Equal(paged(t, s, "acme", sort, "jo"), want)
	}
	both := func(ctx context.Context, q paging.Query) (paging.Page[files.File], error) {
		return s.Page(ctx, "acme", []string{"jo", "mia"}, monday, q)
	}
	pagingtest.TestBytes(t, both)
	pagingtest.TestNewest(t, both, func(f files.File) string {
		return f.ID
	}, func(f files.File) time.Time { return f.CreatedAt })
	is.Equal(len(paged(t, s, "acme", "", "jo", "mia")), 6)
	is.Equal(paged(t, s, "acme", "", "nobody"), "")
	is.Equal(paged(t, s, "evil", "", "jo", "mia"), "x") // another tenant sees only its own
	p, err := s.Page(t.Context(), "evil", []string{"jo"}, monday, paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(p.Rows, []files.File{file("x")}) // every field
	for _, q := range []paging.Query{
		{Limit: 1, Sort: "filename"}, {Limit: 1, Q: "x"}, {Limit: 1, After: &paging.Position{Value: "x", Key: "a"}},
	} {
		_, err := s.Page(t.Context(), "acme", []string{"jo"}, monday, q)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
}
