package bunstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Page implements files.Store.
func (s *Store) Page(
	ctx context.Context, tenant string, usernames []string, at time.Time, q paging.Query,
) (paging.Page[files.File], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	accounts := make([]string, len(usernames))
	for i := range usernames {
		accounts[i] = bunx.Account("$" + strconv.Itoa(3+i))
	}
	of := bunx.Part{
		Where: "f.tenant_id = $1 AND f.expires_at > $2 AND f.username IN (" + strings.Join(accounts, ", ") + ")",
		Args:  bunx.Args(usernames, tenant, bunx.At(at)),
	}
	list := bunx.List[row]{
		Table: s.rows, Key: "id", Order: "-createdAt",
		Sorts: []bunx.Sort[row]{{Field: "createdAt", Column: "created_at", Value: func(r row) string {
			return bunx.At(r.CreatedAt).String()
		}}},
	}
	page, err := bunx.Page(ctx, c, list, of, func(r row) string { return r.ID }, q)
	return paging.Map(page, func(r row) files.File { return r.File }), err
}
