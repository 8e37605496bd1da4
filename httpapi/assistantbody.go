package httpapi

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/hal"
)

// assistantBody is an assistant as the API writes it.
type assistantBody struct {
	Tenant             string                   `json:"tenant"`
	ID                 string                   `json:"id"`
	Name               string                   `json:"name"`
	Slug               *string                  `json:"slug"`
	NaturalID          string                   `json:"naturalId"`
	Description        *string                  `json:"description"`
	Instructions       string                   `json:"instructions"`
	Welcome            *string                  `json:"welcome"`
	Dispatcher         bool                     `json:"dispatcher"`
	Suggestions        []string                 `json:"suggestions"`
	ModelID            *string                  `json:"modelId"`
	Shared             bool                     `json:"shared"`
	Embedded           bool                     `json:"embedded"`
	Data               json.RawMessage          `json:"data"`
	Skills             []assistants.Skill       `json:"skills"`
	OwnerID            string                   `json:"ownerId"`
	FolderID           *string                  `json:"folderId"`
	EditingID          *string                  `json:"editingId"`
	EditingSession     *string                  `json:"editingSession"`
	EditingHeartbeatAt *hal.Time                `json:"editingHeartbeatAt"`
	EditingLockedBy    *string                  `json:"editingLockedBy"`
	EditingHeld        bool                     `json:"editingHeld"`
	CreatedAt          hal.Time                 `json:"createdAt"`
	UpdatedAt          hal.Time                 `json:"updatedAt"`
	Permissions        assistantPermissionsBody `json:"permissions"`
}

// Relations implements openapi.Related.
func (assistantBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"edit", "inf:assistant", "inf:assistant-datasets", "inf:assistant-draft-diff",
			"inf:assistant-files", "inf:assistant-references", "inf:assistant-secrets", "inf:assistant-share",
			"inf:assistant-shares", "inf:assistant-skills", "inf:assistant-tokens", "inf:assistants",
			"inf:assistants-list", "inf:chat", "inf:comments", "inf:draft", "inf:image", "inf:owner",
		},
	}
}

type assistantPermissionsBody struct {
	ChangeOwner bool `json:"changeOwner"`
	Chat        bool `json:"chat"`
	Delete      bool `json:"delete"`
	Edit        bool `json:"edit"`
	Share       bool `json:"share"`
	Write       bool `json:"write"`
}

// assistant encodes an assistant.
func (a assistantRoutes) assistant(v assistants.Shown) hal.Resource {
	type beside struct {
		May              assistantPermissionsBody
		HasDraft, Inside bool
		LockedBy         *string
		Held             bool
		Owner            string // of a draft that of its assistant
		Shared           bool
	}
	may := assistantPermissionsBody(v.Permissions)
	return hal.Resource{Links: a.assistantLinks(v), Row: v,
		Beside: beside{may, v.HasDraft, v.Inside, v.EditLock.LockedBy, v.Held, v.OwnerID, v.Shared},
		Value: assistantBody{
			Tenant: v.Tenant, ID: v.ID, Name: v.Name,
			Slug: v.Slug, NaturalID: v.NaturalID(), Description: v.Description, Instructions: v.Instructions,
			Welcome: v.Welcome, Dispatcher: v.Dispatcher,
			Suggestions: append([]string{}, v.Suggestions...), ModelID: v.ModelID, Shared: v.Shared,
			Embedded: v.Embedded, Data: v.Data, Skills: append([]assistants.Skill{}, v.Skills...),
			OwnerID: v.OwnerID, FolderID: v.FolderID, EditingID: v.EditingID,
			EditingSession: v.EditLock.Session, EditingHeartbeatAt: hal.OrNull(v.EditLock.HeartbeatAt),
			EditingLockedBy: v.EditLock.LockedBy, EditingHeld: v.Held,
			CreatedAt: hal.Time(v.CreatedAt), UpdatedAt: hal.Time(v.UpdatedAt), Permissions: may,
		}}
}

func (a assistantRoutes) assistantLinks(v assistants.Shown) hal.Links {
	self := a.href("assistants", v.ID)
	links := a.owned(hal.Self(self), v.OwnerID).
		With(
			"inf:assistants", a.href("assistants"),
		).With("inf:assistants-list", a.href("assistants-list")).With("inf:assistant-skills", self+"/skills").
		With("inf:assistant-datasets", self+"/datasets").With("inf:assistant-references", self+"/references")
	switch {
	case v.EditingID != nil:
		links.With(
			"inf:assistant", a.href("assistants", *v.EditingID),
		).With("inf:draft", self).With("inf:assistant-draft-diff", a.href("assistants", *v.EditingID, "draft", "diff"))
	default:
		links.With("inf:comments", self+"/comments")
	}
	if v.HasDraft {
		links.With("inf:draft", self+"/draft").With("inf:assistant-draft-diff", self+"/draft/diff")
	}
	if v.Inside {
		links.With(
			"inf:assistant-files", self+"/files",
		).With("inf:assistant-secrets", self+"/secrets").With("inf:assistant-shares", self+"/shares")
		links["inf:assistant-share"] = hal.Link{Href: self + "/shares/{principalId}", Templated: true}
	}
	if v.Permissions.Chat && ai.Configured(a.AI) == nil {
		links.With("inf:chat", self+"/_chat")
	}
	if v.Permissions.Chat && conversation.MakesImages(a.AI) == nil {
		links.With("inf:image", self+"/_image")
	}
	if v.Permissions.Edit {
		links.With("edit", self+"/_edit")
	}
	if v.Permissions.Share {
		links.With("inf:assistant-tokens", self+"/tokens")
	}
	return links
}

// shownAssistant replies with the result of a service: 200 and the assistant.
func (a assistantRoutes) shownAssistant(v assistants.Shown, err error) (rest.Reply, error) {
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.assistant(v))
}
