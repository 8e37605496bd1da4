// Package transfertest has what tests of Transferers, and of Stores whose entities have owners,
// share.
//
// Tests and suites of nouns import it.
package transfertest

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Rows returns the rows of all entities of a tenant that a Transferer moves.
func Rows(t testing.TB, p entity.Transferer, tenant string) (rows []entity.Row) {
	t.Helper()
	is := is.New(t)
	ids, err := p.IDs(t.Context(), tenant)
	is.NoErr(err)
	for r, err := range p.Export(t.Context(), tenant, ids) {
		is.NoErr(err)
		rows = append(rows, r)
	}
	return rows
}
