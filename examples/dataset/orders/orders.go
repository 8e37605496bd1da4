// Package orders has the rows of datasets in a table of the host's. orders_test.go checks that the
// Source keeps its promises.
//
// The program in the folder above imports it.
package orders

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
)

// Order is a row of the host's.
type Order struct {
	bun.BaseModel `bun:"table:orders" json:"-"`

	TenantID string   `bun:",pk" json:"-"`
	No       int64    `bun:",pk" json:"-"`
	Item     string   `json:"item"`
	Amount   *float64 `json:"amount"` // nil: not known yet
	Paid     bool     `json:"paid"`
}

// Tables makes the host's tables: orders, and the datasets that show those of their tenant.
const Tables = `CREATE TABLE orders (tenant_id text, no bigint, item text NOT NULL, amount double precision, paid ` +
	`boolean NOT NULL, PRIMARY KEY (tenant_id, no));
CREATE TABLE order_datasets (tenant_id text, dataset_id text, PRIMARY KEY (tenant_id, dataset_id))`

// Source is the Source of datasets.
type Source struct{ DB *bun.DB }

var _ datasets.Source = Source{}

// Table implements datasets.Source. Datasets that Show does not know have their rows in their data.
func (s Source) Table(ctx context.Context, tenant string, dataset entity.Ref) (datasets.Table, error) {
	ctx, db := tenantcontent.Conn(ctx, s.DB, tenant)
	n, err := db.NewSelect().Table("order_datasets").Where(
		"tenant_id = ? AND dataset_id = ?", tenant, dataset.ID,
	).Count(ctx)
	if err != nil || n == 0 {
		return nil, err
	}
	return table{s.DB, tenant}, nil
}

// Show makes a dataset of a tenant show its orders.
func (s Source) Show(ctx context.Context, tenant, dataset string) error {
	ctx, db := tenantcontent.Conn(ctx, s.DB, tenant)
	_, err := db.ExecContext(ctx, "INSERT INTO order_datasets VALUES (?, ?)", tenant, dataset)
	return err
}

// Insert adds an order.
func (s Source) Insert(ctx context.Context, o Order) error {
	ctx, db := tenantcontent.Conn(ctx, s.DB, o.TenantID)
	_, err := db.ExecContext(
		ctx, "INSERT INTO orders VALUES (?, ?, ?, ?, ?)", o.TenantID, o.No, o.Item, o.Amount, o.Paid,
	)
	return err
}

// table is the orders of a tenant. It reads all of them and selects here: a host with many of them
// writes the filter and the order as SQL.
type table struct {
	db     *bun.DB
	tenant string
}

// Fields implements datasets.Table.
func (table) Fields(context.Context) ([]datasets.Field, error) {
	return []datasets.Field{
		{Name: "item", Type: datasets.String, Label: "Item"},
		{Name: "amount", Type: datasets.Numeric, Label: "Amount"},
		{Name: "paid", Type: datasets.Boolean, Label: "Paid"},
	}, nil
}

// Rows implements datasets.Table.
func (t table) Rows(
	ctx context.Context, filter datasets.Filter, field string, desc bool, limit int,
) ([]json.RawMessage, error) {
	found, err := t.find(ctx, filter)
	if err != nil {
		return nil, err
	}
	if field != "" {
		slices.SortStableFunc(found, func(a, b Order) int { return compare(a.value(field), b.value(field), desc) })
	}
	rows := []json.RawMessage{}
	for _, o := range found[:min(limit, len(found))] {
		row, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Count implements datasets.Table.
func (t table) Count(ctx context.Context, filter datasets.Filter) (int, error) {
	found, err := t.find(ctx, filter)
	return len(found), err
}

// find returns the orders that fit a filter.
func (t table) find(ctx context.Context, filter datasets.Filter) (found []Order, err error) {
	ctx, db := tenantcontent.Conn(ctx, t.db, t.tenant)
	err = db.NewSelect().Model(&found).Where("tenant_id = ?", t.tenant).Order("no").Scan(ctx)
	return slices.DeleteFunc(found, func(o Order) bool {
		return slices.ContainsFunc(filter, func(c datasets.Condition) bool { return !c.Fits(o.value(c.Field)) })
	}), err
}

// value returns the value of a field, as Condition.Fits takes it.
func (o Order) value(field string) any {
	switch {
	case field == "item":
		return o.Item
	case field == "paid":
		return o.Paid
	case o.Amount == nil:
		return nil
	}
	return *o.Amount
}

// compare orders two values of a field: texts ignoring case first, false before true, null last.
func compare(a, b any, desc bool) int {
	if a == nil || b == nil {
		return cmp.Compare(rank(a == nil), rank(b == nil))
	}
	order := 0
	switch a := a.(type) {
	case string:
		b := b.(string)
		order = cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	case float64:
		order = cmp.Compare(a, b.(float64))
	case bool:
		order = cmp.Compare(rank(a), rank(b.(bool)))
	}
	if desc {
		return -order
	}
	return order
}

func rank(is bool) int {
	if is {
		return 1
	}
	return 0
}
