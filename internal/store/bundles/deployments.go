package bunstore

import (
	"context"
	"database/sql"
	"slices"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// batch is the number of deployments that one statement writes.
const batch = 500

// deployment is a row of tc_deployments.
type deployment struct {
	tenant, source, bundle string
	bundles.Deployment
}

// deploymentTable has the columns of a deployment. Readers pass the tenant, the source and the
// bundle.
var deploymentTable = bunx.NewTable("tc_deployments", "d", []bunx.Column[deployment]{
	{Name: "tenant_id", Key: true, Value: func(d *deployment) any { return d.tenant }},
	{Name: "source_tenant", Key: true, Value: func(d *deployment) any { return d.source }},
	{Name: "bundle_id", Key: true, Value: func(d *deployment) any { return d.bundle }},
	{Name: "kind", Key: true, Field: func(d *deployment) any { return (*string)(&d.Kind) }},
	{Name: "entity_id", Key: true, Field: func(d *deployment) any { return &d.ID }},
	{Name: "mark", Field: func(d *deployment) any { return &d.Fingerprint }},
})

// Deployed implements bundles.Store.
func (s *Store) Deployed(ctx context.Context, tenant, source, bundleID string) ([]bundles.Deployment, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, `SELECT `+deploymentTable.Qualified+
		`, (SELECT count(*) FROM tc_deployments o WHERE o.tenant_id = $1
			AND o.kind = d.kind AND o.entity_id = d.entity_id) > 1 -- an EXISTS of the others reads the whole tenant on SQLite
		FROM tc_deployments d WHERE d.tenant_id = $1 AND d.source_tenant = $2 AND d.bundle_id = $3 ORDER BY d.kind, d.entity_id`,
		tenant, source, bundleID)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (bundles.Deployment, error) {
		var d deployment
		err := rows.Scan(append(deploymentTable.Dest(&d), &d.Shared)...)
		return d.Deployment, err
	})
	return all, bunx.Err(err, "Deployment")
}

// Fingerprints implements bundles.Store.
func (s *Store) Fingerprints(
	ctx context.Context, tenant, source string, kind entity.Kind, ids []string,
) (map[string]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	fingerprints := map[string]string{}
	// Without statistics, || keeps PostgreSQL from the index by source, since all rows may have the
	// same source.
	rows, err := c.Find(ctx, bunx.Lookup{
		Columns: "entity_id, mark", Table: "tc_deployments",
		Where: "tenant_id = $1 AND kind = $2 AND ($3 = '' OR source_tenant || '' = $3)", Key: "entity_id",
	}, ids, tenant, string(kind), source)
	return fingerprints, bunx.Err(bunx.ScanMap(rows, err, fingerprints), "Deployment")
}

// AllFingerprints implements bundles.Store.
func (s *Store) AllFingerprints(
	ctx context.Context, tenant, source string, kind entity.Kind,
) (map[string]string, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	fingerprints := map[string]string{}
	rows, err := c.Rows(ctx,
		`SELECT DISTINCT entity_id, mark FROM tc_deployments WHERE tenant_id = $1 AND source_tenant = $2 AND kind = $3`,
		tenant, source, string(kind))
	return fingerprints, bunx.Err(bunx.ScanMap(rows, err, fingerprints), "Deployment")
}

// SetDeployed implements bundles.Store.
func (s *Store) SetDeployed(ctx context.Context, tenant, source, bundleID string, all []bundles.Deployment) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx, `DELETE FROM tc_deployments WHERE tenant_id = $1 AND source_tenant = $2 AND bundle_id = $3`,
			tenant, source, bundleID,
		)
		if err != nil {
			return bunx.Err(err, "Deployment")
		}
		return s.AddDeployed(ctx, tenant, source, bundleID, all)
	})
}

// AddDeployed implements bundles.Store.
func (s *Store) AddDeployed(ctx context.Context, tenant, source, bundleID string, more []bundles.Deployment) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(more, batch) {
			rows, columns := make([]deployment, len(some)), make([][]string, 3)
			for i, d := range some {
				rows[i] = deployment{tenant, source, bundleID, d}
				columns[0], columns[1], columns[2] = append(
					columns[0], string(d.Kind),
				), append(columns[1], d.ID), append(columns[2], d.Fingerprint)
			}
			if _, err := deploymentTable.Insert(ctx, c, deploymentTable.OnConflict, rows...); err != nil {
				return bunx.Err(err, "Deployment")
			}
			_, err := c.Exec(ctx, `WITH d (kind, id, mark) AS `+c.Among(3, 3)+
				` UPDATE tc_deployments SET mark = d.mark FROM d
				WHERE tenant_id = $1 AND source_tenant || '' = $2 AND tc_deployments.kind = d.kind AND entity_id = d.id AND tc_deployments.mark <> d.mark
				AND `+c.Match(4, "tc_deployments.kind", "entity_id"), tenant,
				source, bunx.Keys(columns...), bunx.Keys(columns[:2]...))
			if err != nil {
				return bunx.Err(err, "Deployment")
			}
		}
		return nil
	})
}

// ForgetDeployed implements bundles.Store.
func (s *Store) ForgetDeployed(ctx context.Context, tenant, source string, kind entity.Kind, ids []string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(ids, batch) {
			_, err := c.Exec(ctx,
				`DELETE FROM tc_deployments WHERE tenant_id = $1 AND source_tenant <> $2 AND kind = $3 `+
					`AND entity_id IN `+
					bunx.In(4, len(some)), bunx.Args(some, tenant, source, string(kind))...)
			if err != nil {
				return bunx.Err(err, "Deployment")
			}
		}
		return nil
	})
}

// Targets implements bundles.Store.
func (s *Store) Targets(ctx context.Context, source string) ([]string, error) {
	ctx, c := bunx.For(ctx, s.db, bunx.AllTenants)
	rows, err := c.Rows(
		ctx, `SELECT DISTINCT tenant_id FROM tc_deployments WHERE source_tenant = $1 ORDER BY tenant_id`,
		source,
	)
	all, err := bunx.Scan(rows, err, bunx.Text)
	return all, bunx.Err(err, "Deployment")
}

// ForgetSource implements bundles.Store.
func (s *Store) ForgetSource(ctx context.Context, tenant, source string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `DELETE FROM tc_deployments WHERE tenant_id = $1 AND source_tenant = $2`, tenant, source)
		return bunx.Err(err, "Deployment")
	})
}
