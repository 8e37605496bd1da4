// Package bunstore stores the records of webhooks in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

// Store implements webhooks.Store.
type Store struct{ db *bun.DB }

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

const noun = "Invocation"

// batch is the number of invocations that one statement writes.
const batch = 500

// Record implements webhooks.Store. The text of the statements does not depend on the number of
// rows. Days are written in the order of their keys, so that concurrent calls do not deadlock.
func (s *Store) Record(ctx context.Context, tenant string, all []webhooks.Entry) error {
	if len(all) == 0 {
		return nil
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		listed := slices.DeleteFunc(slices.Clone(all), func(e webhooks.Entry) bool { return e.CountOnly })
		for some := range slices.Chunk(listed, batch) {
			rows, err := invocations(some)
			if err != nil {
				return err
			}
			if _, err := c.Exec(ctx, insertInvocations(c), tenant, rows); err != nil {
				return bunx.Err(err, noun)
			}
		}
		numbers := slices.DeleteFunc(slices.Clone(all), func(e webhooks.Entry) bool {
			return e.Area != handlers.Webhooks
		})
		if len(numbers) == 0 {
			return nil
		}
		_, err := c.Exec(ctx, addDays(c), tenant, days(numbers))
		return bunx.Err(err, noun)
	})
}

// invocations returns the argument of insertInvocations.
func invocations(all []webhooks.Entry) (string, error) {
	columns := make([][]string, 13)
	for _, e := range all {
		logs := []byte("[]")
		if len(e.Logs) > 0 {
			var err error
			if logs, err = json.Marshal(e.Logs); err != nil {
				return "", err
			}
		}
		for i, text := range []string{
			e.App, e.ID, e.Method, e.Path,
			bunx.At(e.StartedAt).String(), number(e.Duration.Microseconds()), number(int64(e.Status)), number(e.Memory),
			orEmpty(e.Error), string(logs), number(int64(e.LogsDropped)), orEmpty(e.ReplayOf), string(e.Area),
		} {
			columns[i] = append(columns[i], text)
		}
	}
	return bunx.Keys(columns...), nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func insertInvocations(c bunx.Conn) string {
	instant := "text"
	if c.Postgres() {
		instant = "timestamptz"
	}
	return `WITH v (app_id, id, method, path, started_at, duration, status, memory, error, logs, logs_dropped, ` +
		`replay_of, area) AS ` + parsedOnce(c, c.Among(2, 13)) + `
		INSERT INTO tc_webhook_invocations (tenant_id, app_id, id, method, path, started_at, duration,
				status, memory, error, logs, logs_dropped, replay_of, area)
		SELECT $1, app_id, id, method, path, CAST(started_at AS ` + instant +
		`), CAST(duration AS bigint), CAST(status AS integer), CAST(memory AS bigint),
			nullif(error, ''), logs, CAST(logs_dropped AS bigint), nullif(replay_of, ''), area
			FROM v WHERE true
		ON CONFLICT (tenant_id, app_id, id) DO UPDATE SET duration = excluded.duration, status = excluded.status,
				memory = excluded.memory,
			error = excluded.error, logs = excluded.logs, logs_dropped = excluded.logs_dropped`
}

// parsedOnce makes PostgreSQL parse an argument of Among once, and not for each column of each row.
func parsedOnce(c bunx.Conn, among string) string {
	if !c.Postgres() {
		return among
	}
	return strings.Replace(among, "json_array_elements", "jsonb_array_elements", 1)
}

// day is the key of a row of tc_webhook_days.
type day struct{ app, day, method, path string }

// days returns the argument of addDays.
func days(all []webhooks.Entry) string {
	sums := map[day]webhooks.Entry{}
	for _, e := range all {
		d := day{e.App, e.StartedAt.UTC().Format(time.DateOnly), e.Method, e.Path}
		if e.NoRoute {
			d.path = ""
		}
		sum := sums[d]
		sum.Calls += e.Calls
		sum.Errors += e.Errors
		sum.Spent += e.Spent
		sums[d] = sum
	}
	keys := make([]day, 0, len(sums))
	for d := range sums {
		keys = append(keys, d)
	}
	slices.SortFunc(keys, func(a, b day) int {
		return cmp.Or(
			cmp.Compare(a.app, b.app), cmp.Compare(a.day, b.day), cmp.Compare(a.method, b.method),
			cmp.Compare(a.path, b.path),
		)
	})
	columns := make([][]string, 7)
	for _, d := range keys {
		sum := sums[d]
		for i, text := range []string{
			d.app, d.day, d.method, d.path, number(int64(sum.Calls)), number(int64(sum.Errors)),
			number(sum.Spent.Microseconds()),
		} {
			columns[i] = append(columns[i], text)
		}
	}
	return bunx.Keys(columns...)
}

func addDays(c bunx.Conn) string {
	return `WITH v (app_id, day, method, path, calls, errors, duration) AS ` + c.Among(2, 7) + `
		INSERT INTO tc_webhook_days (tenant_id, app_id, day, method, path, calls, errors, duration)
		SELECT $1, app_id, day, method, path, CAST(calls AS bigint), CAST(errors AS bigint), CAST(duration AS bigint)
			FROM v WHERE true
		ORDER BY app_id, day, method, path
		ON CONFLICT (tenant_id, app_id, day, method, path) DO UPDATE SET calls = tc_webhook_days.calls + excluded.calls,
			errors = tc_webhook_days.errors + excluded.errors, duration = tc_webhook_days.duration + excluded.duration`
}

// Recorded implements webhooks.Store.
func (s *Store) Recorded(ctx context.Context, tenant string, ids []string) (map[string]bool, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(
		ctx, `SELECT id FROM tc_webhook_invocations WHERE tenant_id = $1 AND id `+c.OneOf(2), tenant,
		bunx.Keys(ids),
	)
	there, err := bunx.TextSet(rows, err)
	return there, bunx.Err(err, noun)
}

const columns = `id, area, method, path, started_at, duration, status, memory, error, replay_of`

const (
	recent = `SELECT ` + columns +
		` FROM tc_webhook_invocations WHERE tenant_id = $1 AND app_id = $2 AND area = $3 ` +
		`ORDER BY started_at DESC, id DESC LIMIT $4`
	recentOfRoute = `SELECT ` + columns +
		` FROM tc_webhook_invocations WHERE tenant_id = $1 AND app_id = $2 AND area = $3 AND method = $5 AND path = $6
		ORDER BY started_at DESC, id DESC LIMIT $4`
	sums = `SELECT day, CAST(sum(calls) AS bigint), CAST(sum(errors) AS bigint), CAST(sum(duration) AS ` +
		`bigint) FROM tc_webhook_days WHERE tenant_id = $1 AND app_id = $2 AND day >= $3`
	daysOfAll   = sums + ` GROUP BY day ORDER BY day`
	daysOfRoute = sums + ` AND method = $4 AND path = $5 GROUP BY day ORDER BY day`
)

// args returns the arguments of a statement, with those of a filter, and the one of two statements
// that applies.
func args(f webhooks.Filter, all, ofRoute string, front ...any) (string, []any) {
	if f == (webhooks.Filter{}) {
		return all, front
	}
	return ofRoute, append(front, f.Method, f.Path)
}

// Recent implements webhooks.Store.
func (s *Store) Recent(
	ctx context.Context, tenant, app string, area handlers.Area, f webhooks.Filter, n int,
) ([]webhooks.Invocation, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query, args := args(f, recent, recentOfRoute, tenant, app, string(area), n)
	rows, err := c.Rows(ctx, query, args...)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (webhooks.Invocation, error) {
		v := webhooks.Invocation{App: app}
		return v, scan(rows, &v)
	})
	return all, bunx.Err(err, noun)
}

// scan reads the columns of an invocation, and further ones into more.
func scan(from interface{ Scan(...any) error }, v *webhooks.Invocation, more ...any) error {
	var took int64
	err := from.Scan(append([]any{
		&v.ID, &v.Area, &v.Method, &v.Path, bunx.TimeOf(&v.StartedAt), &took, &v.Status, &v.Memory, &v.Error,
		&v.ReplayOf,
	}, more...)...)
	v.Duration = time.Duration(took) * time.Microsecond
	return err
}

// Days implements webhooks.Store.
func (s *Store) Days(ctx context.Context, tenant, app string, f webhooks.Filter, since string) ([]webhooks.Day, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	query, args := args(f, daysOfAll, daysOfRoute, tenant, app, since)
	rows, err := c.Rows(ctx, query, args...)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (d webhooks.Day, err error) {
		var took int64
		err = rows.Scan(&d.Day, &d.Calls, &d.Errors, &took)
		d.Duration = time.Duration(took) * time.Microsecond
		return d, err
	})
	return all, bunx.Err(err, noun)
}

// Invocation implements webhooks.Store.
func (s *Store) Invocation(ctx context.Context, tenant, app, id string) (webhooks.Invocation, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	v, logs := webhooks.Invocation{App: app}, ""
	err := scan(c.Row(ctx, `SELECT `+columns+`, logs, logs_dropped,
		EXISTS (SELECT 1 FROM tc_webhook_requests r WHERE r.tenant_id = $1 AND r.app_id = v.app_id AND r.id = v.id)
		FROM tc_webhook_invocations v WHERE tenant_id = $1 AND app_id = $2 AND id = $3`, tenant, app, id), &v,
		&logs, &v.LogsDropped, &v.Kept)
	if err == nil {
		err = json.Unmarshal([]byte(logs), &v.Logs)
	}
	if err != nil {
		return webhooks.Invocation{}, bunx.Err(err, noun)
	}
	return v, nil
}

// Keep implements webhooks.Store.
func (s *Store) Keep(ctx context.Context, tenant string, k webhooks.Kept, most int, bytes int64) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx,
			`INSERT INTO tc_webhook_requests (tenant_id, app_id, id, received_at, size, key_sealed, request) `+
				`VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			tenant, k.App, k.ID, bunx.At(k.ReceivedAt), len(k.Request), k.KeySealed, k.Request)
		if err != nil {
			return bunx.Err(err, "Request")
		}
		_, err = c.Exec(ctx,
			`DELETE FROM tc_webhook_requests WHERE tenant_id = $1 AND app_id = $2 AND id <> $3
				AND NOT waiting AND id IN (
			SELECT id FROM (SELECT id, sum(size) OVER newest AS total, row_number() OVER newest AS n
				FROM tc_webhook_requests
				WHERE tenant_id = $1 AND app_id = $2 WINDOW newest AS (ORDER BY received_at DESC, id DESC)) AS ranked
			WHERE total > $4 OR n > $5)`, tenant, k.App, k.ID, bytes, most)
		return bunx.Err(err, "Request")
	})
}

// Wait implements webhooks.Store.
func (s *Store) Wait(ctx context.Context, tenant, app, id string, most int, bytes int64) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		const ofApp = `FROM tc_webhook_requests AS other WHERE other.tenant_id = $1 AND other.app_id = $2 ` +
			`AND other.waiting`
		n, err := c.Exec(ctx,
			`UPDATE tc_webhook_requests SET waiting = true WHERE tenant_id = $1 AND app_id = $2 AND id = $3
			AND (SELECT count(*) `+ofApp+`) < $4 AND (SELECT coalesce(sum(other.size), 0) `+ofApp+`) + size <= $5`,
			tenant, app,
			id, most, bytes)
		if err != nil {
			return bunx.Err(err, "Request")
		}
		if n == 0 {
			return errs.New(
				errs.Unavailable,
				"Too many requests of the app wait for their handlers already. Try again later.",
			)
		}
		return nil
	})
}

// Waited implements webhooks.Store.
func (s *Store) Waited(ctx context.Context, tenant, app, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx,
			`UPDATE tc_webhook_requests SET waiting = false WHERE tenant_id = $1 AND app_id = $2 AND id = $3`,
			tenant, app, id,
		)
		return bunx.Err(err, "Request")
	})
}

// Kept implements webhooks.Store.
func (s *Store) Kept(ctx context.Context, tenant, app, id string) (webhooks.Kept, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	k := webhooks.Kept{App: app, ID: id}
	err := c.One(ctx, "Request",
		`SELECT received_at, key_sealed, request FROM tc_webhook_requests WHERE tenant_id = $1 AND app_id = $2 `+
			`AND id = $3`,
		[]any{tenant, app, id}, bunx.TimeOf(&k.ReceivedAt), &k.KeySealed, &k.Request)
	if err != nil {
		return webhooks.Kept{}, err
	}
	return k, nil
}

// Calls implements webhooks.Store.
func (s *Store) Calls(ctx context.Context, tenant string, apps []string) (n int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err = c.One(ctx, noun,
		`SELECT CAST(coalesce(sum(calls), 0) AS bigint) FROM tc_webhook_days WHERE tenant_id = $1 AND app_id `+
			c.OneOf(2),
		[]any{tenant, bunx.Keys(apps)}, &n)
	return n, err
}

// Remove implements webhooks.Store.
func (s *Store) Remove(ctx context.Context, tenant string, apps []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, table := range []string{"tc_webhook_invocations", "tc_webhook_days", "tc_webhook_requests"} {
			if _, err := c.Exec(
				ctx, `DELETE FROM `+table+` WHERE tenant_id = $1 AND app_id `+c.OneOf(2), tenant,
				bunx.Keys(apps),
			); err != nil {
				return bunx.Err(err, noun)
			}
		}
		return nil
	})
}

// Sweep implements webhooks.Store.
func (s *Store) Sweep(ctx context.Context, tenant string, o webhooks.Old) (removed int, err error) {
	for _, old := range []struct {
		table, key, column string
		before             any
	}{
		{"tc_webhook_invocations", "app_id, id", "started_at", bunx.At(o.Invocations)},
		{"tc_webhook_requests", "app_id, id", "received_at", bunx.At(o.Requests)},
		{"tc_webhook_days", "app_id, day, method, path", "day", o.Day},
	} {
		err := bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
			n, err := c.Exec(ctx, `DELETE FROM `+old.table+` WHERE tenant_id = $1 AND (`+old.key+`) IN (
				SELECT `+old.key+` FROM `+old.table+` WHERE tenant_id = $1 AND `+old.column+` < $2 ORDER BY `+
				old.column+` LIMIT $3)`,
				tenant,
				old.before, o.Batch)
			removed += n
			return bunx.Err(err, noun)
		})
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
