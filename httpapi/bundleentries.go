package httpapi

import (
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/principals"
)

// versions are what a bundle has beside its row: the versions of its entries.
type versions []bundles.Entry

// AppendJSON implements hal.Appender.
func (v versions) AppendJSON(dst []byte) ([]byte, error) {
	for _, e := range v {
		dst = append(dst, e.Version()...)
	}
	return dst, nil
}

// entryBody is a BundleEntry as the API writes it, with every reference column. Only the column of
// its type is set.
type entryBody struct {
	bundles.Entry
	column string        // of the type
	found  *hal.Resource // the entity that it refers to; looked is false if it was not looked up
	looked bool
}

// resolvedKinds are the kinds that a resolved entry has a member for, null for all but its own.
var resolvedKinds = []entity.Kind{
	"report", "dataset", "query", "datasource", "team", "user",
	"job", "template", "assistant", "library", "letterhead", "code",
}

// MarshalJSON implements json.Marshaler.
func (e entryBody) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

// entryShape has the members of an entryBody but for those that refer to its entity.
type entryShape struct {
	Tenant    string          `json:"tenant"`
	ID        string          `json:"id"`
	BundleID  string          `json:"bundleId"`
	Type      string          `json:"type"`
	Data      json.RawMessage `json:"data"`
	CreatedAt hal.Time        `json:"createdAt"`
	UpdatedAt hal.Time        `json:"updatedAt"`
}

// Shape implements openapi.Shaper.
func (entryBody) Shape() any { return entryShape{} }

// Extras implements openapi.Extended: an entry has a column for each type of entries, and, when its
// entity has been looked up, a member for each kind.
func (entryBody) Extras() (all []openapi.Extra) {
	for _, column := range entryColumns {
		all = append(all, openapi.Extra{Name: column, Body: openapi.One[string](), Null: true})
	}
	for _, kind := range resolvedKinds {
		all = append(all, openapi.Extra{
			Name: string(kind), Body: openapi.One[foundBody](), Null: true, Optional: true,
		})
	}
	return all
}

// Relations implements openapi.Related.
func (entryBody) Relations() openapi.Relations {
	return openapi.Relations{
		Links:  []string{"inf:bundle", "inf:bundle-driver", "inf:entries"},
		Embeds: openapi.Embeds{"inf:bundle-driver": openapi.One[bundleDriverBody]()},
		Others: openapi.One[foundBody](),
	}
}

// entryColumns are the members that refer to an entity of a ready kind.
var entryColumns = bundles.Columns()

// AppendJSON implements hal.Appender.
func (e entryBody) AppendJSON(dst []byte) ([]byte, error) {
	dst = hal.AppendString(append(dst, `{"tenant":`...), e.Tenant)
	dst = hal.AppendString(append(dst, `,"id":`...), e.ID)
	dst = hal.AppendString(append(dst, `,"bundleId":`...), e.BundleID)
	dst = hal.AppendString(append(dst, `,"type":`...), e.Type)
	dst = append(append(dst, `,"data":`...), e.Data...)
	columns := entryColumns
	if e.column != "" && !slices.Contains(columns, e.column) { // of a host's own type
		columns = append(slices.Clone(columns), e.column)
	}
	for _, column := range columns {
		dst = append(hal.AppendString(append(dst, ','), column), ':')
		if column == e.column {
			dst = hal.AppendString(dst, e.EntityID)
		} else {
			dst = append(dst, "null"...)
		}
	}
	if e.looked {
		for _, kind := range resolvedKinds {
			dst = append(hal.AppendString(append(dst, ','), string(kind)), ':')
			var found any = json.RawMessage("null")
			if e.found != nil && e.Ref.Kind == kind {
				found = e.found
			}
			var err error
			if dst, err = hal.Append(dst, found); err != nil {
				return nil, err
			}
		}
	}
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), e.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), e.UpdatedAt)
	return append(dst, '}'), nil
}

// foundBody is the entity that an entry refers to.
type foundBody struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Permissions any    `json:"permissions"`
}

// Relations implements openapi.Related. The links are those of the kind.
func (foundBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{openapi.Any}}
}

// found encodes the entity that an entry refers to, with the links and permissions that the routes
// of its kind show; nil for an app or assistant that is not among those which the caller sees.
func (a bundleRoutes) found(who actor.Actor, ref entity.Ref, seen seenEntities) *hal.Resource {
	links, may := hal.Links{}, any(nil)
	kind := ref.Kind
	if (kind == apps.Kind || kind == assistants.Kind) && slices.Contains(a.HostKinds, kind) {
		kind = "" // as any other kind of the host
	}
	switch kind {
	case assistants.Kind:
		v, ok := seen.assistants[ref.ID]
		if !ok {
			return nil
		}
		links, may = assistantRoutes(a).assistantLinks(v), assistantPermissionsBody(v.Permissions)
	case apps.Kind:
		v, ok := seen.apps[ref.ID]
		if !ok {
			return nil
		}
		links, may = appRoutes(a).appLinks(v, true), appPermissionsBody(v.Permissions)
	case principals.KindUser:
		u := principals.User{Tenant: who.Tenant, Username: ref.ID}
		if !ref.External {
			u.Domain = principals.Local
		}
		allowed := principals.UserPermissionsOf(who, u)
		links, may = userRoutes(a).userLinks(who, ref.ID, allowed), userPermissionsBody(allowed)
	case principals.KindTeam:
		links, may = teamRoutes(a).teamLinks(ref.ID), teamPermissionsBody(principals.TeamPermissionsOf(
			who, principals.Team{Tenant: who.Tenant, ID: ref.ID},
		))
	default:
		if _, served := a.plurals[ref.Kind]; served {
			ready := content.Kinds()
			k := slices.IndexFunc(ready, func(k content.KindInfo) bool { return k.Kind == ref.Kind })
			links = entityKind{a.api, ready[k]}.links(ref.ID, ref.OwnerID)
		}
		may = entityPermissionsBody(content.PermissionsOf(
			who, content.Entity{Kind: ref.Kind, OwnerID: ref.OwnerID, System: ref.System},
		))
	}
	return &hal.Resource{Links: links, Value: foundBody{ID: ref.ID, Name: ref.Name, Permissions: may}}
}

// seenEntities are the apps and assistants that a caller sees, by id.
type seenEntities struct {
	apps       map[string]apps.Shown
	assistants map[string]assistants.Shown
}

// seen returns those apps and assistants that entries refer to and the caller sees.
func (a bundleRoutes) seen(r *rest.Request, entries ...bundles.Entry) (seen seenEntities, err error) {
	of := func(kind entity.Kind) (ids []string) {
		for _, e := range entries {
			if e.Ref != nil && e.Ref.Kind == kind && !slices.Contains(a.HostKinds, kind) {
				ids = append(ids, e.Ref.ID)
			}
		}
		return ids
	}
	if seen.apps, err = a.Apps.Seen(r.Context(), of(apps.Kind)); err != nil {
		return seen, err
	}
	if ids := of(assistants.Kind); len(ids) > 0 && a.needsAI(r) == nil {
		seen.assistants, err = a.Assistants.Seen(r.Context(), ids)
	}
	return seen, err
}

// entry encodes one entry with its driver and what it refers to. seen has the apps and assistants:
// see seen.
func (a bundleRoutes) entry(who actor.Actor, e bundles.Entry, d bundles.Descriptor, seen seenEntities) hal.Resource {
	body := entryBody{Entry: e, column: d.Column, looked: true}
	embedded := hal.Embedded{}
	if d.ID != "" { // the host may have dropped the type
		embedded["inf:bundle-driver"] = a.bundleDriver(d)
	}
	if e.Ref != nil {
		if body.found = a.found(who, *e.Ref, seen); body.found != nil {
			embedded["inf:"+string(e.Ref.Kind)] = body.found
		}
	}
	return hal.Resource{Links: a.entryLinks(e), Value: body, Embedded: embedded, Row: e}
}

func (a bundleRoutes) entryLinks(e bundles.Entry) hal.Links {
	links := hal.Self(a.href("bundles", e.BundleID, "entries", e.ID)).With("inf:bundle", a.href("bundles", e.BundleID)).
		With("inf:entries", a.href("bundles", e.BundleID, "entries"))
	if a.Bundles.Known(e.Type) { // the host may have dropped the type
		links.With("inf:bundle-driver", a.href("bundle-drivers", e.Type))
	}
	return links
}

// bundleDriverBody is a type of bundle entries as the API writes it.
type bundleDriverBody struct {
	Editor       componentBody `json:"editor"`
	Icon         string        `json:"icon,omitempty"`
	IconSVG      string        `json:"iconSvg,omitempty"`
	ID           string        `json:"id"`
	MaterialIcon string        `json:"materialIcon,omitempty"`
	Name         string        `json:"name"`
}

// Relations implements openapi.Related.
func (bundleDriverBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:bundle-drivers"}}
}

// iconBody is the icon of a driver: it has one of the members.
type iconBody struct {
	Icon         string `json:"icon,omitempty"`
	IconSVG      string `json:"iconSvg,omitempty"`
	MaterialIcon string `json:"materialIcon,omitempty"`
}

func iconOf(d bundles.Descriptor) iconBody {
	return iconBody{d.Icon.Name, d.Icon.SVG, d.Icon.Material}
}

// componentBody is the component of an editor: its name, with an empty object of options.
type componentBody map[string]struct{}

func component(d bundles.Descriptor) componentBody { return componentBody{d.Editor: {}} }

// bundleTemplateBody is a builder of bundle entries.
type bundleTemplateBody struct {
	Component componentBody  `json:"component"`
	Entry     builtEntryBody `json:"entry"`
	Group     string         `json:"group"`
	iconBody
	Name string `json:"name"`
}

// builtEntryBody is the entry that a builder begins with.
type builtEntryBody struct {
	Type string `json:"type"`
}
