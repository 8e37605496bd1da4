package bunstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// account is the account of the user $2.
var account = bunx.Account("$2")

// Favorites implements apps.Store.
func (s *Store) Favorites(ctx context.Context, tenant, username string, ids []string) (map[string]bool, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT app_id FROM tc_app_favorites WHERE tenant_id = $1 AND username = `+account+
		` AND app_id `+c.OneOf(3),
		tenant, username, bunx.Keys(ids))
	marked, err := bunx.TextSet(rows, err)
	return marked, bunx.Err(err, noun)
}

// SetFavorite implements apps.Store.
func (s *Store) SetFavorite(ctx context.Context, tenant, username, id string, favorite bool, at time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		accounts, err := c.HoldAccounts(ctx, tenant, []string{username})
		if err != nil {
			return err
		}
		a, err := s.Lock(ctx, tenant, apps.Lookup{ID: id})
		if err != nil {
			return err
		}
		if err := guard.Check(ctx, string(apps.Kind), a); err != nil {
			return err
		}
		if a.EditingID != nil {
			id = *a.EditingID
		}
		if !favorite {
			_, err := c.Exec(
				ctx, `DELETE FROM tc_app_favorites WHERE tenant_id = $1 AND username = $2 AND app_id = $3`,
				tenant, accounts[username], id,
			)
			return bunx.Err(err, noun)
		}
		if accounts[username] == "" {
			return errs.New(errs.Forbidden, "Only users of the tenant have favorites.")
		}
		_, err = c.Exec(ctx,
			`INSERT INTO tc_app_favorites (tenant_id, username, app_id, created_at) VALUES ($1, $2, $3, $4) `+
				`ON CONFLICT DO NOTHING`,
			tenant, accounts[username], id, bunx.At(at))
		return bunx.Err(err, noun)
	})
}

// AddViews implements apps.Store. Rows are written in the order of their keys, so that concurrent
// calls do not deadlock.
func (s *Store) AddViews(ctx context.Context, tenant string, views map[apps.View]apps.Views) error {
	if len(views) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		users := make([]string, 0, len(views))
		for v := range views {
			users = append(users, v.Username)
		}
		accounts, err := c.HoldAccounts(ctx, tenant, slices.Compact(slices.Sorted(slices.Values(users))))
		if err != nil {
			return err
		}
		columns := make([][]string, 5)
		for v, n := range views {
			account, known := accounts[v.Username]
			if !known {
				continue
			}
			for i, value := range []string{
				v.App, account, v.Day, strconv.FormatInt(n.N, 10), bunx.At(n.Last).String(),
			} {
				columns[i] = append(columns[i], value)
			}
		}
		counted, instant := bunx.Keys(columns...), "text"
		if c.Postgres() {
			instant = "timestamptz"
		}
		from := `WITH v (app_id, username, day, n, visited_at) AS ` + c.Among(2, 5) + `, counted AS (
			SELECT v.* FROM v JOIN tc_apps a ON a.tenant_id = $1 AND a.id = v.app_id) `
		_, err = c.Exec(ctx, from+`INSERT INTO tc_app_views (tenant_id, app_id, day, username, n)
			SELECT $1, app_id, day, username, CAST(n AS bigint) FROM counted WHERE true ORDER BY app_id, day, username
			ON CONFLICT (tenant_id, app_id, day, username) DO UPDATE SET n = tc_app_views.n + excluded.n`,
			tenant, counted)
		if err != nil {
			return bunx.Err(err, noun)
		}
		_, err = c.Exec(ctx, from+`INSERT INTO tc_app_visits (tenant_id, username, app_id, visited_at)
			SELECT $1, username, app_id, CAST(max(visited_at) AS `+instant+
			`) FROM counted GROUP BY username, app_id ORDER BY username, app_id
			ON CONFLICT (tenant_id, username, app_id) DO UPDATE SET visited_at = excluded.visited_at
				WHERE excluded.visited_at > tc_app_visits.visited_at`,
			tenant, counted)
		return bunx.Err(err, noun)
	})
}

// Days implements apps.Store.
func (s *Store) Days(ctx context.Context, tenant, id, since string) ([]apps.Day, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx,
		`SELECT day, CAST(sum(n) AS bigint), count(*) FROM tc_app_views
			WHERE tenant_id = $1 AND app_id = $2 AND day >= $3
		GROUP BY day ORDER BY day`, tenant, id, since)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (d apps.Day, err error) {
		return d, rows.Scan(&d.Day, &d.Views, &d.Users)
	})
	return all, bunx.Err(err, noun)
}

// UsesOf implements apps.Store.
func (s *Store) UsesOf(ctx context.Context, tenant string, ids []string) (apps.Uses, error) {
	return s.uses(ctx, tenant, "app_id", ids)
}

// UsesBy implements apps.Store.
func (s *Store) UsesBy(ctx context.Context, tenant string, usernames []string) (apps.Uses, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	accounts, err := c.Accounts(ctx, tenant, usernames)
	if err != nil {
		return apps.Uses{}, err
	}
	return s.uses(ctx, tenant, "username", slices.Collect(maps.Values(accounts)))
}

// ofAccounts are the tables of rows that belong to users and apps.
var ofAccounts = []string{"tc_app_favorites", "tc_app_visits", "tc_app_views"}

// RenameAccounts implements apps.Store.
func (s *Store) RenameAccounts(ctx context.Context, tenant string, names map[string]string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, table := range ofAccounts {
			if err := c.RenameAccounts(ctx, tenant, table, names); err != nil {
				return bunx.Err(err, noun)
			}
		}
		return nil
	})
}

// RemoveAccount implements apps.Store.
func (s *Store) RemoveAccount(ctx context.Context, tenant, account string, n int) (more bool, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		more, err = c.RemoveOf(ctx, tenant, account, n, ofAccounts...)
		return err
	})
	return more, err
}

// uses counts the rows with some values in a column.
func (s *Store) uses(ctx context.Context, tenant, column string, values []string) (u apps.Uses, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	where := ` WHERE tenant_id = $1 AND ` + column + ` ` + c.OneOf(2)
	err = c.One(ctx, noun, `SELECT (SELECT count(*) FROM tc_app_favorites`+where+
		`), (SELECT count(*) FROM tc_app_visits`+where+`),
		(SELECT CAST(coalesce(sum(n), 0) AS bigint) FROM tc_app_views`+where+`)`, []any{tenant, bunx.Keys(values)},
		&u.Favorites, &u.Visits, &u.Views)
	return u, err
}

// Recent implements apps.Store. It reads the index of visits only as far as necessary.
func (s *Store) Recent(ctx context.Context, tenant, username string, v apps.Viewer, n int) ([]apps.App, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	sees, args := "", []any{tenant, username, n}
	if !v.All {
		sees, args = fmt.Sprintf(seen, c.OneOf(4)), append(args, bunx.Keys(v.Principals))
	}
	columns, read := s.HeadColumns(tenant)
	rows, err := c.Rows(ctx, `SELECT `+columns+
		` FROM tc_app_visits v JOIN tc_apps a ON a.tenant_id = v.tenant_id AND a.id = v.app_id
		WHERE v.tenant_id = $1 AND v.username = `+account+` AND a.editing_id IS NULL AND a.deleted_at IS NULL`+sees+`
		ORDER BY v.visited_at DESC, v.app_id DESC LIMIT $3`, args...)
	all, err := bunx.Scan(rows, err, read)
	return all, bunx.Err(err, noun)
}

// seen is the condition that one of some principals, which are to be filled in, sees an app.
const seen = ` AND (a.owner_id %[1]s OR EXISTS (SELECT 1 FROM tc_app_shares s
	WHERE s.tenant_id = a.tenant_id AND s.entity_id = a.id
	AND s.principal_id %[1]s AND s.access_level > 0))`
