package bunstore

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

var schedules = bunx.NewTable("tc_job_schedules", "s", []bunx.Column[queue.Schedule]{
	{Name: "tenant_id", Key: true, Field: func(s *queue.Schedule) any { return &s.Tenant }},
	{Name: "kind", Key: true, Field: func(s *queue.Schedule) any { return &s.Kind }},
	{Name: "key", Key: true, Field: func(s *queue.Schedule) any { return &s.Key }},
	{Name: "cron", Field: func(s *queue.Schedule) any { return &s.Cron }},
	{Name: "zone", Field: func(s *queue.Schedule) any { return &s.Zone }},
	{Name: "payload", Field: func(s *queue.Schedule) any { return bunx.JSON(&s.Payload) }},
	{Name: "next_at", Field: func(s *queue.Schedule) any { return bunx.TimeOf(&s.Next) }},
})

func scanJob(rows *sql.Rows) (queue.Job, error)           { return jobs.Scan(rows) }
func scanSchedule(rows *sql.Rows) (queue.Schedule, error) { return schedules.Scan(rows) }

const aSchedule = "Schedule"

// PutSchedules implements queue.Store.
func (s *Store) PutSchedules(ctx context.Context, tenant string, all []queue.Schedule) error {
	all = slices.Clone(all)
	for i := range all {
		all[i].Tenant = tenant
	}
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := schedules.Insert(ctx, c, schedules.OnConflict, all...)
		return bunx.Err(err, aSchedule)
	})
}

// DeleteSchedules implements queue.Store.
func (s *Store) DeleteSchedules(ctx context.Context, tenant, kind string, keys []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if len(keys) == 0 {
			_, err := c.Exec(ctx, `DELETE FROM tc_job_schedules WHERE tenant_id = $1 AND kind = $2`, tenant, kind)
			return bunx.Err(err, aSchedule)
		}
		_, err := c.ExecIn(
			ctx, `DELETE FROM tc_job_schedules WHERE tenant_id = $1 AND kind = $2 AND key IN `, keys, tenant,
			kind,
		)
		return bunx.Err(err, aSchedule)
	})
}

// Schedules implements queue.Store.
func (s *Store) Schedules(ctx context.Context, tenant, kind string, keys []string) (all []queue.Schedule, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	if len(keys) == 0 {
		rows, err := c.Rows(ctx, schedules.Select(`WHERE tenant_id = $1 AND kind = $2 ORDER BY key`), tenant, kind)
		all, err = bunx.Scan(rows, err, scanSchedule)
		return all, bunx.Err(err, aSchedule)
	}
	for some := range slices.Chunk(slices.Sorted(slices.Values(keys)), many) {
		rows, err := c.Rows(ctx, schedules.Select(`WHERE tenant_id = $1 AND kind = $2 AND key IN `+
			bunx.In(3, len(some))+` ORDER BY key`), bunx.Args(some, tenant, kind)...)
		found, err := bunx.Scan(rows, err, scanSchedule)
		if err != nil {
			return nil, bunx.Err(err, aSchedule)
		}
		all = append(all, found...)
	}
	return all, nil
}

const eachSchedule = `SELECT tenant_id, kind, key, cron, zone, next_at FROM tc_job_schedules
	WHERE (tenant_id, kind, key) > ($1, $2, $3) ORDER BY tenant_id, kind, key LIMIT $4`

// EachSchedule implements queue.Store.
func (s *Store) EachSchedule(ctx context.Context, after queue.Schedule, n int) ([]queue.Schedule, error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	rows, err := c.Rows(ctx, eachSchedule, after.Tenant, after.Kind, after.Key, n)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (s queue.Schedule, err error) {
		err = rows.Scan(&s.Tenant, &s.Kind, &s.Key, &s.Cron, &s.Zone, bunx.TimeOf(&s.Next))
		return s, err
	})
	return all, bunx.Err(err, aSchedule)
}

// Hasten implements queue.Store.
func (s *Store) Hasten(ctx context.Context, tenant string, all []queue.Schedule) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, o := range all {
			_, err := c.Exec(ctx,
				`UPDATE tc_job_schedules SET next_at = $6 WHERE tenant_id = $1 AND kind = $2 AND key = $3 `+
					`AND cron = $4 AND zone = $5 AND next_at > $6`,
				tenant, o.Kind, o.Key, o.Cron, o.Zone, bunx.At(o.Next))
			if err != nil {
				return bunx.Err(err, aSchedule)
			}
		}
		return nil
	})
}

// Fire implements queue.Store.
func (s *Store) Fire(
	ctx context.Context, now time.Time, n int, next func(due []queue.Schedule) []queue.Job,
) (fired int, err error) {
	err = bunx.Write(ctx, s.db, bunx.AllTenants, func(ctx context.Context, c bunx.Conn) error {
		locked := ""
		if c.Postgres() {
			locked = " FOR UPDATE SKIP LOCKED"
		}
		rows, err := c.Rows(
			ctx, schedules.Select(`WHERE next_at <= $1 ORDER BY next_at LIMIT $2`+locked), bunx.At(now), n,
		)
		due, err := bunx.Scan(rows, err, scanSchedule)
		if err != nil || len(due) == 0 {
			return bunx.Err(err, aSchedule)
		}
		fired = len(due)
		if put := next(due); len(put) > 0 {
			if _, err := jobs.Insert(ctx, c, unlessKey, put...); err != nil {
				return bunx.Err(err, what)
			}
		}
		_, err = schedules.Insert(ctx, c, schedules.Overwrite("next_at"), due...)
		return bunx.Err(err, aSchedule)
	})
	return fired, err
}
