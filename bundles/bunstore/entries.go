package bunstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// entry is the table's shape.
type entry struct {
	bun.BaseModel `bun:"table:tc_bundle_entries,alias:e"`

	TenantID  string `bun:",pk"`
	ID        string `bun:"id,pk"`
	BundleID  string `bun:"bundle_id"`
	Type      string
	EntityID  string `bun:"entity_id"`
	Data      string
	CreatedAt bunx.Time
	UpdatedAt bunx.Time
}

func (r entry) entry() bundles.Entry {
	return bundles.Entry{
		Tenant: r.TenantID, ID: r.ID, BundleID: r.BundleID, Type: r.Type, EntityID: r.EntityID, Data: json.RawMessage(r.Data),
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time,
	}
}

var entryList = bunx.List[entry]{
	Key: "id", Order: "createdAt",
	Sorts: []bunx.Sort[entry]{
		{Field: "createdAt", Column: "created_at", Value: func(r entry) string { return r.CreatedAt.String() }},
		{Field: "type", Column: "type", Value: func(r entry) string { return r.Type }},
		{Field: "updatedAt", Column: "updated_at", Value: func(r entry) string { return r.UpdatedAt.String() }},
	},
}

// Entries implements bundles.Store.
func (s *Store) Entries(ctx context.Context, tenant, bundleID string, q paging.Query) (paging.Page[bundles.Entry], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows := c.NewSelect().Model((*entry)(nil)).Where("e.tenant_id = ?", tenant).Where("e.bundle_id = ?", bundleID)
	page, err := bunx.Page(ctx, rows, entryList, func(r entry) string { return r.ID }, q)
	return paging.Map(page, entry.entry), err
}

// Entry implements bundles.Store.
func (s *Store) Entry(ctx context.Context, tenant, bundleID, id string) (bundles.Entry, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return getEntry(ctx, c.NewSelect(), tenant, bundleID, id)
}

func getEntry(ctx context.Context, q *bun.SelectQuery, tenant, bundleID, id string) (bundles.Entry, error) {
	var r entry
	err := q.Model(&r).Where("e.tenant_id = ?", tenant).Where("e.bundle_id = ?", bundleID).Where("e.id = ?", id).Scan(ctx)
	if err != nil {
		return bundles.Entry{}, bunx.Err(err, "Entry")
	}
	return r.entry(), nil
}

// check checks the guard of a write to an entry, if it has one.
func check(ctx context.Context, c bunx.Conn, tenant, bundleID, id string) error {
	if guard.Of(ctx, "bundle-entry") == nil {
		return nil
	}
	e, err := getEntry(ctx, c.Lock(c.NewSelect()), tenant, bundleID, id)
	if err != nil {
		return err
	}
	return guard.Check(ctx, "bundle-entry", e)
}

// MeasureEntries implements bundles.Store.
func (s *Store) MeasureEntries(ctx context.Context, tenant, bundleID string) (entries, bytes int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var id string
	if err := c.One(ctx, "Bundle", `SELECT id FROM tc_bundles WHERE tenant_id = $1 AND id = $2`+c.ForUpdate(), []any{tenant, bundleID}, &id); err != nil {
		return 0, 0, err
	}
	err = c.One(ctx, "Bundle", `SELECT count(*), coalesce(sum(octet_length(data)), 0) FROM tc_bundle_entries WHERE tenant_id = $1 AND bundle_id = $2`,
		[]any{tenant, bundleID}, &entries, &bytes)
	return entries, bytes, err
}

// InsertEntry implements bundles.Store.
func (s *Store) InsertEntry(ctx context.Context, tenant string, e bundles.Entry) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if r := e.Ref; r != nil && (r.Kind == "user" || r.Kind == "team") {
			err := c.HoldPrincipal(ctx, tenant, e.EntityID)
			if errs.CodeOf(err) == errs.Forbidden {
				err = errs.New(errs.Invalid, "The %s %s is not there any more.", r.Kind, e.EntityID)
			}
			if err != nil {
				return err
			}
		}
		_, err := c.NewInsert().Model(&entry{
			TenantID: tenant, ID: e.ID, BundleID: e.BundleID, Type: e.Type, EntityID: e.EntityID, Data: string(e.Data),
			CreatedAt: bunx.At(e.CreatedAt), UpdatedAt: bunx.At(e.UpdatedAt),
		}).Exec(ctx)
		return bunx.Err(err, "This entry of the bundle")
	})
}

// SetData implements bundles.Store.
func (s *Store) SetData(ctx context.Context, tenant, bundleID, id string, data json.RawMessage, at time.Time) (e bundles.Entry, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := check(ctx, c, tenant, bundleID, id); err != nil {
			return err
		}
		n, err := c.Exec(ctx, `UPDATE tc_bundle_entries SET data = $4, updated_at = $5 WHERE tenant_id = $1 AND bundle_id = $2 AND id = $3`,
			tenant, bundleID, id, string(data), bunx.At(at))
		if err := bunx.Found(n, err, "Entry"); err != nil {
			return err
		}
		e, err = s.Entry(ctx, tenant, bundleID, id)
		return err
	})
	return e, err
}

// DeleteEntry implements bundles.Store.
func (s *Store) DeleteEntry(ctx context.Context, tenant, bundleID, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := check(ctx, c, tenant, bundleID, id); err != nil {
			return err
		}
		n, err := c.Exec(ctx, `DELETE FROM tc_bundle_entries WHERE tenant_id = $1 AND bundle_id = $2 AND id = $3`, tenant, bundleID, id)
		return bunx.Found(n, err, "Entry")
	})
}
