package httpapi

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
)

// appBody is an app as the API writes it.
type appBody struct {
	Tenant             string          `json:"tenant"`
	ID                 string          `json:"id"`
	Type               string          `json:"type"`
	Name               string          `json:"name"`
	Slug               *string         `json:"slug"`
	NaturalID          string          `json:"naturalId"`
	Description        *string         `json:"description"`
	OwnerID            string          `json:"ownerId"`
	Defn               json.RawMessage `json:"defn"`
	Settings           json.RawMessage `json:"settings"`
	Origin             *string         `json:"origin"`
	LibraryID          *string         `json:"libraryId"` // null for callers that do not see the insides
	EditingID          *string         `json:"editingId"`
	EditingSession     *string         `json:"editingSession"`
	EditingHeartbeatAt *hal.Time       `json:"editingHeartbeatAt"`
	EditingLockedBy    *string         `json:"editingLockedBy"`
	EditingHeld        bool            `json:"editingHeld"`
	Shared             bool            `json:"shared"`
	Favorite           bool            `json:"favorite"`
	IsManaged          bool            `json:"isManaged"`
	// a mask; null for none, and for callers that do not see the insides
	WebhookSecret *string `json:"webhookSecret"`
	FolderID      *string `json:"folderId"`
	Source        *string `json:"source"`
	SourceID      *string `json:"sourceId"`
	// always null: the password of the role of the app's SQL database goes nowhere
	DBRolePassword    *string   `json:"dbRolePassword"`
	DefnUpdatedAt     *hal.Time `json:"defnUpdatedAt"`
	ContentModifiedAt *hal.Time `json:"contentModifiedAt"`
	DeployedAt        *hal.Time `json:"deployedAt"`
	// its webhooks and agents do not run until the owner deploys it
	AwaitsOwner bool               `json:"awaitsOwner,omitempty"`
	DeletedAt   *hal.Time          `json:"deletedAt"`
	CreatedAt   hal.Time           `json:"createdAt"`
	UpdatedAt   hal.Time           `json:"updatedAt"`
	Permissions appPermissionsBody `json:"permissions"`
}

// Relations implements openapi.Related.
func (appBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"edit", "inf:app", "inf:app-agents", "inf:app-chat", "inf:app-dependencies", "inf:app-dependency",
			"inf:app-draft-diff", "inf:app-environment", "inf:app-environment-var", "inf:app-events",
			"inf:app-messages", "inf:app-modernize-manifest", "inf:app-roles", "inf:app-share",
			"inf:app-shares", "inf:app-stats", "inf:app-stats-api", "inf:app-stats-tables",
			"inf:app-suggest-icon", "inf:app-suggestions", "inf:app-suggestions-ai", "inf:app-tag",
			"inf:app-tags", "inf:app-tokens", "inf:app-webhooks", "inf:apps", "inf:apps-drafts",
			"inf:apps-list", "inf:apps-recent", "inf:copy", "inf:deploy", "inf:draft", "inf:entrypoint",
			"inf:export-bundle", "inf:favorite", "inf:library", "inf:library-contents", "inf:migrate",
			"inf:owner", "inf:print[]", "share",
		},
	}
}

type appPermissionsBody struct {
	AssignTags  bool `json:"assignTags"`
	Bind        bool `json:"bind"`
	ChangeOwner bool `json:"changeOwner"`
	Copy        bool `json:"copy"`
	Delete      bool `json:"delete"`
	Edit        bool `json:"edit"`
	Manage      bool `json:"manage"`
	Purge       bool `json:"purge"`
	Restore     bool `json:"restore"`
	Run         bool `json:"run"`
	Share       bool `json:"share"`
	SwitchRoles bool `json:"switchRoles"`
	Write       bool `json:"write"`
}

// app encodes an app. With one it is the answer itself; a row of a list has fewer links.
func (a appRoutes) app(v apps.Shown, one bool) hal.Resource {
	may := appPermissionsBody(v.Permissions)
	type beside struct {
		May                        appPermissionsBody
		Modified                   *hal.Time
		HasDraft, Inside, Examines bool
		Favorite, Chats            bool
		LockedBy                   *string
		Held                       bool
		Owner, Type                string // of a draft those of its app
		Managed, Shared            bool
	}
	also := beside{
		may, hal.OrNull(v.ContentModifiedAt), v.HasDraft, v.Inside, v.Examines, v.Favorite,
		v.Chats, v.EditLock.LockedBy, v.Held, v.OwnerID, string(v.Type), v.IsManaged, v.Shared,
	}
	return hal.Resource{Links: a.appLinks(v, one), Row: v, Beside: also, Value: appBody{
		Tenant: v.Tenant, ID: v.ID, Type: string(v.Type),
		Name: v.Name, Slug: v.Slug, NaturalID: v.NaturalID(), Description: v.Description,
		OwnerID: v.OwnerID, Defn: v.Definition(), Settings: v.Settings,
		Origin: v.Origin, LibraryID: libraryOf(v), EditingID: v.EditingID,
		EditingSession: v.EditLock.Session, EditingHeartbeatAt: hal.OrNull(v.EditLock.HeartbeatAt),
		EditingLockedBy: v.EditLock.LockedBy, EditingHeld: v.Held,
		Shared: v.Shared, Favorite: v.Favorite, IsManaged: v.IsManaged,
		WebhookSecret: webhookSecretOf(v), FolderID: v.FolderID, Source: v.Source, SourceID: v.SourceID,
		DefnUpdatedAt: hal.OrNull(v.DefnUpdatedAt), ContentModifiedAt: hal.OrNull(v.ContentModifiedAt),
		DeployedAt: hal.OrNull(v.DeployedAt), AwaitsOwner: v.AwaitsOwner, DeletedAt: hal.OrNull(v.DeletedAt),
		CreatedAt: hal.Time(v.CreatedAt), UpdatedAt: hal.Time(v.UpdatedAt), Permissions: may,
	}}
}

// libraryOf returns the id of an app's library for callers that see its insides.
func libraryOf(v apps.Shown) *string {
	if !v.Inside {
		return nil
	}
	return &v.LibraryID
}

// webhookSecretOf returns what stands for the secret of an app's webhooks, if there is one, for
// those who see its insides.
func webhookSecretOf(v apps.Shown) *string {
	if !v.Inside || v.WebhookSecret == "" {
		return nil
	}
	mask := entity.Mask
	return &mask
}

func (a appRoutes) appLinks(v apps.Shown, one bool) hal.Links {
	self := a.href("apps", v.ID)
	links := a.owned(hal.Self(self), v.OwnerID).
		With("inf:app", self).With(
		"inf:apps", a.href("apps"),
	).With("inf:apps-list", a.href("apps-list")).With("inf:apps-drafts", a.href("apps", "drafts")).
		With(
			"inf:apps-recent", a.href("apps", "recent"),
		).With("inf:favorite", self+"/favorite").With("inf:app-tags", self+"/tags").With("inf:app-roles", self+"/roles")
	links["inf:app-tag"] = hal.Link{Href: self + "/tags/{tagId}", Templated: true}
	if v.EditingID != nil {
		links.With("inf:draft", self).With("inf:app", a.href("apps", *v.EditingID))
	} else if v.HasDraft {
		links.With("inf:draft", self+"/draft")
	}
	if v.Inside {
		links.With("inf:app-shares", self+"/shares").With("inf:app-stats", self+"/stats").
			With("inf:app-events", self+"/events").With("inf:app-agents", self+"/agents")
		links["inf:app-share"] = hal.Link{Href: self + "/shares/{principalId}", Templated: true}
	}
	if v.Examines {
		links.With("inf:app-messages", self+"/messages")
	}
	if v.Permissions.Write && v.EditingID == nil {
		links.With("inf:app-webhooks", self+"/webhooks")
	}
	if v.Permissions.Share && v.EditingID == nil {
		links.With("inf:app-tokens", self+"/tokens")
	}
	if v.Permissions.Share && v.EditingID == nil {
		links["share"] = hal.Link{Href: self + "/share?token={token}", Templated: true}
	}
	if v.CanView {
		links["inf:print"] = hal.Link{
			All: []hal.Link{{Href: self + "/view?print=portrait"}, {Href: self + "/view?print=landscape"}},
		}
	}
	if v.Permissions.Edit {
		links.With("edit", self+"/_edit")
	}
	if v.CanView && v.Chats {
		links.With(
			"inf:app-chat", self+"/chat",
		).With("inf:app-suggestions", self+"/suggestions").With("inf:app-suggestions-ai", self+"/suggestions-ai")
	}
	if v.Inside {
		links.With("inf:app-stats-api", self+"/stats/api").With("inf:app-stats-tables", self+"/stats/tables")
	}
	if v.Permissions.Write {
		links.With("inf:migrate", self+"/_migrate")
	}
	if v.Permissions.Write && v.EditingID == nil {
		links.With("inf:deploy", self+"/_deploy")
	}
	if v.CanExport {
		links.With("inf:export-bundle", self+"/_export")
	}
	if v.Permissions.Copy && v.EditingID == nil {
		links.With("inf:copy", self+"/_copy")
	}
	if !one {
		return links
	}
	links.With("inf:app-dependencies", self+"/dependencies")
	links["inf:app-dependency"] = hal.Link{Href: self + "/dependencies/{name}", Templated: true}
	if v.Inside {
		links.With(
			"inf:library", a.href("libraries", v.LibraryID),
		).With(
			"inf:library-contents", a.href("libraries", v.LibraryID, "contents"),
		).With("inf:app-environment", self+"/environment")
	}
	if v.Permissions.Write {
		links["inf:app-environment-var"] = hal.Link{Href: self + "/environment/{key}", Templated: true}
	}
	if v.Permissions.Write && v.Chats {
		links.With(
			"inf:app-suggest-icon", self+"/_suggest-icon",
		).With("inf:app-modernize-manifest", self+"/_modernize-manifest")
	}
	if v.CanView {
		links.With("inf:entrypoint", self+"/view")
	}
	switch {
	case v.EditingID != nil:
		links.With("inf:app-draft-diff", a.href("apps", *v.EditingID, "draft", "diff"))
	case v.HasDraft:
		links.With("inf:app-draft-diff", self+"/draft/diff")
	}
	return links
}

// shownApp replies with the result of a service: 200 and the app.
func (a appRoutes) shownApp(v apps.Shown, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.deployedApp(v))
}

// deployedAppBody is an app with what its deploy has done.
type deployedAppBody struct {
	appBody
	Deployed deployedBody `json:"deployed"`
}

// deployedApp encodes an app with what was deployed, if anything.
func (a appRoutes) deployedApp(v apps.Shown) hal.Resource {
	res := a.app(v, true)
	if v.Deployed != nil {
		res.Value = deployedAppBody{res.Value.(appBody), newDeployedBody(*v.Deployed)}
	}
	return res
}

// appsBody is what a page of apps has beside its rows.
type appsBody struct {
	Aggs        aggregatesBody      `json:"aggs"`
	Permissions listPermissionsBody `json:"permissions"`
}

type aggregatesBody struct {
	Total int `json:"total"`
}

// listPermissionsBody is what the caller may do with a list.
type listPermissionsBody struct {
	Create bool `json:"create"`
}

// appRow is an app in the plain list.
type appRow struct {
	ID          string             `json:"id"`
	NaturalID   string             `json:"naturalId"`
	Type        string             `json:"type"`
	Name        string             `json:"name"`
	Slug        *string            `json:"slug"`
	Description *string            `json:"description"`
	OwnerID     string             `json:"ownerId"`
	Shared      bool               `json:"shared"`
	Favorite    bool               `json:"favorite"`
	IsManaged   bool               `json:"isManaged"`
	FolderID    *string            `json:"folderId"`
	EditingID   *string            `json:"editingId"`
	LockedBy    *string            `json:"editingLockedBy"`
	CreatedAt   hal.Time           `json:"createdAt"`
	UpdatedAt   hal.Time           `json:"updatedAt"`
	Permissions appPermissionsBody `json:"permissions"`
}

// rolesBody are the roles in which the caller can see an app.
type rolesBody struct {
	Roles  []roleBody `json:"roles"`
	Switch bool       `json:"switchRoles"`
}

// Relations implements openapi.Related.
func (rolesBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app"}}
}

// dataAccessBody is what an app may read.
type dataAccessBody struct {
	Access   []accessBody `json:"access"`
	Datasets []needBody   `json:"datasets"`
}

// Relations implements openapi.Related.
func (dataAccessBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app"}}
}

// iconsBody are the icons that a model suggests, the best one first.
type iconsBody struct {
	Icon  string   `json:"icon"`
	Icons []string `json:"icons"`
}

// modernizedBody is a manifest as it is and as a model has rewritten it.
type modernizedBody struct {
	Path    string   `json:"path"`
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Changes []string `json:"changes"`
	Added   []string `json:"added"`
}

// datasetInput is what binds an alias to a dataset.
type datasetInput struct {
	DatasetID string             `json:"datasetId"`
	Alias     string             `json:"alias"`
	Label     rest.Field[string] `json:"label"`
}

// newAppInput is a new app.
type newAppInput struct {
	appInput
	Datasets []datasetInput `json:"datasets"`
}

// ownerInput names the new owner of an app or assistant.
type ownerInput struct {
	OwnerID string `json:"ownerId"`
}

// roleBody is a role of an app's manifest as the API writes it.
type roleBody struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Assigned    bool   `json:"assigned"` // to the caller
}

// accessBody is a rule of a manifest as the API writes it.
type accessBody struct {
	Methods     []string `json:"methods"`
	Path        string   `json:"path"`
	Description string   `json:"description"`
}

// needBody is a dataset that a manifest declares as the API writes it.
type needBody struct {
	Alias       string  `json:"alias"`
	Description string  `json:"description"`
	DatasetID   *string `json:"datasetId"` // null: none is bound to the alias
}
