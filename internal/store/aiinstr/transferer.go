package bunstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// IDs implements aiinstr.Store.
func (s *Store) IDs(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT id FROM tc_ai_instructions WHERE tenant_id = $1 ORDER BY id`, tenant)
	ids, err := bunx.Scan(rows, err, bunx.Text)
	return ids, bunx.Err(err, what)
}

// Some implements aiinstr.Store.
func (s *Store) Some(ctx context.Context, tenant string, ids []string) ([]aiinstr.Instruction, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: table.Names,
		Table:   `tc_ai_instructions`,
		Where:   `tenant_id = $1`,
		Key:     `id`,
	}, ids, tenant)
	some, err := bunx.Scan(rows, err, scanRows)
	return some, bunx.Err(err, what)
}

// Slugs implements aiinstr.Store.
func (s *Store) Slugs(ctx context.Context, tenant string, slugs []string) (map[string]string, error) {
	ids := map[string]string{}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: `slug, id`,
		Table:   `tc_ai_instructions`,
		Where:   `tenant_id = $1`,
		Key:     `slug`,
	}, slugs, tenant)
	return ids, bunx.Err(bunx.ScanMap(rows, err, ids), what)
}

// PutAll implements aiinstr.Store. A row can take the slug of another row that is written with it.
// So the rows in yield first get their ids as slugs, which no other row can have.
func (s *Store) PutAll(ctx context.Context, tenant string, all []aiinstr.Instruction, yield []string) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(yield) > 0 {
			_, err := c.Exec(ctx, `UPDATE tc_ai_instructions SET slug = id WHERE tenant_id = $1 AND id `+c.OneOf(2),
				tenant, bunx.Keys(yield))
			if err != nil {
				return bunx.Err(err, what)
			}
		}
		return put(ctx, c, tenant, all, table.OnConflict)
	})
}

// Remove implements aiinstr.Store.
func (s *Store) Remove(ctx context.Context, tenant string, ids []string) (n int, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	err = bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) (err error) {
		n, err = c.Exec(
			ctx, `DELETE FROM tc_ai_instructions WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant,
			bunx.Keys(ids),
		)
		return bunx.Err(err, what)
	})
	return n, err
}

// Owned implements aiinstr.Store.
func (s *Store) Owned(ctx context.Context, tenant, owner string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(
		ctx, what, `SELECT count(*) FROM tc_ai_instructions WHERE tenant_id = $1 AND owner_id = $2`,
		[]any{tenant, owner}, &n,
	)
	return n, err
}

// Owners implements aiinstr.Store.
func (s *Store) Owners(ctx context.Context, tenant string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT DISTINCT owner_id FROM tc_ai_instructions WHERE tenant_id = $1`, tenant)
	owners, err := bunx.Scan(rows, err, bunx.Text)
	return owners, bunx.Err(err, what)
}

// RenameOwners implements aiinstr.Store.
func (s *Store) RenameOwners(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return bunx.Err(c.Rename(ctx, tenant, "tc_ai_instructions", "owner_id", names), what)
	})
}

// heads are the columns of an instruction without its content, which may be long.
var heads = table.NamesWith("content", "''")

// Reassign implements aiinstr.Store.
func (s *Store) Reassign(
	ctx context.Context, tenant, from, to string, at time.Time,
) (moved []aiinstr.Instruction, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		rows, err := c.Rows(ctx,
			`UPDATE tc_ai_instructions SET owner_id = $1, updated_at = $2 WHERE tenant_id = $3 AND owner_id = $4
			RETURNING `+heads, to, bunx.At(at), tenant, from)
		moved, err = bunx.Scan(rows, err, scanRows)
		return bunx.Err(err, what)
	})
	slices.SortFunc(moved, func(a, b aiinstr.Instruction) int { return strings.Compare(a.ID, b.ID) })
	return moved, err
}
