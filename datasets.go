package tenantcontent

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/datasets"
)

// storedDatasets looks up datasets. Those of a host that keeps the kind itself have no data here: its Source has their rows.
type storedDatasets struct {
	app  *App
	host bool
}

// Dataset implements datasets.Content.
func (d storedDatasets) Dataset(ctx context.Context, id string) (datasets.Stored, error) {
	if d.host {
		a, err := actor.From(ctx)
		if err != nil {
			return datasets.Stored{}, err
		}
		ref, err := d.app.registry.Lookup(ctx, a.Tenant, content.Dataset, id)
		return datasets.Stored{Ref: ref}, err
	}
	e, err := d.app.Content.Get(ctx, content.Dataset, id)
	if err != nil {
		return datasets.Stored{}, err
	}
	return datasets.Stored{Ref: e.Ref(), Data: e.Data, Version: e.Version()}, nil
}
