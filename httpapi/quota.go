package httpapi

import (
	"context"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// growing are the routes that store more, beside those of content and comments: while the tenant
// has no room they are refused. Whatever reads, removes, logs in, manages people and settings, or
// changes what is small goes on.
var growing = []string{
	"importColors",
	"createBundle", "createBundleEntry", "putBundleEntry", "importBundle", "restoreArchive", "restoreFile",
	"createInstruction", "putInstruction",
	"createReply", "putComment",
	"createApp", "putApp", "copyApp", "editApp", "commitAppDraft",
	"deployApp", "migrateApp", "putAppVariable", "putAgent", "triggerAgent", "replayAppInvocation",
	"createAssistant", "putAssistant", "editAssistant",
	"commitAssistantDraft", "putAssistantSkill", "putAssistantSecret",
}

// takingFile are the routes that store the file in their body.
var takingFile = []string{"createUpload", "putAppFile", "putAssistantFile", "putLibraryFile", "putAvatar"}

// grows reports whether a route stores more.
func grows(route *rest.Route) bool {
	verb, noun := "create", strings.TrimPrefix(route.Name, "create")
	if noun == route.Name {
		verb, noun = "put", strings.TrimPrefix(route.Name, "put")
	}
	ofContent := slices.ContainsFunc(content.Kinds(), func(k content.KindInfo) bool {
		return noun == content.Noun(k.Kind)
	})
	return slices.Contains(growing, route.Name) || slices.Contains(takingFile, route.Name) || ofContent ||
		verb == "create" && strings.HasSuffix(noun, "Comment")
}

// formOverhead is how many bytes of a form are not the file.
const formOverhead = 1 << 10

// room returns errs.Full if the tenant has no room for what a route that grows stores, before the
// body is read. How large a file will be is noted for what stores it.
func (a *api) room(r *rest.Request) error {
	route := r.Route
	n := max(0, r.ContentLength)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		n = max(0, n-formOverhead)
	}
	switch {
	case slices.Contains(takingFile, route.Name):
		r.Ctx = blobs.WithSize(r.Ctx, n)
	case route.File: // an archive, which is larger when it is unpacked, or replaces what is there
		n = 0
	}
	return a.Quotas.Check(r.Context(), r.Who.Tenant, n)
}

// storageBody is what a tenant stores and may store, as the API writes it.
type storageBody struct {
	Used              int64 `json:"usedBytes"`
	Allowed           int64 `json:"allowedBytes"`
	Uploads           int64 `json:"uploadBytes"`
	Downloads         int64 `json:"downloadBytes"`
	Libraries         int64 `json:"libraryBytes"` // with pictures
	Records           int64 `json:"recordBytes"`
	WorkspaceBytes    int64 `json:"workspaceBytes"`
	Workspaces        int   `json:"workspaces"`
	AllowedWorkspaces int   `json:"allowedWorkspaces"`
}

func storage(u tenants.Usage) storageBody {
	return storageBody{
		u.Used(), u.Allowed, u.Uploads, u.Downloads, u.Libraries(), u.Records, u.Workspaces, u.Count,
		u.MaxCount,
	}
}

// storageLimits are those of what the caller's tenant, and the caller, store.
type storageLimits struct {
	Tenant  storageBody `json:"tenant"`
	Uploads usedBody    `json:"userUploads"`
}

// usedBody is how many bytes are used of those that are allowed.
type usedBody struct {
	Used    int64 `json:"usedBytes"`
	Allowed int64 `json:"allowedBytes"`
}

func (a *api) usage(ctx context.Context, tenant string) (tenants.Usage, error) {
	if a.Quotas == nil {
		return tenants.Usage{}, nil
	}
	return a.Quotas.Usage(ctx, tenant)
}

func (a limitRoutes) storageLimits(r *rest.Request) (l storageLimits, err error) {
	u, err := a.usage(r.Context(), r.Who.Tenant)
	if err != nil {
		return l, err
	}
	l.Tenant = storage(u)
	l.Uploads.Used, l.Uploads.Allowed, err = a.Uploads.Used(r.Context())
	return l, err
}
