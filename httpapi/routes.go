package httpapi

import "github.com/tenantcontent/tenantcontent/internal/rest"

// noun has the rows of a noun, above their handlers in the file that is named for it.
type noun interface{ routes() []rest.Route }

// nouns are all nouns in the order of the route table, content first.
func (a *api) nouns() []noun {
	return []noun{
		colorRoutes{a}, bundleRoutes{a}, archiveRoutes{a}, instructionRoutes{a}, commentRoutes{a},
		notificationRoutes{a}, inputRoutes{a},
		domainRoutes{a}, domainKeyRoutes{a}, ssoRoutes{loginFlow{a}}, logoutRoutes{loginFlow{a}},
		principalRoutes{a}, loginWayRoutes{loginFlow{a}}, sessionRoutes{loginFlow{a}}, tenantRoutes{a}, limitRoutes{a},
		tokenRoutes{a}, userRoutes{a}, avatarRoutes{a}, teamRoutes{a}, fileRoutes{a}, rootRoutes{a}, healthRoutes{a},
		openapiRoutes{a},
		domainTokenRoutes{a}, scimRoutes{a}, entityCommentRoutes{commentRoutes{a}},
		appRoutes{a}, appPartRoutes{a}, appUserRoutes{a}, appExportRoutes{a}, appAssistRoutes{chats{views{a}}},
		webhookRoutes{a}, assistantChatRoutes{chats{views{a}}}, confirmationRoutes{chats{views{a}}},
		assistantRoutes{a}, assistantPartRoutes{a}, appTokenRoutes{a}, visitorRoutes{views{a}}, appMessageRoutes{a},
		agentRoutes{a}, appDeployRoutes{a}, appViewRoutes{views{a}}, appServerRoutes{views{a}}, entityRoutes{a},
	}
}

// routes is the route table. The router, the 401, 404 and 405 answers and several tests are made
// from it.
func (a *api) routes() (all []rest.Route) {
	for _, n := range a.nouns() {
		all = append(all, n.routes()...)
	}
	return all
}
