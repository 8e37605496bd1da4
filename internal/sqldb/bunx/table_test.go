package bunx_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// shade is a row of tc_colors, whose texts may be anything.
type shade struct {
	Tenant, Key        string
	Color              json.RawMessage
	Source             *string
	CreatedAt, Updated time.Time
}

var shades = bunx.NewTable("tc_colors", "c", []bunx.Column[shade]{
	{Name: "tenant_id", Key: true, Field: func(s *shade) any { return &s.Tenant }},
	{Name: "key", Key: true, Field: func(s *shade) any { return &s.Key }},
	{Name: "search", Value: func(s *shade) any { return strings.ToLower(s.Key) }},
	{Name: "color", Field: func(s *shade) any { return bunx.JSON(&s.Color) }},
	{Name: "source", Keep: true, Field: func(s *shade) any { return &s.Source }},
	{Name: "created_at", Once: true, Field: func(s *shade) any { return bunx.TimeOf(&s.CreatedAt) }},
	{Name: "updated_at", Field: func(s *shade) any { return bunx.TimeOf(&s.Updated) }},
})

func TestTableTexts(t *testing.T) {
	is := is.New(t)
	is.Equal(shades.Names, "tenant_id, key, color, source, created_at, updated_at")
	is.Equal(shades.NamesWith("color", "''"), "tenant_id, key, '', source, created_at, updated_at")
	is.Equal(shades.Select("WHERE key = $1"), "SELECT "+shades.Names+" FROM tc_colors WHERE key = $1")
	is.Equal(shades.InsertOne("RETURNING key"),
		"INSERT INTO tc_colors (tenant_id, key, search, color, source, created_at, updated_at) "+
			"VALUES ($1,$2,$3,$4,$5,$6,$7) RETURNING key")
	is.Equal(shades.Extra(2), "$9")
	is.Equal(shades.Qualified, "c.tenant_id, c.key, c.color, c.source, c.created_at, c.updated_at")
	some := shades.Only("key", "source")
	is.Equal(some.Names+"; "+some.Qualified, "key, source; c.key, c.source")
	is.Equal(len(some.Dest(&shade{})), 2)
	is.Equal(shades.OnConflict,
		" ON CONFLICT (tenant_id, key) DO UPDATE SET search = excluded.search, color = excluded.color, "+
			"updated_at = excluded.updated_at")
	is.Equal(
		shades.Overwrite("color", "source"),
		" ON CONFLICT (tenant_id, key) DO UPDATE SET color = excluded.color, source = excluded.source",
	)
	for _, c := range []string{"none", "key", "created_at"} { // unknown, part of the primary key, and never changed
		func() {
			defer func() { is.True(recover() != nil) }()
			shades.Overwrite(c)
		}()
	}
}

func TestTable(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		at, source := time.Date(2026, 11, 20, 20, 31, 0, 1000, time.UTC), "s"
		one := shade{
			Tenant:    "acme",
			Key:       "A",
			Color:     json.RawMessage(`{"a":"'?$1"}`),
			Source:    &source,
			CreatedAt: at,
			Updated:   at.Add(time.Hour),
		}
		two := shade{Tenant: "acme", Key: "B", Color: json.RawMessage(`1`), CreatedAt: at, Updated: at}
		write := func(fn func(ctx context.Context, c bunx.Conn) (int, error)) (n int) {
			t.Helper()
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) (err error) {
				n, err = fn(ctx, c)
				return err
			}))
			return n
		}
		read := func(key string) shade {
			t.Helper()
			ctx, c := bunx.For(t.Context(), db, "acme")
			s, err := shades.Scan(c.Row(ctx, shades.Select(`WHERE tenant_id = $1 AND key = $2`), "acme", key))
			is.NoErr(err)
			return s
		}
		insert := func(rest string, all ...shade) int {
			t.Helper()
			return write(func(ctx context.Context, c bunx.Conn) (int, error) {
				return shades.Insert(ctx, c, rest, all...)
			})
		}
		is.Equal(insert(""), 0)
		is.Equal(insert("", one, two), 2)
		is.Equal(read("A"), one)
		is.Equal(read("B"), two) // NULL is read as nil
		list := bunx.List[shade]{Table: shades, Key: "key", Order: "key", Search: "search", Sorts: []bunx.Sort[shade]{
			{Field: "key", Column: "key", Value: func(s shade) string { return s.Key }},
		}}
		ctx, c := bunx.For(t.Context(), db, "acme")
		for _, q := range []paging.Query{{Limit: 10}, {Limit: 10, Q: "b"}, {Limit: 1}} {
			p, err := bunx.Page(ctx, c, list, bunx.Part{Where: "c.tenant_id = $1", Args: []any{"acme"}},
				func(s shade) string {
					return s.Key
				}, q)
			is.NoErr(err)
			is.Equal(p.Rows, map[string][]shade{"": {one, two}, "b": {two}}[q.Q][:min(q.Limit, p.Total)])
			is.Equal(p.More, q.Limit == 1)
		}

		change := shade{
			Tenant:    "acme",
			Key:       "A",
			Color:     json.RawMessage(`2`),
			CreatedAt: at.Add(time.Hour),
			Updated:   at,
		}
		is.Equal(insert(shades.OnConflict, change), 1)
		one.Color, one.Updated = change.Color, at // columns with Once or Keep are unchanged
		is.Equal(read("A"), one)
		update := func(s shade) int {
			t.Helper()
			return write(func(ctx context.Context, c bunx.Conn) (int, error) { return shades.Update(ctx, c, &s) })
		}
		is.Equal(update(change), 1)
		one.Source = nil // columns with Once are unchanged
		is.Equal(read("A"), one)
		is.Equal(read("B"), two)
		updateIf := func(s shade, only ...bunx.Is) int {
			t.Helper()
			return write(func(ctx context.Context, c bunx.Conn) (int, error) {
				return shades.Update(ctx, c, &s, only...)
			})
		}
		two.Color = json.RawMessage(`3`)
		is.Equal(
			updateIf(
				two, bunx.Is{Column: "search", Value: "b"},
				bunx.Is{Column: "updated_at", Value: bunx.At(at.Add(1))},
			),
			1,
		)
		is.Equal(updateIf(change, bunx.Is{Column: "search", Value: "b"}), 0)
		is.Equal(read("B"), two)
		change.Key = "C"
		is.Equal(update(change), 0)
		_, err := shades.Insert(ctx, c, "", one)
		is.Equal(errs.CodeOf(bunx.Err(err, "Color")), errs.Conflict)
	})
}

func TestTableRestore(t *testing.T) {
	is := is.New(t)
	at, source, other := time.Date(2026, 11, 20, 20, 31, 0, 1000, time.UTC), "s", "o"
	once := bunx.NewTable("tc_colors", "c", []bunx.Column[shade]{
		{Name: "tenant_id", Key: true, Value: func(s *shade) any { return s.Tenant }},
		{Name: "key", Key: true, Field: func(s *shade) any { return &s.Key }},
		{Name: "color", Once: true, Field: func(s *shade) any { return bunx.JSONOrNull(&s.Color) }},
		{Name: "source", Once: true, Field: func(s *shade) any { return &s.Source }},
		{Name: "created_at", Once: true, Field: func(s *shade) any { return bunx.TimeOf(&s.CreatedAt) }},
		{Name: "updated_at", Field: func(s *shade) any { return bunx.TimeOf(&s.Updated) }},
	})
	for _, was := range []shade{
		{Tenant: "acme", Key: "A", Color: json.RawMessage(`1`), Source: &source, CreatedAt: at, Updated: at},
		{Tenant: "acme"},
	} {
		edited := shade{
			Tenant:    "evil",
			Key:       "B",
			Color:     json.RawMessage(`2`),
			Source:    &other,
			CreatedAt: at.Add(1),
			Updated:   at.Add(time.Hour),
		}
		is.NoErr(once.Restore(&edited, &was))
		want := was
		want.Tenant, want.Updated = "evil", at.Add(time.Hour) // neither Field nor Once
		is.Equal(edited, want)
	}
}
