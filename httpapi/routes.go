package httpapi

import (
	"net/http"

	"github.com/tenantcontent/tenantcontent/actor"
)

// routes is the route table: the whole surface in the order of the specifications, with the routes of DECISIONS that
// make the service usable on its own (ext) behind those that are in the specifications. It drives the router, the
// 401, 404 and 405 answers, and the tests that are made from it.
func (a *api) routes() []Route {
	const get, post, put, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete
	return []Route{
		// Part 1: colors
		{Method: get, Pattern: "/api/colors", Name: "listColors", Summary: "The palette, page by page", handle: a.listColors},
		{Method: get, Pattern: "/api/colors-list", Name: "listAllColors", Summary: "The whole palette with hex and palette name", handle: a.listAllColors},
		{Method: get, Pattern: "/api/colors/:key", Name: "getColor", Summary: "One color", handle: a.getColor},
		{Method: put, Pattern: "/api/colors/:key", Name: "putColor", Permission: actor.ColorWrite, Tx: true, OneStatement: true, Summary: "Set a color", handle: a.putColor},
		{Method: del, Pattern: "/api/colors/:key", Name: "deleteColor", Permission: actor.ColorWrite, Tx: true, OneStatement: true, Summary: "Remove a color", handle: a.deleteColor},
		{Method: get, Pattern: "/api/colors/:key/permissions", Name: "getColorPermissions", Summary: "What the caller may do with a color", handle: a.getColorPermissions},
		{Method: post, Pattern: "/api/colors-export", Name: "exportColors", Permission: actor.ColorWrite, Summary: "Export the palette to a file", handle: a.exportColors},
		{Method: post, Pattern: "/api/colors-import", Name: "importColors", Permission: actor.ColorWrite, Tx: true, Summary: "Import colors from an uploaded file", handle: a.importColors},

		// Part 1: input catalogs
		{Method: get, Pattern: "/api/input-editors", Name: "listInputEditors", Summary: "The input editors", handle: a.listInputEditors},
		{Method: get, Pattern: "/api/input-templates", Name: "listInputTemplates", Summary: "The suggested inputs of each value type", handle: a.listInputTemplates},

		// Part 2: principals
		{Method: get, Pattern: "/api/principal-list", Name: "listPrincipals", Summary: "Every user and team", handle: a.listPrincipals},
		{Method: get, Pattern: "/api/principals/:id", Name: "resolvePrincipal", Summary: "Redirect to the user or team", handle: a.resolvePrincipal},

		// (ext) who calls
		{Method: post, Pattern: "/api/login/:domain", Name: "login", Public: true, Summary: "Log in with a password", handle: a.login},
		{Method: post, Pattern: "/api/logout", Name: "logout", Summary: "End the session", handle: a.logout},
		{Method: get, Pattern: "/api/session", Name: "getSession", Summary: "Who the caller is", handle: a.getSession},
		{Method: get, Pattern: "/api/tenant", Name: "getTenant", Summary: "The caller's tenant", handle: a.getTenant},
		{Method: put, Pattern: "/api/tenant", Name: "putTenant", Permission: actor.Superuser, Tx: true, Summary: "Change the tenant's name and settings", handle: a.putTenant},
		{Method: get, Pattern: "/api/tokens", Name: "listTokens", Summary: "The caller's API tokens", handle: a.listTokens},
		{Method: post, Pattern: "/api/tokens", Name: "createToken", Tx: true, Summary: "Make an API token", handle: a.createToken},
		{Method: del, Pattern: "/api/tokens/:id", Name: "deleteToken", Tx: true, Summary: "Revoke an API token", handle: a.deleteToken},

		// (ext) users
		{Method: get, Pattern: "/api/users", Name: "listUsers", Summary: "The users", handle: a.listUsers},
		{Method: post, Pattern: "/api/users", Name: "createUser", Permission: actor.Superuser, Tx: true, Summary: "Add a user", handle: a.createUser},
		{Method: get, Pattern: "/api/users/:username", Name: "getUser", Summary: "One user", handle: a.getUser},
		{Method: put, Pattern: "/api/users/:username", Name: "putUser", Tx: true, Summary: "Change a user", handle: a.putUser},
		{Method: del, Pattern: "/api/users/:username", Name: "deleteUser", Permission: actor.Superuser, Tx: true, Summary: "Remove a user", handle: a.deleteUser},
		{Method: put, Pattern: "/api/users/:username/password", Name: "putPassword", Summary: "Change a password", handle: a.putPassword},
		{Method: get, Pattern: "/api/users/:username/memberships", Name: "listMemberships", Summary: "The teams of a user", handle: a.listMemberships},
		{Method: put, Pattern: "/api/users/:username/superuser", Name: "putSuperuser", Permission: actor.Superuser, Tx: true, Summary: "Make or unmake a superuser", handle: a.putSuperuser},
		{Method: put, Pattern: "/api/users/:username/viewed-feed", Name: "putViewedFeed", Tx: true, Summary: "Note that the user has seen the feed", handle: a.putViewedFeed},
		{Method: get, Pattern: "/api/users/:username/avatar", Name: "getAvatar", Summary: "A user's picture", handle: a.getAvatar},
		{Method: put, Pattern: "/api/users/:username/avatar", Name: "putAvatar", Summary: "Set a user's picture", handle: a.putAvatar},
		{Method: del, Pattern: "/api/users/:username/avatar", Name: "deleteAvatar", Tx: true, Summary: "Remove a user's picture", handle: a.deleteAvatar},

		// (ext) teams
		{Method: get, Pattern: "/api/teams", Name: "listTeams", Summary: "The teams", handle: a.listTeams},
		{Method: post, Pattern: "/api/teams", Name: "createTeam", Permission: actor.Superuser, Tx: true, Summary: "Add a team", handle: a.createTeam},
		{Method: get, Pattern: "/api/teams/:id", Name: "getTeam", Summary: "One team", handle: a.getTeam},
		{Method: put, Pattern: "/api/teams/:id", Name: "putTeam", Tx: true, Summary: "Change a team", handle: a.putTeam},
		{Method: del, Pattern: "/api/teams/:id", Name: "deleteTeam", Permission: actor.Superuser, Tx: true, Summary: "Remove a team", handle: a.deleteTeam},
		{Method: get, Pattern: "/api/teams/:id/members", Name: "listMembers", Summary: "The members of a team", handle: a.listMembers},
		{Method: put, Pattern: "/api/teams/:id/members/:username", Name: "putMember", Tx: true, Summary: "Add a member or change a role", handle: a.putMember},
		{Method: del, Pattern: "/api/teams/:id/members/:username", Name: "deleteMember", Tx: true, Summary: "Remove a member", handle: a.deleteMember},

		// (ext) files in and out
		{Method: post, Pattern: "/api/uploads", Name: "createUpload", Summary: "Stage a file", handle: a.createUpload},
		{Method: get, Pattern: "/api/uploads/:id", Name: "getUpload", Summary: "A staged file", handle: a.getUpload},
		{Method: del, Pattern: "/api/uploads/:id", Name: "deleteUpload", Tx: true, Summary: "Remove a staged file", handle: a.deleteUpload},
		{Method: get, Pattern: "/api/downloads/:id", Name: "getDownload", Summary: "A file made for the caller", handle: a.getDownload},
		{Method: get, Pattern: "/api/downloads/:id/content", Name: "getDownloadContent", Summary: "The bytes of a download", handle: a.getDownloadContent},

		// (ext) for whoever runs the server
		{Method: get, Pattern: "/healthz", Name: "health", Public: true, Summary: "The process runs", handle: a.health},
		{Method: get, Pattern: "/readyz", Name: "ready", Public: true, Summary: "The database answers and is migrated", handle: a.ready},
	}
}
