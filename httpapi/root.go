package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// rootRoutes serves the root and the page for people.
type rootRoutes struct{ *api }

// routes returns the rows of the route table.
func (a rootRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api",
			Name:    "getRoot",
			Grants:  nothing,
			Public:  true,
			Summary: "The root: a link to everything that the caller may use",
			Gives:   openapi.OK(openapi.One[loginRootBody]().Or(openapi.One[rootBody]())),
			Handle:  a.getRoot,
		},
		{
			Method:  get,
			Pattern: "/api/",
			Name:    "getRootSlash",
			Grants:  nothing,
			Public:  true,
			Summary: "The root, with a slash",
			Gives:   openapi.OK(openapi.One[rootBody]()),
			Handle:  a.getRoot,
		},
		{
			Method:  get,
			Pattern: "/",
			Name:    "getPage",
			Grants:  nothing,
			Public:  true,
			AnyType: true,
			Summary: "A page for people who come with a browser",
			Gives:   openapi.OK(openapi.Bytes("text/html")),
			Handle:  a.getPage,
		},
	}
}

// relation is a link of the root: a relation and the route that it leads to.
type relation struct{ rel, route string }

// relations are the links of the root for a session, except those of the kinds of content. A route
// that the caller may not use has no link.
var relations = []relation{
	{"inf:colors", "listColors"}, {"inf:colors-list", "listAllColors"}, {"inf:color", "getColor"},
	{"inf:colors-export", "exportColors"}, {"inf:colors-import", "importColors"},
	{"inf:bundle-drivers", "listBundleDrivers"}, {"inf:bundle-driver", "getBundleDriver"},
	{"inf:bundle-templates", "listBundleTemplates"}, {"inf:bundle-list", "listAllBundles"},
	{"inf:bundles", "listBundles"}, {"inf:bundle", "getBundle"},
	{"inf:import-bundle", "importBundle"},
	{"inf:export-entries", "exportEntries"}, {"inf:deploy-entries", "deployEntries"},
	{"inf:restore", "restoreArchive"}, {"inf:restore-from-file", "restoreFile"},
	{"inf:ai-instructions", "listInstructions"}, {"inf:ai-instruction", "getInstruction"},
	{"inf:apps", "listApps"}, {"inf:apps-list", "listAllApps"},
	{"inf:apps-drafts", "listAppDrafts"}, {"inf:apps-recent", "listRecentApps"}, {"inf:app", "getApp"},
	{"inf:assistants", "listAssistants"},
	{"inf:assistants-list", "listAllAssistants"}, {"inf:assistants-drafts", "listAssistantDrafts"},
	{"inf:assistants-skills", "listSkillTypes"}, {"inf:assistant", "getAssistant"},
	{"inf:comment", "getComment"}, {"inf:activities", "listActivities"}, {"inf:notifications", "listNotifications"},
	{"inf:notification", "getNotification"},
	{"inf:feed", "listFeed"},
	{"inf:input-editors", "listInputEditors"}, {"inf:input-templates", "listInputTemplates"},
	{"inf:domain-templates", "listDomainTemplates"}, {"inf:domain-drivers", "listDomainDrivers"},
	{"inf:domain-driver", "getDomainDriver"}, {"inf:domains", "listDomains"}, {"inf:domain", "getDomain"},
	{"inf:domains-content-count", "listDomainContents"}, {"inf:domains-list", "listAllDomains"},
	{"inf:principal-list", "listPrincipals"},
	{"inf:principal", "resolvePrincipal"}, {"inf:reassign", "reassignPrincipal"},
	{"inf:session", "getSession"}, {"inf:logout", "logout"}, {"inf:tenant", "getTenant"}, {"inf:limits", "getLimits"},
	{"inf:tokens", "listTokens"}, {"inf:token", "getToken"},
	{"inf:users", "listUsers"}, {"inf:user", "getUser"}, {"inf:teams", "listTeams"}, {"inf:team", "getTeam"},
	{"inf:uploads", "createUpload"}, {"inf:upload", "getUpload"},
	{"inf:downloads", "listDownloads"}, {"inf:download", "getDownload"},
}

// parameters are the query parameters of links whose routes do not declare them in Query, or take
// more in a body.
var parameters = map[string][]string{"beginSSO": {"tenant", "returnTo", "errors"}, "exportColors": {"download"}}

// loginRelations are the links of the root without a session.
var loginRelations = []relation{{"inf:logins", "listLogins"}, {"inf:login", "login"}, {"inf:sso", "beginSSO"}}

// rootBody is the root of the API.
type rootBody struct {
	Tenant string `json:"tenant"`
	User   string `json:"user"`
	Total  int    `json:"total"`
}

// Relations implements openapi.Related. The links are those to all routes that the caller may use.
func (rootBody) Relations() openapi.Relations { return openapi.Relations{Links: []string{openapi.Any}} }

// loginRootBody is the root without a session.
type loginRootBody struct{}

// Relations implements openapi.Related.
func (loginRootBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:login", "inf:logins", "inf:sso"}}
}

// getRoot serves GET /api and /api/: 200 and a link to each collection and route that the caller
// may use, templated where it takes parameters, and in total how many of the caller's notifications
// are unread. Without a session it has the links for logging in, also when the cookie of a session
// that has ended is sent: browsers send it by themselves. 401 for a header Authorization that is
// refused.
func (a rootRoutes) getRoot(r *rest.Request) (rest.Reply, error) {
	self := hal.Self(a.href())
	who, err := a.Authenticate(r.Request)
	switch {
	case errs.CodeOf(err) == errs.Unauthenticated && r.Header.Get("Authorization") == "":
		return rest.OK(hal.Resource{Links: a.linksTo(self, loginRelations, actor.Actor{}), Value: loginRootBody{}})
	case err != nil:
		return rest.Reply{}, err
	}
	ctx := actor.With(r.Context(), who)
	all := slices.DeleteFunc(slices.Clone(relations), func(l relation) bool {
		return strings.HasPrefix(l.rel, "inf:ai-") || strings.HasPrefix(l.rel, "inf:assistant")
	})
	if _, err := a.AIInstructions.Allowed(ctx); err == nil {
		all = relations
	}
	for _, k := range content.Kinds() {
		all = append(
			all, relation{"inf:" + k.Plural, "list" + content.Noun(entity.Kind(k.Plural))},
			relation{"inf:" + string(k.Kind), "get" + content.Noun(k.Kind)},
		)
	}
	links := a.linksTo(self, all, who)
	links.With("inf:feed", a.href("users", who.User, "feed"))
	unread, err := a.Comments.Unread(ctx)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(hal.Resource{Links: links, Value: rootBody{who.Tenant, who.User, unread}})
}

// linksTo adds links to routes that the caller may use.
func (a rootRoutes) linksTo(links hal.Links, all []relation, who actor.Actor) hal.Links {
	for _, l := range all {
		route := a.byName[l.route]
		writes := route != nil && route.Method != http.MethodGet
		if route == nil || !who.Can(route.Permission) || writes && who.ReadOnly {
			continue
		}
		links[l.rel] = a.linkTo(route)
	}
	return links
}

// linkTo returns the link to a route, an RFC 6570 template if the route takes parameters.
func (a rootRoutes) linkTo(route *rest.Route) hal.Link {
	path := rest.TemplateOf(route.Pattern)
	l := hal.Link{Href: a.BaseURL + path, Templated: strings.Contains(path, "{")}
	query := parameters[route.Name]
	for _, name := range route.Query {
		if name != "cursor" && route.Name != "logout" {
			// which only next and prev links have; clients follow the link of a logout as it is
			query = append(query, name)
		}
	}
	if len(query) > 0 {
		l.Href, l.Templated = l.Href+"{?"+strings.Join(query, ",")+"}", true
	}
	return l
}

// getPage serves GET /: 200 and an HTML page that describes the server and links to its routes.
func (a rootRoutes) getPage(*rest.Request) (rest.Reply, error) {
	var body markup
	body.addf(`<p>This server is an HTTP and JSON interface to the content of its tenants: `+
		`colors, bundles, AI instructions, comments, users
and teams. It is made for programs.</p>
<ul>
<li><a href="%s">The interface</a> lists where everything is. Every answer has links to what belongs to it.</li>
`, address(a.href()))
	if !a.noLogins {
		login := a.href("login")
		body.addf(
			"<li><a href=\"%s\">Log in</a> with a browser. A program sends a username and a password to "+
				"<code>POST %s/local</code>.</li>\n",
			address(login), login,
		)
	}
	body.addf(`<li><a href="%s">Your session</a> tells who you are.</li>
<li><a href="%s">The state of the server</a> tells whether it is ready.</li>
</ul>
`, address(a.href("session")), address(a.BaseURL+"/readyz"))
	return pageReply(http.StatusOK, "Content service", &body, noForms), nil
}
