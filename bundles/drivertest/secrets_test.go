package drivertest

import (
	"context"
	"encoding/json"
	"iter"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
)

// notes is a Transferer of one note per tenant, which is all free JSON.
type notes struct {
	entity.Transferer
	data        map[string]json.RawMessage // by tenant
	mask, keeps bool
}

func (n notes) Export(_ context.Context, tenant string, ids []string) iter.Seq2[entity.Row, error] {
	return func(yield func(entity.Row, error) bool) {
		row := entity.Row{Key: entity.Key{Kind: "note", ID: ids[0]}, JSON: n.data[tenant]}
		if n.mask {
			row.JSON = entity.MaskSecrets(row.JSON)
		}
		yield(row, nil)
	}
}

func (n notes) Import(_ context.Context, tenant string, rows []entity.Row, _ entity.ImportOptions) ([]entity.ImportAction, []string, error) {
	data := rows[0].JSON
	if n.keeps {
		data, _ = entity.KeepSecrets(data, n.data[tenant])
	}
	n.data[tenant] = data
	return []entity.ImportAction{entity.Updated}, nil, nil
}

// faults counts what a check finds.
type faults int

func (f *faults) Fail()      { *f++ }
func (f *faults) FailNow()   { *f++ }
func (f *faults) Log(...any) {}

// TestSecretsAreChecked: a Transferer that does not mask, or does not keep, is found out.
func TestSecretsAreChecked(t *testing.T) {
	for _, n := range []notes{{mask: true, keeps: true}, {mask: true}, {keeps: true}, {}} {
		n.data = map[string]json.RawMessage{}
		found := new(faults)
		testSecrets(t, &fixture{I: is.NewRelaxed(found), t: t, ctx: t.Context(), here: "acme", there: "evil", Fixture: Fixture{
			Kind: "note", Transferer: n, Make: func(*testing.T, string, int) string { return "1" },
			Free: &Free{
				Set: func(_ *testing.T, tenant, _ string, data json.RawMessage) { n.data[tenant] = data },
				Get: func(_ *testing.T, tenant, _ string) json.RawMessage { return n.data[tenant] },
			},
		}})
		is.New(t).Equal(*found == 0, n.mask && n.keeps)
	}
}
