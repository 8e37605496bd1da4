package tenantrows_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/store/tenantrows"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestTablesAreTheSameOnBothEngines: the tables are equal, except for those of text indexes and the
// types of booleans.
func TestTablesAreTheSameOnBothEngines(t *testing.T) {
	is := is.New(t)
	tables := func(open dbtest.Opener) map[string]map[string]tenantrows.Type {
		all, err := tenantrows.Tables(t.Context(), open(t))
		is.NoErr(err)
		found := map[string]map[string]tenantrows.Type{}
		for _, table := range all {
			types := map[string]tenantrows.Type{}
			for _, c := range table.Columns {
				if types[c.Name] = c.Type; c.Type == tenantrows.Bool {
					types[c.Name] = tenantrows.Integer
				}
			}
			found[table.Name] = types
		}
		return found
	}
	dbtest.Server(t)
	lite, postgres := tables(dbtest.SQLite), tables(dbtest.Postgres)
	is.Equal(len(lite), len(postgres))
	for table, types := range lite {
		if !tenantrows.Derived(table) {
			is.Equal(types, postgres[table]) // including times
		}
	}
}
