package bunstore

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// scan is a row of tc_domain_scans.
type scan struct {
	tenant, domain string
	domains.ScanState
}

// scanTable has the columns of the last scan of each domain. Readers pass the tenant and the
// domain.
var scanTable = bunx.NewTable("tc_domain_scans", "s", []bunx.Column[scan]{
	{Name: "tenant_id", Key: true, Value: func(s *scan) any { return s.tenant }},
	{Name: "domain_id", Key: true, Value: func(s *scan) any { return s.domain }},
	{Name: "id", Field: func(s *scan) any { return &s.ID }},
	{Name: "phase", Field: func(s *scan) any { return (*string)(&s.Phase) }},
	{Name: "users", Field: func(s *scan) any { return &s.Users }},
	{Name: "groups", Field: func(s *scan) any { return &s.Groups }},
	{Name: "written", Field: func(s *scan) any { return &s.Written }},
	{Name: "total", Field: func(s *scan) any { return &s.Total }},
	{Name: "dry_run", Field: func(s *scan) any { return &s.DryRun }},
	{Name: "error", Field: func(s *scan) any { return &s.Error }},
	{Name: "started_at", Field: func(s *scan) any { return bunx.TimeOf(&s.StartedAt) }},
	{Name: "heard_at", Field: func(s *scan) any { return bunx.TimeOf(&s.HeardAt) }},
	{Name: "finished_at", Field: func(s *scan) any { return bunx.TimeOrNull(&s.FinishedAt) }},
})

// The fixed texts.
var (
	beginScan = scanTable.InsertOne(scanTable.OnConflict +
		` WHERE tc_domain_scans.finished_at IS NOT NULL OR tc_domain_scans.heard_at < ` + scanTable.Extra(1))
	lastScan = scanTable.Select(`WHERE tenant_id = $1 AND domain_id = $2`)
)

// BeginScan implements domains.Store.
func (s *Store) BeginScan(ctx context.Context, tenant, domain string, run domains.ScanState, stale time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		n, err := c.Exec(ctx, beginScan, append(scanTable.Args(&scan{tenant, domain, run}), bunx.At(stale))...)
		if err == nil && n == 0 {
			return errs.New(
				errs.Conflict, "The domain %s is being scanned already: see /api/domains/%s/scan.", domain,
				domain,
			)
		}
		return bunx.Err(err, "Scan")
	})
}

// LockScan implements domains.Store.
func (s *Store) LockScan(ctx context.Context, tenant, domain, id string) error {
	ctx, c := bunx.For(ctx, s.db, tenant)
	err := c.One(ctx, "Scan", `SELECT id FROM tc_domain_scans WHERE tenant_id = $1 AND domain_id = $2 AND id = $3`+
		c.ForUpdate(),
		[]any{tenant, domain, id}, &id)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(errs.Conflict, "Another scan of the domain %s has taken the place of this one.", domain)
	}
	return err
}

// UpdateScan implements domains.Store.
func (s *Store) UpdateScan(ctx context.Context, tenant, domain string, run domains.ScanState) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := scanTable.Update(ctx, c, &scan{tenant, domain, run}, bunx.Is{Column: "id", Value: run.ID})
		return bunx.Err(err, "Scan")
	})
}

// LastScan implements domains.Store.
func (s *Store) LastScan(ctx context.Context, tenant, domain string) (domains.ScanState, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var run scan
	err := c.One(ctx, "Scan", lastScan, []any{tenant, domain}, scanTable.Dest(&run)...)
	if errs.CodeOf(err) == errs.NotFound {
		return domains.ScanState{}, nil
	}
	return run.ScanState, err
}
