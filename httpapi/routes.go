package httpapi

import (
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
)

// The query parameters of lists.
var (
	none     = []string{} // a list that is one array
	window   = []string{"start", "limit"}
	paged    = []string{"start", "limit", "sort", "cursor"}
	searched = []string{"start", "limit", "sort", "cursor", "q"}
)

// routes is the route table: every route, content first, then domains, principals, sessions and files. The router, the
// 401, 404 and 405 answers and several tests are made from it.
func (a *api) routes() []Route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return append([]Route{
		// Colors
		{Method: get, Pattern: "/api/colors", Name: "listColors", Grants: nothing, Query: searched, Summary: "The palette, page by page", handle: a.listColors},
		{Method: get, Pattern: "/api/colors-list", Name: "listAllColors", Grants: nothing, Heavy: brief, Summary: "The whole palette with hex and palette name", handle: a.listAllColors},
		{Method: get, Pattern: "/api/colors/:key", Name: "getColor", Grants: nothing, Summary: "One color", handle: a.getColor},
		{Method: put, Pattern: "/api/colors/:key", Name: "putColor", Grants: nothing, Row: "color", Permission: actor.ColorWrite, Tx: true, OwnTx: true, Summary: "Set a color", handle: a.putColor},
		{Method: del, Pattern: "/api/colors/:key", Name: "deleteColor", Grants: nothing, Row: "color", Permission: actor.ColorWrite, Tx: true, OwnTx: true, Options: noOptions{}, Summary: "Remove a color", handle: a.deleteColor},
		{Method: get, Pattern: "/api/colors/:key/permissions", Name: "getColorPermissions", Grants: nothing, Summary: "What the caller may do with a color", handle: a.getColorPermissions},
		{Method: post, Pattern: "/api/colors-export", Name: "exportColors", Grants: nothing, Heavy: brief, Permission: actor.ColorWrite, AnyType: true, Options: exportColorsInput{}, Summary: "Export the palette to a file", handle: a.exportColors},
		{Method: post, Pattern: "/api/colors-import", Name: "importColors", Grants: nothing, Heavy: long, Permission: actor.ColorWrite, Tx: true, OwnTx: true, Options: importColorsInput{}, Summary: "Import colors from an uploaded file", handle: a.importColors},

		// Bundles
		{Method: get, Pattern: "/api/bundle-drivers", Name: "listBundleDrivers", Grants: programs, Query: window, Summary: "The types of bundle entries", handle: a.listBundleDrivers},
		{Method: get, Pattern: "/api/bundle-drivers/:id", Name: "getBundleDriver", Grants: programs, Summary: "One type of bundle entries", handle: a.getBundleDriver},
		{Method: get, Pattern: "/api/bundle-templates", Name: "listBundleTemplates", Grants: programs, Query: none, Summary: "The builders of bundle entries", handle: a.listBundleTemplates},
		{Method: get, Pattern: "/api/bundle-list", Name: "listAllBundles", Grants: programs, Heavy: brief, Query: none, Summary: "All bundles without entries", handle: a.listAllBundles},
		{Method: get, Pattern: "/api/bundles", Name: "listBundles", Grants: programs, Query: searched, Summary: "The bundles with their entries", handle: a.listBundles},
		{Method: post, Pattern: "/api/bundles", Name: "createBundle", Drops: true, Grants: programs, Permission: actor.Superuser, Tx: true, Summary: "Add a bundle", handle: a.createBundle},
		{Method: get, Pattern: "/api/bundles/:id", Name: "getBundle", Grants: programs, Summary: "One bundle with its entries", handle: a.getBundle},
		{Method: put, Pattern: "/api/bundles/:id", Name: "putBundle", Drops: true, Grants: programs, Row: "bundle", Permission: actor.Superuser, Tx: true, Summary: "Change a bundle", handle: a.putBundle},
		{Method: del, Pattern: "/api/bundles/:id", Name: "deleteBundle", Grants: programs, Row: "bundle", Permission: actor.Superuser, Tx: true, Options: noOptions{}, Summary: "Remove a bundle", handle: a.deleteBundle},
		{Method: get, Pattern: "/api/bundles/:id/entries", Name: "listBundleEntries", Grants: programs, Query: paged, Summary: "The entries of a bundle with what they refer to", handle: a.listBundleEntries},
		{Method: post, Pattern: "/api/bundles/:id/entries", Name: "createBundleEntry", Drops: true, Grants: programs, Permission: actor.Superuser, Tx: true, Summary: "Add an entry to a bundle", handle: a.createBundleEntry},
		{Method: get, Pattern: "/api/bundles/:id/entries/:entry", Name: "getBundleEntry", Grants: programs, Summary: "One entry of a bundle", handle: a.getBundleEntry},
		{Method: put, Pattern: "/api/bundles/:id/entries/:entry", Name: "putBundleEntry", Drops: true, Grants: programs, Row: "bundle-entry", Permission: actor.Superuser, Tx: true, Summary: "Change the data of an entry", handle: a.putBundleEntry},
		{Method: del, Pattern: "/api/bundles/:id/entries/:entry", Name: "deleteBundleEntry", Grants: programs, Row: "bundle-entry", Permission: actor.Superuser, Tx: true, Options: noOptions{}, Summary: "Take an entry out of a bundle", handle: a.deleteBundleEntry},

		// Archives
		{Method: post, Pattern: "/api/bundles/:id/_export", Name: "exportBundle", Grants: programs, Heavy: brief, Permission: actor.Superuser, AnyType: true, Options: noOptions{}, Summary: "The archive of a bundle", handle: a.exportBundle},
		{Method: post, Pattern: "/api/bundles/:id/_deploy", Name: "deployBundle", Grants: programs, Heavy: long, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: deployInput{}, Summary: "Bring a bundle into other tenants", handle: a.deployBundle},
		{Method: post, Pattern: "/api/_import-bundle", Name: "importBundle", Grants: programs, Heavy: long, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: importInput{}, File: true, Summary: "Import an archive", handle: a.importBundle},
		{Method: post, Pattern: "/api/_bundle", Name: "exportEntries", Grants: programs, Heavy: brief, Permission: actor.Superuser, AnyType: true, Options: manifestInput{}, Summary: "The archive of entries without a bundle", handle: a.exportEntries},
		{Method: post, Pattern: "/api/_bundle-deploy", Name: "deployEntries", Grants: programs, Heavy: long, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: deployEntriesInput{}, Summary: "Bring entries without a bundle into other tenants", handle: a.deployEntries},
		{Method: post, Pattern: "/api/_restore", Name: "restoreArchive", Grants: programs, Heavy: long, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: importInput{}, File: true, Summary: "Replace content by an archive's", handle: a.restoreArchive},
		{Method: post, Pattern: "/api/_restore-from-file", Name: "restoreFile", Grants: programs, Heavy: long, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: restoreInput{}, File: true, Summary: "Replace content by a staged archive's", handle: a.restoreFile},

		// AI instructions. The tenant's AI switch comes before the permission: needsAI checks both.
		{Method: get, Pattern: "/api/ai-instructions", Name: "listInstructions", Grants: nothing, Query: searched, Summary: "The AI instructions", guard: a.needsAI, handle: a.listInstructions},
		{Method: post, Pattern: "/api/ai-instructions", Name: "createInstruction", Drops: true, Grants: programs, Tx: true, Summary: "Add an AI instruction", guard: a.needsAI, handle: a.createInstruction},
		{Method: get, Pattern: "/api/ai-instructions/:id", Name: "getInstruction", Grants: nothing, Summary: "One AI instruction", guard: a.needsAI, handle: a.getInstruction},
		{Method: put, Pattern: "/api/ai-instructions/:id", Name: "putInstruction", Drops: true, Grants: programs, Row: "ai-instruction", Tx: true, Summary: "Change an AI instruction", guard: a.needsAI, handle: a.putInstruction},
		{Method: del, Pattern: "/api/ai-instructions/:id", Name: "deleteInstruction", Grants: programs, Row: "ai-instruction", Tx: true, Options: noOptions{}, Summary: "Remove an AI instruction", guard: a.needsAI, handle: a.deleteInstruction},

		// Comments by id, activities and notifications. The comments on one entity are in commentRoutes.
		{Method: get, Pattern: "/api/comments/:id", Name: "getComment", Grants: nothing, Summary: "One comment with its author", handle: a.getComment},
		{Method: get, Pattern: "/api/comments/:id/replies", Name: "listReplies", Grants: nothing, Query: paged, Summary: "The replies to a comment", handle: a.listReplies},
		{Method: post, Pattern: "/api/comments/:id/replies", Name: "createReply", Drops: true, Grants: nothing, Tx: true, Summary: "Reply to a comment", handle: a.createReply},
		{Method: put, Pattern: "/api/comments/:id", Name: "putComment", Drops: true, Grants: nothing, Row: "comment", Tx: true, Summary: "Change a comment", handle: a.putComment},
		{Method: del, Pattern: "/api/comments/:id", Name: "deleteComment", Grants: nothing, Row: "comment", Tx: true, Options: noOptions{}, Summary: "Remove a comment with its replies", handle: a.deleteComment},
		{Method: get, Pattern: "/api/activities", Name: "listActivities", Grants: nothing, Query: append(slices.Clone(paged), "entityType", "entityId"), Summary: "What happened to content", handle: a.listActivities},
		{Method: get, Pattern: "/api/activities/:id", Name: "getActivity", Grants: nothing, Summary: "One activity", handle: a.getActivity},
		{Method: get, Pattern: "/api/notifications", Name: "listNotifications", Grants: nothing, Query: append(slices.Clone(paged), "state", "since"), Summary: "The caller's notifications", handle: a.listNotifications},
		{Method: put, Pattern: "/api/notifications", Name: "putNotifications", Grants: nothing, Query: none, Tx: true, Summary: "Mark all of the caller's notifications as read or unread", handle: a.putNotifications},
		{Method: get, Pattern: "/api/notifications/:id", Name: "getNotification", Grants: nothing, Summary: "One of the caller's notifications", handle: a.getNotification},
		{Method: put, Pattern: "/api/notifications/:id", Name: "putNotification", Grants: nothing, Row: "notification", Tx: true, Summary: "Mark a notification as read or unread", handle: a.putNotification},
		{Method: get, Pattern: "/api/users/:username/feed", Name: "listFeed", Grants: nothing, Query: paged, Summary: "What others did that concerns a user", handle: a.listFeed},

		// Input catalogs
		{Method: get, Pattern: "/api/input-editors", Name: "listInputEditors", Grants: nothing, Summary: "The input editors", handle: a.listInputEditors},
		{Method: get, Pattern: "/api/input-editors/:id", Name: "getInputEditor", Grants: nothing, Summary: "One input editor", handle: a.getInputEditor},
		{Method: get, Pattern: "/api/input-templates", Name: "listInputTemplates", Grants: nothing, Summary: "The suggested inputs of each value type", handle: a.listInputTemplates},

		// Authentication domains, scans and single sign-on
		{Method: get, Pattern: "/api/domain-templates", Name: "listDomainTemplates", Grants: settings, Query: none, Summary: "The kinds of new domains", handle: a.listDomainTemplates},
		{Method: get, Pattern: "/api/domain-drivers", Name: "listDomainDrivers", Grants: settings, Query: window, Summary: "The domain drivers", handle: a.listDomainDrivers},
		{Method: get, Pattern: "/api/domain-drivers/:id", Name: "getDomainDriver", Grants: settings, Permission: actor.SuperuserRead, Summary: "One domain driver", handle: a.getDomainDriver},
		{Method: post, Pattern: "/api/domain-drivers/:id/_scan", Name: "scanDriver", Grants: settings, Heavy: scan, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: scanInput{}, Summary: "Scan the directories of a driver's domains", handle: a.scanDriver},
		{Method: get, Pattern: "/api/domains", Name: "listDomains", Grants: settings, Query: searched, Summary: "The domains, page by page", handle: a.listDomains},
		{Method: get, Pattern: "/api/domains-content", Name: "listDomainContents", Grants: settings, Query: none, Summary: "How many users and teams each domain has", handle: a.listDomainContents},
		{Method: get, Pattern: "/api/domains-list", Name: "listAllDomains", Grants: settings, Query: none, Summary: "All domains but local", handle: a.listAllDomains},
		{Method: get, Pattern: "/api/domains/:id", Name: "getDomain", Grants: settings, Permission: actor.SuperuserRead, Summary: "One domain", handle: a.getDomain},
		{Method: get, Pattern: "/api/domains/:id/driver", Name: "getDriverOfDomain", Grants: settings, Permission: actor.SuperuserRead, Summary: "The driver of a domain", handle: a.getDriverOfDomain},
		{Method: post, Pattern: "/api/domains", Name: "createDomain", Drops: true, Grants: settings, Permission: actor.Superuser, Tx: true, OwnTx: true, Query: []string{"check"}, Summary: "Add a domain", handle: a.createDomain},
		{Method: put, Pattern: "/api/domains/:id", Name: "putDomain", Drops: true, Grants: settings, Row: "domain", Permission: actor.Superuser, Query: []string{"check"}, Summary: "Change a domain", handle: a.putDomain},
		{Method: del, Pattern: "/api/domains/:id", Name: "deleteDomain", Grants: settings, Row: "domain", Permission: actor.Superuser, Tx: true, Options: noOptions{}, Summary: "Remove a domain with its users and teams", handle: a.deleteDomain},
		{Method: post, Pattern: "/api/domains/:id/driver/_scan", Name: "scanDomain", Grants: settings, Heavy: scan, Permission: actor.Superuser, Tx: true, OwnTx: true, Options: scanInput{}, Summary: "Scan the directory of one domain", handle: a.scanDomain},
		{Method: post, Pattern: "/api/domains/_test", Name: "testNewDomain", Grants: settings, Permission: actor.Superuser, Options: newTestInput{}, Summary: "Try out a configuration before it is saved", handle: a.testNewDomain},
		{Method: post, Pattern: "/api/domains/:id/_test", Name: "testDomain", Grants: settings, Permission: actor.Superuser, Options: testInput{}, Summary: "Try out a domain", handle: a.testDomain},
		{Method: get, Pattern: "/api/domains/:id/keys", Name: "getDomainKeys", Grants: settings, Permission: actor.SuperuserRead, Summary: "The certificates of a domain's keys", handle: a.getDomainKeys},
		{Method: post, Pattern: "/api/domains/:id/keys/_roll", Name: "rollDomainKeys", Grants: settings, Permission: actor.Superuser, Options: noOptions{}, Summary: "Take a step to another key of a domain", handle: a.rollDomainKeys},
		{Method: get, Pattern: "/api/domains/:id/scan", Name: "getScan", Grants: settings, Permission: actor.SuperuserRead, Summary: "How far the scan of a domain is", handle: a.getScan},
		{Method: get, Pattern: "/api/login/:domain/sso", Name: "beginSSO", Grants: logins, Public: true, Login: true, Browser: true, AnyType: true, Summary: "Log in at the domain's provider", handle: a.beginSSO},
		{Method: get, Pattern: "/api/login/:domain/callback", Name: "finishSSO", Grants: logins, Public: true, Login: true, Browser: true, AnyType: true, Summary: "Come back from an OpenID provider", handle: a.finishSSO},
		{Method: post, Pattern: "/api/login/:domain/acs", Name: "finishSAML", Grants: logins, Public: true, Login: true, Browser: true, Foreign: true, AnyType: true, Summary: "Come back from a SAML provider", handle: a.finishSAML},
		{Method: get, Pattern: "/api/login/:domain/loggedout", Name: "loggedOut", Grants: logins, Public: true, Login: true, AnyType: true, Summary: "Come back from a logout at the provider", handle: a.loggedOut},
		{Method: get, Pattern: "/api/login/:domain/slo", Name: "singleLogoutByQuery", Grants: logins, Public: true, Login: true, AnyType: true, Summary: "A SAML provider's request or answer about a logout", handle: a.singleLogoutByQuery},
		{Method: post, Pattern: "/api/login/:domain/slo", Name: "singleLogoutByForm", Grants: logins, Public: true, Login: true, Foreign: true, AnyType: true, Summary: "The same as a form", handle: a.singleLogoutByForm},
		{Method: post, Pattern: "/api/login/:domain/backchannel-logout", Name: "receiveLogout", Grants: logins, Public: true, Login: true, AnyType: true, Summary: "A provider's notice of a logout", handle: a.receiveLogout},
		{Method: get, Pattern: "/api/login/:domain/metadata", Name: "getSSOMetadata", Grants: logins, Public: true, Login: true, AnyType: true, Summary: "What a SAML provider needs to know", handle: a.getSSOMetadata},

		// Principals
		{Method: get, Pattern: "/api/principal-list", Name: "listPrincipals", Grants: nothing, Heavy: brief, Query: none, Summary: "Every user and team", handle: a.listPrincipals},
		{Method: get, Pattern: "/api/principals/:id", Name: "resolvePrincipal", Grants: nothing, AnyType: true, Summary: "Redirect to the user or team", handle: a.resolvePrincipal},
		{Method: post, Pattern: "/api/principals/:id/_reassign", Name: "reassignPrincipal", Grants: rights, Heavy: long, Tx: true, OwnTx: true, Options: reassignInput{}, Summary: "Give a principal's content to another one", handle: a.reassignPrincipal},

		// Sessions and tokens
		{Method: get, Pattern: "/api/login", Name: "listLogins", Grants: logins, Public: true, Login: true, Browser: true, AnyType: true, Query: []string{"tenant", "domain", "returnTo", "errors", "start", "limit"}, Summary: "The ways to log in at a tenant", handle: a.listLogins},
		{Method: post, Pattern: "/api/login/:domain", Name: "login", Grants: logins, Secret: true, Public: true, Login: true, Browser: true, Summary: "Log in with a password", handle: a.login},
		{Method: post, Pattern: "/api/logout", Name: "logout", Grants: logins, Query: []string{"provider", "returnTo"}, AnyType: true, Summary: "End the session", handle: a.logout},
		{Method: get, Pattern: "/api/session", Name: "getSession", Grants: logins, Secret: true, Summary: "Who the caller is", handle: a.getSession},
		{Method: get, Pattern: "/api/tenant", Name: "getTenant", Grants: settings, Summary: "The caller's tenant", handle: a.getTenant},
		{Method: get, Pattern: "/api/limits", Name: "getLimits", Grants: nothing, Summary: "The limits in force", handle: a.getLimits},
		{Method: put, Pattern: "/api/tenant", Name: "putTenant", Grants: settings, Row: "tenant", Permission: actor.Superuser, Tx: true, Summary: "Change the tenant's name and settings", handle: a.putTenant},
		{Method: get, Pattern: "/api/tokens", Name: "listTokens", Grants: credentials, Secret: true, Query: paged, Summary: "The caller's API tokens", handle: a.listTokens},
		{Method: post, Pattern: "/api/tokens", Name: "createToken", Grants: credentials, Secret: true, Tx: true, Summary: "Make an API token", handle: a.createToken},
		{Method: get, Pattern: "/api/tokens/:id", Name: "getToken", Grants: credentials, Secret: true, Summary: "One of the caller's API tokens", handle: a.getToken},
		{Method: del, Pattern: "/api/tokens/:id", Name: "deleteToken", Grants: credentials, Row: "token", Tx: true, Options: noOptions{}, Summary: "Revoke an API token", handle: a.deleteToken},

		// Users
		{Method: get, Pattern: "/api/users", Name: "listUsers", Grants: nothing, Query: searched, Summary: "The users", handle: a.listUsers},
		{Method: post, Pattern: "/api/users", Name: "createUser", Grants: profiles, Permission: actor.Superuser, Tx: true, OwnTx: true, Summary: "Add a user", handle: a.createUser},
		{Method: get, Pattern: "/api/users/:username", Name: "getUser", Grants: nothing, Summary: "One user", handle: a.getUser},
		{Method: put, Pattern: "/api/users/:username", Name: "putUser", Grants: profiles, Row: "user", Query: []string{"check"}, Summary: "Change a user", handle: a.putUser},
		{Method: del, Pattern: "/api/users/:username", Name: "deleteUser", Grants: profiles, Row: "user", Permission: actor.Superuser, Tx: true, Options: deletePrincipalInput{}, Summary: "Remove a user", handle: a.deleteUser},
		{Method: put, Pattern: "/api/users/:username/password", Name: "putPassword", Grants: credentials, Query: []string{"revokeTokens"}, Summary: "Change a password", handle: a.putPassword},
		{Method: get, Pattern: "/api/users/:username/memberships", Name: "listMemberships", Grants: nothing, Query: paged, Summary: "The teams of a user", handle: a.listMemberships},
		{Method: put, Pattern: "/api/users/:username/superuser", Name: "putSuperuser", Grants: rights, Row: "user", Permission: actor.Superuser, Tx: true, Summary: "Make or unmake a superuser", handle: a.putSuperuser},
		{Method: put, Pattern: "/api/users/:username/viewed-feed", Name: "putViewedFeed", Grants: profiles, Tx: true, OwnTx: true, Summary: "Note that the user has seen the feed", handle: a.putViewedFeed},
		{Method: get, Pattern: "/api/users/:username/avatar", Name: "getAvatar", Grants: nothing, AnyType: true, Summary: "A user's picture", handle: a.getAvatar},
		{Method: put, Pattern: "/api/users/:username/avatar", Name: "putAvatar", Grants: profiles, Row: "avatar", Query: []string{"filename"}, Summary: "Set a user's picture", handle: a.putAvatar},
		{Method: del, Pattern: "/api/users/:username/avatar", Name: "deleteAvatar", Grants: profiles, Row: "avatar", Tx: true, Options: noOptions{}, Summary: "Remove a user's picture", handle: a.deleteAvatar},

		// Teams
		{Method: get, Pattern: "/api/teams", Name: "listTeams", Grants: nothing, Query: searched, Summary: "The teams", handle: a.listTeams},
		{Method: post, Pattern: "/api/teams", Name: "createTeam", Grants: rights, Permission: actor.Superuser, Tx: true, Summary: "Add a team", handle: a.createTeam},
		{Method: get, Pattern: "/api/teams/:id", Name: "getTeam", Grants: nothing, Summary: "One team", handle: a.getTeam},
		{Method: put, Pattern: "/api/teams/:id", Name: "putTeam", Grants: rights, Row: "team", Tx: true, Summary: "Change a team", handle: a.putTeam},
		{Method: del, Pattern: "/api/teams/:id", Name: "deleteTeam", Grants: rights, Row: "team", Permission: actor.Superuser, Tx: true, Options: deletePrincipalInput{}, Summary: "Remove a team", handle: a.deleteTeam},
		{Method: get, Pattern: "/api/teams/:id/members", Name: "listMembers", Grants: nothing, Query: paged, Summary: "The members of a team", handle: a.listMembers},
		{Method: get, Pattern: "/api/teams/:id/members/:username", Name: "getMember", Grants: nothing, Summary: "One membership", handle: a.getMember},
		{Method: put, Pattern: "/api/teams/:id/members/:username", Name: "putMember", Grants: rights, Row: "member", Tx: true, Summary: "Add a member or change a role", handle: a.putMember},
		{Method: del, Pattern: "/api/teams/:id/members/:username", Name: "deleteMember", Grants: rights, Row: "member", Tx: true, Options: noOptions{}, Summary: "Remove a member", handle: a.deleteMember},

		// Uploads and downloads
		{Method: post, Pattern: "/api/uploads", Name: "createUpload", Grants: nothing, Heavy: brief, Query: []string{"filename"}, Summary: "Stage a file", handle: a.createUpload},
		{Method: get, Pattern: "/api/uploads/:id", Name: "getUpload", Grants: nothing, Summary: "A staged file", handle: a.getUpload},
		{Method: del, Pattern: "/api/uploads/:id", Name: "deleteUpload", Grants: nothing, Row: "upload", Tx: true, Options: noOptions{}, Summary: "Remove a staged file", handle: a.deleteUpload},
		{Method: get, Pattern: "/api/downloads", Name: "listDownloads", Grants: nothing, Query: paged, Summary: "The files made for the caller", handle: a.listDownloads},
		{Method: get, Pattern: "/api/downloads/:id", Name: "getDownload", Grants: nothing, Summary: "A file made for the caller", handle: a.getDownload},
		{Method: get, Pattern: "/api/downloads/:id/content", Name: "getDownloadContent", Grants: nothing, Heavy: brief, AnyType: true, Summary: "The bytes of a download", handle: a.getDownloadContent},

		// The root
		{Method: get, Pattern: "/api", Name: "getRoot", Grants: nothing, Public: true, Summary: "The root: a link to everything that the caller may use", handle: a.getRoot},
		{Method: get, Pattern: "/api/", Name: "getRootSlash", Grants: nothing, Public: true, Summary: "The root, with a slash", handle: a.getRoot},
		{Method: get, Pattern: "/", Name: "getPage", Grants: nothing, Public: true, AnyType: true, Summary: "A page for people who come with a browser", handle: a.getPage},

		// Health
		{Method: get, Pattern: "/healthz", Name: "health", Grants: nothing, Public: true, AnyType: true, Summary: "The process runs", handle: a.health},
		{Method: get, Pattern: "/readyz", Name: "ready", Grants: nothing, Public: true, AnyType: true, Summary: "The database answers and is migrated", handle: a.ready},
	}, slices.Concat(a.domainTokenRoutes(), a.scimRoutes(), a.commentRoutes(), a.appRoutes(), a.appUserRoutes(), a.appAssistRoutes(), a.webhookRoutes(), a.assistantRoutes(), a.appTokenRoutes(), a.appMessageRoutes(), a.agentRoutes(), a.appDeployRoutes(), a.appViewRoutes(), a.appServerRoutes(), a.entityRoutes())...)
}
