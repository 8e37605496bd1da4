package httpapi

import (
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
)

// routes is the route table: the routes of each noun, content first. A noun's type has its rows
// above its handlers, in the file that is named for it. The router, the 401, 404 and 405 answers
// and several tests are made from the table.
func (a *api) routes() []rest.Route {
	return slices.Concat(
		colorRoutes{a}.routes(),
		bundleRoutes{a}.routes(),
		archiveRoutes{a}.routes(),
		instructionRoutes{a}.routes(),
		commentRoutes{a}.routes(),
		notificationRoutes{a}.routes(),
		inputRoutes{a}.routes(),
		domainRoutes{a}.routes(),
		domainKeyRoutes{a}.routes(),
		ssoRoutes{a}.routes(),
		logoutRoutes{a}.routes(),
		principalRoutes{a}.routes(),
		loginWayRoutes{a}.routes(),
		sessionRoutes{a}.routes(),
		tenantRoutes{a}.routes(),
		limitRoutes{a}.routes(),
		tokenRoutes{a}.routes(),
		userRoutes{a}.routes(),
		avatarRoutes{a}.routes(),
		teamRoutes{a}.routes(),
		fileRoutes{a}.routes(),
		rootRoutes{a}.routes(),
		healthRoutes{a}.routes(),
		domainTokenRoutes{a}.routes(),
		scimRoutes{a}.routes(),
		commentRoutes{a}.ofEntities(),
		appRoutes{a}.routes(),
		appPartRoutes{a}.routes(),
		appUserRoutes{a}.routes(),
		appExportRoutes{a}.routes(),
		appAssistRoutes{a}.routes(),
		webhookRoutes{a}.routes(),
		assistantChatRoutes{a}.routes(),
		confirmationRoutes{a}.routes(),
		assistantRoutes{a}.routes(),
		assistantPartRoutes{a}.routes(),
		appTokenRoutes{a}.routes(),
		visitorRoutes{a}.routes(),
		appMessageRoutes{a}.routes(),
		agentRoutes{a}.routes(),
		appDeployRoutes{a}.routes(),
		appViewRoutes{a}.routes(),
		appServerRoutes{a}.routes(),
		entityRoutes{a}.routes(),
	)
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
