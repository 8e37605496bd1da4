package bunstore

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/paging"
)

// entryTable has the columns of an entry.
var entryTable = bunx.NewTable("tc_bundle_entries", "e", []bunx.Column[bundles.Entry]{
	{Name: "tenant_id", Key: true, Field: func(e *bundles.Entry) any { return &e.Tenant }},
	{Name: "id", Key: true, Field: func(e *bundles.Entry) any { return &e.ID }},
	{Name: "bundle_id", Once: true, Field: func(e *bundles.Entry) any { return &e.BundleID }},
	{Name: "type", Once: true, Field: func(e *bundles.Entry) any { return &e.Type }},
	{Name: "entity_id", Once: true, Field: func(e *bundles.Entry) any { return &e.EntityID }},
	{Name: "data", Field: func(e *bundles.Entry) any { return bunx.JSON(&e.Data) }},
	{Name: "created_at", Once: true, Field: func(e *bundles.Entry) any { return bunx.TimeOf(&e.CreatedAt) }},
	{Name: "updated_at", Field: func(e *bundles.Entry) any { return bunx.TimeOf(&e.UpdatedAt) }},
})

func entryKey(e bundles.Entry) string { return e.ID }

var entryList = bunx.List[bundles.Entry]{
	Table: entryTable, Key: "id", Order: "createdAt",
	Sorts: []bunx.Sort[bundles.Entry]{
		{Field: "createdAt", Column: "created_at", Value: func(e bundles.Entry) string {
			return bunx.At(e.CreatedAt).String()
		}},
		{Field: "type", Column: "type", Value: func(e bundles.Entry) string { return e.Type }},
		{Field: "updatedAt", Column: "updated_at", Value: func(e bundles.Entry) string {
			return bunx.At(e.UpdatedAt).String()
		}},
	},
}

// Entries implements bundles.Store.
func (s *Store) Entries(
	ctx context.Context, tenant, bundleID string, q paging.Query,
) (paging.Page[bundles.Entry], error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	of := bunx.Part{
		Where: "e.tenant_id = $1 AND e.bundle_id = $2",
		Args:  []any{tenant, bundleID},
		Total: bunx.Total("bundle_entries", "= $2"),
	}
	return bunx.Page(ctx, c, entryList, of, entryKey, q)
}

// Entry implements bundles.Store.
func (s *Store) Entry(ctx context.Context, tenant, bundleID, id string) (bundles.Entry, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	return getEntry(ctx, c, tenant, bundleID, id, "")
}

var selectEntry = entryTable.Select(`WHERE tenant_id = $1 AND bundle_id = $2 AND id = $3`)

func getEntry(ctx context.Context, c bunx.Conn, tenant, bundleID, id, lock string) (bundles.Entry, error) {
	e, err := entryTable.Scan(c.Row(ctx, selectEntry+lock, tenant, bundleID, id))
	if err != nil {
		return bundles.Entry{}, bunx.Err(err, "Entry")
	}
	return e, nil
}

// check checks the guard of a write to an entry, if it has one.
func check(ctx context.Context, c bunx.Conn, tenant, bundleID, id string) error {
	if guard.Of(ctx, "bundle-entry") == nil {
		return nil
	}
	e, err := getEntry(ctx, c, tenant, bundleID, id, c.ForUpdate())
	if err != nil {
		return err
	}
	return guard.Check(ctx, "bundle-entry", e)
}

// MeasureEntries implements bundles.Store.
func (s *Store) MeasureEntries(ctx context.Context, tenant, bundleID string) (entries, bytes int, err error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var id string
	if err := c.One(
		ctx, "Bundle", `SELECT id FROM tc_bundles WHERE tenant_id = $1 AND id = $2`+c.ForUpdate(),
		[]any{tenant, bundleID}, &id,
	); err != nil {
		return 0, 0, err
	}
	err = c.One(
		ctx, "Bundle", "SELECT "+bunx.Total("bundle_entries", "= $2")+", "+bunx.Total("bundle_data", "= $2"),
		[]any{tenant, bundleID}, &entries, &bytes,
	)
	return entries, bytes, err
}

// InsertEntry implements bundles.Store.
func (s *Store) InsertEntry(ctx context.Context, tenant string, e bundles.Entry) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if r := e.Ref; r != nil && (r.Kind == entity.KindUser || r.Kind == entity.KindTeam) {
			err := c.HoldPrincipal(ctx, tenant, e.EntityID)
			if errs.CodeOf(err) == errs.Forbidden {
				err = errs.New(errs.Invalid, "The %s %s is not there any more.", r.Kind, e.EntityID)
			}
			if err != nil {
				return err
			}
		}
		e.Tenant = tenant
		_, err := entryTable.Insert(ctx, c, "", e)
		return bunx.Err(err, "This entry of the bundle")
	})
}

// SetData implements bundles.Store.
func (s *Store) SetData(
	ctx context.Context, tenant, bundleID, id string, data json.RawMessage, at time.Time,
) (e bundles.Entry, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if e, err = getEntry(ctx, c, tenant, bundleID, id, c.ForUpdate()); err != nil {
			return err
		}
		if err := guard.Check(ctx, "bundle-entry", e); err != nil {
			return err
		}
		e.Data, e.UpdatedAt = data, at
		_, err := entryTable.Update(ctx, c, &e)
		return bunx.Err(err, "Entry")
	})
	return e, err
}

// DeleteEntry implements bundles.Store.
func (s *Store) DeleteEntry(ctx context.Context, tenant, bundleID, id string) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if err := check(ctx, c, tenant, bundleID, id); err != nil {
			return err
		}
		n, err := c.Exec(
			ctx, `DELETE FROM tc_bundle_entries WHERE tenant_id = $1 AND bundle_id = $2 AND id = $3`, tenant,
			bundleID, id,
		)
		return bunx.Found(n, err, "Entry")
	})
}
