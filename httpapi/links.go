package httpapi

import (
	"net/http"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// pluralsOf returns the first path segment of the routes of each kind whose entities have a route
// of their own.
func pluralsOf(byName map[string]*rest.Route) map[entity.Kind]string {
	all := map[entity.Kind]string{"user": "users", "team": "teams"}
	for _, k := range content.Kinds() {
		if byName["get"+content.Noun(k.Kind)] != nil {
			all[k.Kind] = k.Plural
		}
	}
	if byName["getApp"] != nil {
		all[apps.Kind] = "apps"
	}
	if byName["getAssistant"] != nil {
		all[assistants.Kind] = "assistants"
	}
	return all
}

// entityHref returns the address of an entity, "" if its kind has no page here.
func (a *api) entityHref(kind entity.Kind, id string) string {
	if plural, ok := a.plurals[kind]; ok {
		return a.href(plural, id)
	}
	return ""
}

// owned adds the link to the owner, a user or a team.
func (a *api) owned(links hal.Links, ownerID string) hal.Links {
	return links.With("inf:owner", a.href("principals", ownerID))
}

// whenWriting adds links to routes that only callers with write access can use.
func whenWriting(who actor.Actor, links hal.Links, more hal.Links) hal.Links {
	if who.ReadOnly {
		return links
	}
	for rel, link := range more {
		links[rel] = link
	}
	return links
}

// The methods of routes.
const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
	del  = http.MethodDelete
)

// The query parameters of lists.
var (
	none     = []string{} // a list that is one array
	window   = []string{"start", "limit"}
	paged    = []string{"start", "limit", "sort", "cursor"}
	searched = []string{"start", "limit", "sort", "cursor", "q"}
)

// guarded returns routes with a guard.
func guarded(guard func(*rest.Request) error, routes []rest.Route) []rest.Route {
	for i := range routes {
		routes[i].Guard = guard
	}
	return routes
}
