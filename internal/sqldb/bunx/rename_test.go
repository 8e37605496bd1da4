package bunx_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestRename renames more names than fit one statement.
func TestRename(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		names := map[string]string{}
		for i := range 1200 {
			names[fmt.Sprint("a", i)] = fmt.Sprint("b", i)
		}
		for _, key := range []string{"a0", "a1199", "other"} {
			is.NoErr(put(t.Context(), db, key, time.Now())) // the column search is the key
		}
		rename := func(tenant string, names map[string]string, only ...bunx.Is) {
			is.NoErr(bunx.Write(t.Context(), db, tenant, func(ctx context.Context, c bunx.Conn) error {
				return c.Rename(ctx, tenant, "tc_colors", "search", names, only...)
			}))
		}
		search := func(key string) (s string) {
			ctx, c := bunx.For(t.Context(), db, "acme")
			is.NoErr(c.One(
				ctx, "Color", "SELECT search FROM tc_colors WHERE tenant_id = 'acme' AND key = $1", []any{key},
				&s,
			))
			return s
		}
		rename("evil", names)
		rename("acme", nil)
		is.Equal(search("a0"), "a0")
		rename("acme", names, bunx.Is{Column: "key", Value: "a1199"})
		is.Equal([]string{search("a0"), search("a1199"), search("other")}, []string{"a0", "b1199", "other"})
		rename("acme", names)
		is.Equal(search("a0"), "b0")
	})
}
