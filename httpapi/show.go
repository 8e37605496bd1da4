package httpapi

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/agents"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// shownAt are the paths at which a GET shows an entity of a kind, and the member of its answer that
// has its id, "" if that has several parts. Each part of such an id stands for one %.
var shownAt = map[entity.Kind]struct{ path, id string }{
	aiinstr.Kind:                {"/api/ai-instructions/%", "id"},
	colors.Kind:                 {"/api/colors/%", "key"},
	apps.Kind:                   {"/api/apps/%", "id"},
	agents.Kind:                 {"/api/apps/%/agents/%", ""},
	messages.KindEvent:          {"/api/apps/%/events/%", ""},
	messages.KindMessage:        {"/api/apps/%/messages/%", ""},
	assistants.Kind:             {"/api/assistants/%", "id"},
	domains.Kind:                {"/api/domains/%", "id"},
	sessions.KindToken:          {"/api/tokens/%", "id"},
	sessions.KindAppToken:       {"/api/apps/%/tokens/%", ""},
	sessions.KindAssistantToken: {"/api/assistants/%/tokens/%", ""},
	sessions.KindDomainToken:    {"/api/domains/%/tokens/%", ""},
	sessions.KindWebhookToken:   {"/api/apps/%/webhook-tokens/%", ""},
	bundles.Kind:                {"/api/bundles/%", "id"},
	bundles.KindEntry:           {"/api/bundles/%/entries/%", ""},
	tenants.Kind:                {"/api/tenant", "id"},
	entity.KindUser:             {"/api/users/%", "username"},
	entity.KindTeam:             {"/api/teams/%", "id"},
	entity.KindMember:           {"/api/teams/%/members/%", ""},
	comments.Kind:               {"/api/comments/%", "id"},
	files.KindUpload:            {"/api/uploads/%", "id"},
	files.KindDownload:          {"/api/downloads/%", "id"},
}

// show is Loopback.Show.
func (a *api) show(
	ctx context.Context, tenant string, of entity.Key, row any,
) (id string, shown json.RawMessage, err error) {
	if c, ok := row.(colors.Color); ok {
		shown, err = hal.Append(make([]byte, 0, 512), colorRoutes{a}.color(c))
		return c.Key, shown, err
	}
	who, err := actor.From(ctx)
	if err != nil || who.Tenant != tenant {
		who = actor.Actor{Tenant: tenant, User: "-"}
	}
	who.Superuser, who.AI = true, true
	who.ReadOnly = of.Kind == sessions.KindWebhookToken // which sees no keys
	at, ok := shownAt[of.Kind]
	if !ok {
		i := slices.IndexFunc(content.Kinds(), func(k content.KindInfo) bool { return k.Kind == of.Kind })
		if i < 0 || slices.Contains(a.HostKinds, of.Kind) {
			return "", nil, nil
		}
		if e, ok := row.(content.Entity); ok {
			routes := entityKind{api: a, KindInfo: content.Kinds()[i]}
			shown, err = hal.Append(make([]byte, 0, 1024), routes.resource(who, e))
			return e.ID, shown, err
		}
		at.path, at.id = "/api/"+content.Kinds()[i].Plural+"/%", "id"
	}
	path := fillPath(at.path, of.ID)
	answer, err := a.Get(ctx, path, who)
	if err != nil || answer.Body == nil {
		return "", nil, err
	}
	return encoded(answer.Body, at.path, at.id)
}

// fillPath puts the parts of an id, which slashes part, into a path.
func fillPath(path, id string) string {
	segments := strings.Split(path, "/")
	parts := strings.SplitN(id, "/", strings.Count(path, "%"))
	for i, s := range segments {
		if s == "%" && len(parts) > 0 {
			segments[i], parts = url.PathEscape(parts[0]), parts[1:]
		}
	}
	return strings.Join(segments, "/")
}

// encoded returns the JSON of the body of an answer, and the member of it that is the id; "" stands
// for what the link to itself has for each % of a path.
func encoded(body any, path, member string) (id string, shown json.RawMessage, err error) {
	if shown, err = hal.Append(make([]byte, 0, 512), body); err != nil {
		return "", nil, err
	}
	if member == "" {
		return idOfSelf(shown, path), shown, nil
	}
	rawjson.Each(shown, func(name string, value json.RawMessage) {
		if name == member {
			id, _ = rawjson.Text(value)
		}
	})
	return id, shown, nil
}

// idOfSelf returns the parts of the link of an entity to itself that stand for each % of a path,
// with slashes between them.
func idOfSelf(shown json.RawMessage, path string) string {
	var body struct {
		Links struct {
			Self struct{ Href string }
		} `json:"_links"`
	}
	if json.Unmarshal(shown, &body) != nil {
		return ""
	}
	form, segments := strings.Split(path, "/"), strings.Split(body.Links.Self.Href, "/")
	if len(segments) < len(form) {
		return ""
	}
	var parts []string
	for i, s := range segments[len(segments)-len(form)+1:] {
		if form[i+1] != "%" {
			continue
		}
		part, err := url.PathUnescape(s)
		if err != nil {
			return ""
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/")
}
