package tenantcontent

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/entity"
)

// storedDatasets looks up datasets. Those of a host that keeps the kind itself have no data here:
// its Source has their rows.
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
		if t, ok := d.app.registry.Type(content.Dataset); ok && t.Visible != nil {
			if err := t.Visible(ctx, id); err != nil {
				return datasets.Stored{}, err
			}
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

// seenEntities looks up what assistants refer to. Of a kind that a host keeps itself, the name is
// known.
type seenEntities struct {
	app  *App
	host []entity.Kind
}

// entity is conversation.Options.Entity.
func (s seenEntities) entity(ctx context.Context, key entity.Key) (conversation.Entity, error) {
	if !slices.Contains(s.host, key.Kind) {
		e, err := s.app.Content.Get(ctx, key.Kind, key.ID)
		out := conversation.Entity{Name: e.Name, Data: e.Data}
		if e.Description != nil {
			out.Description = *e.Description
		}
		return out, err
	}
	a, err := actor.From(ctx)
	if err != nil {
		return conversation.Entity{}, err
	}
	if t, ok := s.app.registry.Type(key.Kind); ok && t.Visible != nil {
		if err := t.Visible(ctx, key.ID); err != nil {
			return conversation.Entity{}, err
		}
	}
	ref, err := s.app.registry.Lookup(ctx, a.Tenant, key.Kind, key.ID)
	return conversation.Entity{Name: ref.Name}, err
}
