package bunx_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var list = bunx.List[shade]{
	Table: shades, Key: "key", Order: "-key", Search: "search",
	Sorts: []bunx.Sort[shade]{
		{Field: "key", Column: "key", Value: func(c shade) string { return c.Key }},
		{Field: "createdAt", Column: "created_at", Value: func(c shade) string {
			return bunx.At(c.CreatedAt).String()
		}},
	},
}

func page(ctx context.Context, db *bun.DB, q paging.Query) (string, paging.Page[shade], error) {
	ctx, c := bunx.For(ctx, db, "acme")
	part := bunx.Part{Where: "c.tenant_id = $1", Args: []any{"acme"}, Total: bunx.Total("colors", bunx.Whole)}
	p, err := bunx.Page(ctx, c, list, part, func(c shade) string { return c.Key }, q)
	var keys []string
	for _, r := range p.Rows {
		keys = append(keys, r.Key)
	}
	return strings.Join(keys, " "), p, err
}

func TestPage(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, db := is.New(t), t.Context(), open(t)
		at := time.Date(2026, 11, 20, 20, 31, 0, 1000, time.UTC)
		for i, key := range []string{"a", "b%", "b_", `b\`, "bx", "ä'?"} { // two have the same time
			is.NoErr(put(ctx, db, key, at.Add(time.Duration(i/2)*time.Microsecond)))
		}
		for sort, want := range map[string]string{
			"": `ä'? bx b_ b\ b% a`, "key": `a b% b\ b_ bx ä'?`,
			"createdAt": `a b% b\ b_ bx ä'?`, "-createdAt": `ä'? bx b_ b\ b% a`,
		} {
			all, p, err := page(ctx, db, paging.Query{Sort: sort, Limit: 10})
			is.NoErr(err)
			is.Equal(all, want)
			is.Equal(p.Total, 6)
			is.Equal(follow(t, db, sort), want) // by position, one row a page
			some, _, err := page(ctx, db, paging.Query{Sort: sort, Start: 2, Limit: 2})
			is.NoErr(err)
			is.Equal(some, strings.Join(strings.Fields(want)[2:4], " "))
		}
		for q, want := range map[string]string{
			"B":                       `bx b_ b\ b%`,
			"%":                       "b%",
			"_":                       "b_",
			`\`:                       `b\`,
			"'":                       "ä'?",
			"?":                       "ä'?",
			"zz":                      "",
			"A'":                      "ä'?",
			"? a\u0308":               "ä'?",
			"b x":                     "bx",
			"b zz":                    "",
			" \t ":                    `ä'? bx b_ b\ b% a`,
			strings.Repeat("x", 1000): "",
		} {
			got, p, err := page(ctx, db, paging.Query{Q: q, Limit: 10})
			is.NoErr(err)
			is.Equal(got, want)
			is.Equal(p.Total, len(strings.Fields(want)))
		}
		for _, q := range []paging.Query{{CountOnly: true}, {Start: 6, Limit: 1}, {Start: 1 << 40, Limit: 1}} {
			got, p, err := page(ctx, db, q)
			is.NoErr(err)
			is.Equal(got, "")
			is.Equal(p.Total, 6)
			is.Equal(p.Last, nil)
		}
		_, _, err := page(ctx, db, paging.Query{Sort: "color", Limit: 1})
		is.Equal(errs.CodeOf(err), errs.Invalid)
		_, _, err = page(ctx, db, paging.Query{
			Sort:  "createdAt",
			Limit: 1,
			After: &paging.Position{Value: "x", Key: "a"},
		})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	})
}

func follow(t *testing.T, db *bun.DB, sort string) string {
	t.Helper()
	var all []string
	q := paging.Query{Sort: sort, Limit: 1}
	for {
		one, p, err := page(t.Context(), db, q)
		if err != nil {
			t.Fatal(err)
		}
		if one == "" {
			return strings.Join(all, " ")
		}
		all = append(all, one)
		q.After, q.Start = p.Last, q.Start+1
	}
}

// TestPageBytes: a page ends with the row that exceeds the limit. Its bytes are counted from 64 KiB
// on, and the reading ends with the error of Hold.
func TestPageBytes(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		for i := range 10 {
			is.NoErr(put(t.Context(), db, string(rune('a'+i))+strings.Repeat("x", 20_000), time.Now()))
		}
		read := func(l paging.Limits, q paging.Query) (int, paging.Page[shade], error) {
			_, p, err := page(paging.WithLimits(t.Context(), l), db, q)
			return len(p.Rows), p, err
		}
		n, p, err := read(paging.Limits{}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(n, 10)
		is.True(!p.More)
		n, p, err = read(paging.Limits{MaxBytes: 70_000}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.Equal(n, 4)
		is.True(p.More)
		is.Equal(p.Total, 10)
		n, p, err = read(
			paging.Limits{MaxBytes: 70_000},
			paging.Query{Limit: 10, Start: 8, After: &paging.Position{Value: "c", Key: "c"}},
		)
		is.NoErr(err)
		is.Equal(n, 2)
		is.True(!p.More) // it ends with the last row of the list

		held := 0
		hold := func(n int) error { held += n; return nil }
		_, _, err = read(paging.Limits{Hold: hold}, paging.Query{Limit: 1})
		is.NoErr(err)
		is.Equal(held, 0)
		_, _, err = read(paging.Limits{Hold: hold}, paging.Query{Limit: 10})
		is.NoErr(err)
		is.True(held >= 200_000)
		enough := errs.New(errs.Unavailable, "enough")
		_, _, err = read(paging.Limits{Hold: func(int) error { return enough }}, paging.Query{Limit: 10})
		is.Equal(err, enough)
		n, _, err = read(paging.Limits{}, paging.Query{Limit: 1}) // the connection is free again
		is.NoErr(err)
		is.Equal(n, 1)
	})
}

// TestPageOfHostileInput: hostile input is never an internal error.
func TestPageOfHostileInput(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		is.New(t).NoErr(put(t.Context(), db, "a", time.Now()))
		for name, q := range map[string]paging.Query{
			"long q":   {Q: strings.Repeat("x", 60_000)},
			"percents": {Q: strings.Repeat("%", 4_000)}, "growing": {Q: strings.Repeat("\ufdfa", 1_333)},
			"words": {Q: strings.Repeat("x ", 2_000)}, "marks": {Q: strings.Repeat("\u0301", 2_000)},
			"NUL": {Q: "a\x00"}, "UTF-8": {Q: "\xff"}, "NUL key": {After: &paging.Position{Value: "\x00", Key: "\x00"}},
			"UTF-8 key": {After: &paging.Position{Value: "\xff", Key: "\xff"}},
		} {
			t.Run(name, func(t *testing.T) {
				q.Limit = 1
				_, _, err := page(t.Context(), db, q)
				if err != nil && errs.CodeOf(err) != errs.Invalid {
					t.Error(err)
				}
			})
		}
	})
}

var countedList = bunx.List[shade]{
	Table: shades, Key: "key",
	Order: "key", Sorts: []bunx.Sort[shade]{{Field: "key", Column: "key", Value: func(c shade) string {
		return c.Key
	}}},
}

// TestPageTotals: the total is that of the expression, also on an empty page, and needs a second
// statement only there.
func TestPageTotals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx := is.New(t), t.Context()
		db, count := dbtest.Counted(t, func(t testing.TB) *bun.DB { return open(t.(*testing.T)) })
		for _, key := range []string{"a", "b", "c"} {
			is.NoErr(put(ctx, db, key, time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC)))
		}
		read := func(q paging.Query, of string) (paging.Page[shade], int, error) {
			ctx, c := bunx.For(ctx, db, "acme")
			part := bunx.Part{
				Where: "c.tenant_id = $1 AND $2 <> ''", Args: []any{"acme", of}, What: "Palette",
				Total: `(SELECT length(key) + 6 FROM tc_colors WHERE tenant_id = $1 AND key = $2)`,
			}
			count.Take()
			p, err := bunx.Page(ctx, c, countedList, part, func(c shade) string { return c.Key }, q)
			return p, len(count.Take()), err
		}
		first, statements, err := read(paging.Query{Limit: 2}, "a")
		is.NoErr(err)
		is.Equal(statements, 1)
		is.Equal(first.Total, 7)
		is.Equal(len(first.Rows), 2)
		is.True(first.More)
		for _, q := range []paging.Query{{Limit: 2, Start: 2}, {Limit: 2, Start: 2, After: first.Last}} {
			p, statements, err := read(q, "a")
			is.NoErr(err)
			is.Equal(statements, 1)
			is.Equal(len(p.Rows), 1)
			is.Equal(p.Rows[0].Key, "c")
			is.Equal(p.Total, 7)
			is.True(!p.More)
		}
		for _, q := range []paging.Query{
			{CountOnly: true}, {Limit: 2, Start: 100},
			{Limit: 2, After: &paging.Position{Value: "c", Key: "c"}},
		} {
			p, _, err := read(q, "a")
			is.NoErr(err)
			is.Equal(len(p.Rows), 0)
			is.Equal(p.Total, 7)
		}
		_, _, err = read(paging.Query{CountOnly: true}, "nobody")
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(errs.MessageOf(err), "Palette not found.")
		for _, q := range []paging.Query{{Limit: 2, Sort: "x"}, {CountOnly: true, Sort: "x"}, {Limit: 2, Q: "x"}} {
			_, _, err = read(q, "a")
			is.Equal(errs.CodeOf(err), errs.Invalid)
		}
	})
}
