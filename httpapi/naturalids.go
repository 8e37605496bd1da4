package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

const kindDataset entity.Kind = "dataset"

// namedKinds are the parameters of paths that name an entity beside the one that the path is of,
// with its kind. entityId has the kind that entityType names.
var namedKinds = map[string]entity.Kind{"datasetId": kindDataset, "tagId": "tag"}

// namesEntities reports whether a path has such a parameter.
func namesEntities(pattern string) bool {
	return slices.ContainsFunc(strings.Split(pattern, "/"), func(segment string) bool {
		name, is := strings.CutPrefix(segment, ":")
		return is && (name == "entityId" || namedKinds[name] != "")
	})
}

// nameEntities replaces natural ids in such parameters by ids, before a handler reads them.
func (a *api) nameEntities(r *rest.Request) error {
	for i, p := range r.Params {
		kind := namedKinds[p.Key]
		if p.Key == "entityId" {
			kind = entity.Kind(r.Param("entityType"))
		}
		id, err := a.entityID(r.Context(), kind, p.Value)
		if err != nil {
			return err
		}
		r.Params[i].Value = id
	}
	return nil
}

// entityID returns the id of an entity that is named by its natural id, such as jo:sales. Any other
// text is returned as it is, also the natural id of nothing: what takes an id says that there is
// none.
func (a *api) entityID(ctx context.Context, kind entity.Kind, named string) (string, error) {
	if kind == "" || !strings.Contains(named, ":") {
		return named, nil
	}
	id, err := named, error(nil)
	switch kind {
	case apps.Kind:
		shown, failed := a.Apps.Get(ctx, named)
		id, err = shown.ID, failed
	case assistants.Kind:
		shown, failed := a.Assistants.Get(ctx, named)
		id, err = shown.ID, failed
	default:
		e, failed := a.Content.Get(ctx, kind, named)
		id, err = e.ID, failed
	}
	if errs.CodeOf(err) == errs.NotFound {
		return named, nil
	}
	return id, err
}
