package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// These methods write and read whole libraries. The number of statements does not depend on the
// number of files.

var copyAll = `INSERT INTO tc_library_files (tenant_id, kind, library_id, folded, ` + table.Names + `)
	SELECT tenant_id, kind, $3, folded, ` + table.Names +
	` FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND kind = $4`

// Copy implements libraries.Store.
func (s *Store) Copy(ctx context.Context, tenant, from, to string) error {
	err := bunx.WriteOne(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, copyAll, tenant, from, to, s.kind)
		return bunx.Err(err, "File")
	})
	if err == nil {
		s.notifier.AfterCommit(ctx, tenant)
	}
	return err
}

// changed returns the condition for files that are missing or different in the library in argument
// $n, whose kind is the next argument. PostgreSQL hashes the rows of a NOT IN. For NOT EXISTS it
// uses a join, which without statistics compares all pairs of files.
func changed(n int) string {
	return fmt.Sprintf(`kind = $%[2]d AND (path, content_id, content_type) NOT IN
		(SELECT path, content_id, content_type FROM tc_library_files WHERE tenant_id = $1
			AND library_id = $%[1]d AND kind = $%[2]d)`,
		n, n+1)
}

// Replace implements libraries.Store. It removes the changed files from the library, moves the
// missing files of the other library into it, and deletes the remaining ones, which are unchanged.
// So paths never clash, and the rows of unchanged files are kept.
func (s *Store) Replace(ctx context.Context, tenant, library, by string, at time.Time) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, step := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO tc_library_released (tenant_id, content_id, library_id, released_at)
				SELECT DISTINCT tenant_id, content_id, library_id, ` + instant(c) + ` FROM tc_library_files
				WHERE tenant_id = $1 AND library_id = $2 AND ` + changed(4) + overwriteRelease,
				[]any{tenant, library, bunx.At(at), by, s.kind}},
			{
				`DELETE FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND ` + changed(3),
				[]any{tenant, library, by, s.kind},
			},
			{`UPDATE tc_library_files SET library_id = $2 WHERE tenant_id = $1 AND library_id = $3 AND kind = $4 AND path NOT IN
				(SELECT path FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND kind = $4)`,
				[]any{tenant, library, by, s.kind}},
			{
				`DELETE FROM tc_library_files WHERE tenant_id = $1 AND library_id = $2 AND kind = $3`,
				[]any{tenant, by, s.kind},
			},
		} {
			if _, err := c.Exec(ctx, step.query, step.args...); err != nil {
				return bunx.Err(err, "File")
			}
		}
		return nil
	})
}

// Modified implements libraries.Store. It reads one entry of an index for each library. With max
// and GROUP BY it would read all files.
func (s *Store) Modified(ctx context.Context, tenant string, all []string) (map[string]time.Time, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	newest := make(map[string]time.Time, len(all))
	rows, err := c.Rows(ctx, `WITH sought (id) AS `+c.Among(2, 1)+
		` SELECT sought.id, (SELECT updated_at FROM tc_library_files
		WHERE tenant_id = $1 AND kind = $3 AND library_id = sought.id ORDER BY updated_at DESC LIMIT 1) FROM sought`,
		tenant,
		bunx.Keys(all), s.kind)
	_, err = bunx.Scan(rows, err, func(rows *sql.Rows) (none struct{}, err error) {
		var id string
		var at *time.Time
		if err := rows.Scan(&id, bunx.TimeOrNull(&at)); err != nil {
			return none, err
		}
		if at != nil {
			newest[id] = *at
		}
		return none, nil
	})
	if err != nil {
		return nil, bunx.Err(err, "File")
	}
	return newest, nil
}
