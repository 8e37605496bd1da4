package bunx_test

import (
	"database/sql"
	"database/sql/driver"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

func TestJSONArray(t *testing.T) {
	is := is.New(t)
	type pair struct{ A, B string }
	for stored, want := range map[string][]pair{
		"[]": nil,
		`[{"A":"x","B":"\u0000ü"},{"A":"","B":""}]`: {{"x", "\x00ü"}, {}},
	} {
		all := []pair{{"of", "before"}}
		field := bunx.JSONArray(&all)
		is.NoErr(field.(sql.Scanner).Scan(stored))
		is.Equal(all, want)
		written, err := field.(driver.Valuer).Value()
		is.NoErr(err)
		is.Equal(written, stored)
		is.NoErr(field.(sql.Scanner).Scan([]byte(stored))) // as some drivers do
		is.Equal(all, want)
	}
	var all []string
	is.NoErr(bunx.JSONArray(&all).(sql.Scanner).Scan(nil))
	is.Equal(all, nil)
	is.True(bunx.JSONArray(&all).(sql.Scanner).Scan(`{}`) != nil)
	is.True(bunx.JSONArray(&all).(sql.Scanner).Scan(7) != nil)
}
