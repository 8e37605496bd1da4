package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
)

// BeginScan implements domains.Store.
func (s *Store) BeginScan(ctx context.Context, tenant, domain string, run domains.ScanState, stale time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, `INSERT INTO tc_domain_scans
			(tenant_id, domain_id, id, phase, users, groups, written, total, dry_run, error, started_at, heard_at, finished_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
			ON CONFLICT (tenant_id, domain_id) DO UPDATE SET id = excluded.id, phase = excluded.phase, users = excluded.users,
				groups = excluded.groups, written = excluded.written, total = excluded.total, dry_run = excluded.dry_run,
				error = excluded.error, started_at = excluded.started_at, heard_at = excluded.heard_at, finished_at = excluded.finished_at
			WHERE tc_domain_scans.finished_at IS NOT NULL OR tc_domain_scans.heard_at < $14`,
			tenant, domain, run.ID, run.Phase, run.Users, run.Groups, run.Written, run.Total, run.DryRun, run.Error,
			bunx.At(run.StartedAt), bunx.At(run.HeardAt), bunx.AtOrNull(run.FinishedAt), bunx.At(stale))
		if err == nil && n == 0 {
			return errs.New(errs.Conflict, "The domain %s is being scanned already: see /api/domains/%s/scan.", domain, domain)
		}
		return bunx.Err(err, "Scan")
	})
}

// LockScan implements domains.Store.
func (s *Store) LockScan(ctx context.Context, tenant, domain, id string) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err := c.One(ctx, "Scan", `SELECT id FROM tc_domain_scans WHERE tenant_id = $1 AND domain_id = $2 AND id = $3`+c.ForUpdate(),
		[]any{tenant, domain, id}, &id)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.Conflict, "Another scan of the domain %s has taken the place of this one.", domain)
	}
	return err
}

// UpdateScan implements domains.Store.
func (s *Store) UpdateScan(ctx context.Context, tenant, domain string, run domains.ScanState) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `UPDATE tc_domain_scans SET phase = $1, users = $2, groups = $3, written = $4, total = $5, error = $6,
			heard_at = $7, finished_at = $8 WHERE tenant_id = $9 AND domain_id = $10 AND id = $11`,
			run.Phase, run.Users, run.Groups, run.Written, run.Total, run.Error, bunx.At(run.HeardAt), bunx.AtOrNull(run.FinishedAt),
			tenant, domain, run.ID)
		return bunx.Err(err, "Scan")
	})
}

// LastScan implements domains.Store.
func (s *Store) LastScan(ctx context.Context, tenant, domain string) (domains.ScanState, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var run domains.ScanState
	var started, heard, finished bunx.Time
	err := c.One(ctx, "Scan", `SELECT id, phase, users, groups, written, total, dry_run, error, started_at, heard_at, finished_at
		FROM tc_domain_scans WHERE tenant_id = $1 AND domain_id = $2`, []any{tenant, domain},
		&run.ID, &run.Phase, &run.Users, &run.Groups, &run.Written, &run.Total, &run.DryRun, &run.Error, &started, &heard, &finished)
	if errs.CodeOf(err) == errs.NotFound {
		return domains.ScanState{}, nil
	}
	run.StartedAt, run.HeardAt, run.FinishedAt = started.Time, heard.Time, finished.Ptr()
	return run, err
}
