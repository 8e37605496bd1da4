package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// shownAt are the paths at which a GET shows an entity of a kind, and the member of its answer that
// has its id. Each part of an id that has slashes stands for one %.
var shownAt = map[entity.Kind]struct{ path, id string }{
	aiinstr.Kind: {"/api/ai-instructions/%", "id"},
	colors.Kind:  {"/api/colors/%", "key"},
}

// Show implements Handler.
func (a *api) Show(
	ctx context.Context, tenant string, of entity.Key, row any,
) (id string, shown json.RawMessage, err error) {
	if c, ok := row.(colors.Color); ok {
		return encoded(colorRoutes{a}.color(c), "key")
	}
	at, ok := shownAt[of.Kind]
	if !ok {
		i := slices.IndexFunc(content.Kinds(), func(k content.KindInfo) bool { return k.Kind == of.Kind })
		if i < 0 || slices.Contains(a.HostKinds, of.Kind) {
			return "", nil, nil
		}
		at.path, at.id = "/api/"+content.Kinds()[i].Plural+"/%", "id"
	}
	path := fillPath(at.path, of.ID)
	route, params, err := a.router.Find(http.MethodGet, path)
	if err != nil {
		return "", nil, err
	}
	who, err := actor.From(ctx)
	if err != nil || who.Tenant != tenant {
		who = actor.Actor{Tenant: tenant, User: "-"}
	}
	who.Superuser, who.ReadOnly = true, false
	ctx = actor.With(ctx, who)
	r := (&http.Request{
		Method: http.MethodGet,
		URL:    &url.URL{Path: path},
		Header: http.Header{},
		Body:   http.NoBody,
	}).WithContext(ctx)
	answer, err := route.Handle(rest.NewCall(r, route, params, who, a.MaxBody))
	if err != nil || answer.Body == nil {
		return "", nil, err
	}
	return encoded(answer.Body, at.id)
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

// encoded returns the JSON of the body of an answer, and a member of it.
func encoded(body any, member string) (id string, shown json.RawMessage, err error) {
	if shown, err = hal.Append(make([]byte, 0, 512), body); err != nil {
		return "", nil, err
	}
	rawjson.Each(shown, func(name string, value json.RawMessage) {
		if name == member {
			id, _ = rawjson.Text(value)
		}
	})
	return id, shown, nil
}
