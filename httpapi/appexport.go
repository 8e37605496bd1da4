package httpapi

import (
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/errs"
)

// appExportRoutes serves the archives of single apps.
type appExportRoutes struct{ *api }

// routes returns the rows of the route table, unless the host keeps apps itself.
func (a appExportRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:     post,
			Pattern:    "/api/apps/:id/_export",
			Name:       "exportApp",
			Grants:     programs,
			Heavy:      rest.Brief,
			Permission: actor.Superuser,
			AnyType:    true,
			Options:    rest.NoOptions{},
			Summary:    "The archive of an app",
			Gives:      openapi.OK(openapi.Bytes("application/gzip")),
			Fails:      []int{400, 403},
			Handle:     a.exportApp,
		},
	}
}

// exportApp serves POST /api/apps/{id}/_export: 200 and the archive of the app with what it needs,
// as POST /api/_bundle makes it, streamed; 404; 400 for a draft; 403.
func (a appExportRoutes) exportApp(r *rest.Request) (rest.Reply, error) {
	ref, err := a.Apps.Ref(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	if ref.Draft {
		return rest.Reply{}, errs.New(errs.Invalid, "This is the draft of an app: export the app itself.")
	}
	e, err := a.Bundles.ExportManifest(r.Context(), bundles.Manifest{
		Name:    ref.Name,
		Entries: []bundles.Entry{{Type: string(apps.Kind), EntityID: ref.ID}},
	})
	return streamedArchive(r, e, err)
}
