package httpapi

import (
	"encoding/json"

	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/hal"
)

// commentBody is a Comment as the API writes it. It is encoded by hand because one of its
// parent columns is set, and lists of comments are read often.
type commentBody struct {
	comments.Comment
	user json.RawMessage // the author, for the answer to an edit; nil leaves the member out
}

// Relations implements openapi.Related.
func (commentBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links: []string{
			"inf:comments", "inf:entity", "inf:parent",
		},
		Embeds: openapi.Embeds{"inf:user": openapi.One[userBody]()},
	}
}

// commentShape has the members of a commentBody but for its parents.
type commentShape struct {
	Tenant      string                 `json:"tenant"`
	ID          string                 `json:"id"`
	Message     string                 `json:"message"`
	Public      bool                   `json:"public"`
	UserID      string                 `json:"userId"`
	ParentID    *string                `json:"parentId"`
	Mentions    *[]mentionBody         `json:"mentions"`
	Permissions commentPermissionsBody `json:"permissions"`
	CreatedAt   hal.Time               `json:"createdAt"`
	UpdatedAt   hal.Time               `json:"updatedAt"`
	EditedAt    *hal.Time              `json:"editedAt"`
	// User is the author, in the answer to an edit.
	User *openapi.Resource[userBody] `json:"user,omitempty" null:"true"`
}

type mentionBody struct {
	Username    string  `json:"username"`
	DisplayName *string `json:"displayName"`
}

type commentPermissionsBody struct {
	Edit   bool `json:"edit"`
	Delete bool `json:"delete"`
}

// Shape implements openapi.Shaper.
func (commentBody) Shape() any { return commentShape{} }

// Extras implements openapi.Extended: a comment has a member for each kind of parent.
func (commentBody) Extras() (all []openapi.Extra) {
	for _, p := range commentParents {
		all = append(all, openapi.Extra{Name: p.Column, Body: openapi.One[string](), Null: true})
	}
	return all
}

// commentParents are the ready kinds that can be commented.
var commentParents = comments.Parents()

// AppendJSON implements hal.Appender.
func (c commentBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = hal.AppendString(append(dst, `{"tenant":`...), c.Tenant)
	dst = hal.AppendString(append(dst, `,"id":`...), c.ID)
	dst = hal.AppendString(append(dst, `,"message":`...), c.Message)
	dst = appendBool(append(dst, `,"public":`...), c.Public)
	dst = hal.AppendString(append(dst, `,"userId":`...), c.UserID)
	for _, p := range commentParents {
		var id *string
		if p.Kind == c.Entity.Kind {
			id = &c.Entity.ID
		}
		dst = hal.AppendStringOrNull(append(hal.AppendString(append(dst, ','), p.Column), ':'), id)
	}
	if column := comments.HostColumn(c.Entity.Kind); column != "" {
		dst = hal.AppendString(append(hal.AppendString(append(dst, ','), column), ':'), c.Entity.ID)
	}
	dst = hal.AppendStringOrNull(append(dst, `,"parentId":`...), c.ParentID)
	dst = append(dst, `,"mentions":`...)
	if c.Mentions == nil {
		dst = append(dst, "null"...)
	}
	for i, m := range c.Mentions {
		dst = append(dst, "[,"[min(i, 1)])
		dst = hal.AppendString(append(dst, `{"username":`...), m.Username)
		dst = hal.AppendStringOrNull(append(dst, `,"displayName":`...), m.DisplayName)
		if dst = append(dst, '}'); i == len(c.Mentions)-1 {
			dst = append(dst, ']')
		}
	}
	dst = appendBool(append(dst, `,"permissions":{"edit":`...), c.May.Edit)
	dst = appendBool(append(dst, `,"delete":`...), c.May.Delete)
	dst = hal.AppendTime(append(dst, `},"createdAt":`...), c.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), c.UpdatedAt)
	dst = hal.AppendTimeOrNull(append(dst, `,"editedAt":`...), c.EditedAt)
	if c.user != nil {
		dst = append(append(dst, `,"user":`...), c.user...)
	}
	return append(dst, '}'), nil
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

// activityBody is an Activity as the API writes it. It is encoded by hand because feeds are read
// often.
type activityBody comments.Activity

// Relations implements openapi.Related.
func (activityBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:activities", "inf:comment", "inf:entity"}}
}

// activityShape has the members of an activityBody.
type activityShape struct {
	Tenant     string   `json:"tenant"`
	ID         string   `json:"id"`
	Type       string   `json:"type"`
	EntityType string   `json:"entityType"`
	EntityID   string   `json:"entityId"`
	CommentID  *string  `json:"commentId"`
	UserID     string   `json:"userId"`
	Excerpt    string   `json:"excerpt"`
	CreatedAt  hal.Time `json:"createdAt"`
}

// Shape implements openapi.Shaper.
func (activityBody) Shape() any { return activityShape{} }

// AppendJSON implements hal.Appender.
func (v activityBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = hal.AppendString(append(dst, `{"tenant":`...), v.Tenant)
	dst = hal.AppendString(append(dst, `,"id":`...), v.ID)
	dst = hal.AppendString(append(dst, `,"type":`...), v.Type)
	dst = hal.AppendString(append(dst, `,"entityType":`...), string(v.Entity.Kind))
	dst = hal.AppendString(append(dst, `,"entityId":`...), v.Entity.ID)
	dst = hal.AppendStringOrNull(append(dst, `,"commentId":`...), v.CommentID)
	dst = hal.AppendString(append(dst, `,"userId":`...), v.UserID)
	dst = hal.AppendString(append(dst, `,"excerpt":`...), v.Excerpt)
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), v.CreatedAt)
	return append(dst, '}'), nil
}
