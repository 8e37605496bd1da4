package orders_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content/datasets/datasetstest"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/examples/dataset/orders"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestSource: a host opens its own database here.
func TestSource(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		datasetstest.Test(t, func(t *testing.T) datasetstest.Fixture {
			is, source := is.New(t), orders.Source{DB: open(t)}
			_, err := source.DB.ExecContext(t.Context(), orders.Tables)
			is.NoErr(err)
			ten, five := 10.0, -5.5
			for i, o := range []orders.Order{
				{Item: "chair", Amount: &ten, Paid: true}, {Item: "Table", Amount: &five}, {Item: "CHAIR"},
				{Item: "100% 'wool'_", Amount: &ten},
			} {
				o.TenantID, o.No = "acme", int64(i)
				is.NoErr(source.Insert(t.Context(), o))
			}
			sales := entity.Ref{Kind: "dataset", ID: "01932e00-0000-7000-8000-000000000001", Name: "Sales"}
			is.NoErr(source.Show(t.Context(), "acme", sales.ID))
			return datasetstest.Fixture{
				Source: source, Actor: actor.Actor{Tenant: "acme", User: "jo"}, Elsewhere: "evil", Dataset: sales,
			}
		})
	})
}
