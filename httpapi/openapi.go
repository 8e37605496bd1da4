package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
)

// openapiRoutes serves the description of all routes.
type openapiRoutes struct{ *api }

// routes returns the rows of the route table.
func (a openapiRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/openapi.json",
			Name:    "getOpenAPI",
			Grants:  nothing,
			Public:  true,
			AnyType: true,
			Summary: "This description as JSON",
			Gives:   openapi.OK(openapi.Bytes("application/json")),
			Handle:  a.getOpenAPI,
		},
		{
			Method:  get,
			Pattern: "/api/openapi.yaml",
			Name:    "getOpenAPIAsYAML",
			Grants:  nothing,
			Public:  true,
			AnyType: true,
			Summary: "This description as YAML",
			Gives:   openapi.OK(openapi.Bytes("application/yaml")),
			Handle:  a.getOpenAPIAsYAML,
		},
	}
}

// description is the document in the forms in which it is served. It is made once, when it is first
// asked for.
type description struct {
	once       sync.Once
	json, yaml []byte
	version    string
	err        error
}

// OpenAPI returns the description of all routes of this handler, as JSON.
func (a *api) OpenAPI() ([]byte, error) {
	d := &a.description
	d.once.Do(func() {
		var doc openapi.Document
		if doc, d.err = a.describe(); d.err != nil {
			return
		}
		if d.json, d.err = openapi.Encode(doc); d.err != nil {
			return
		}
		sum := sha256.Sum256(d.json)
		d.version = base64.RawURLEncoding.EncodeToString(sum[:9])
		d.yaml, d.err = openapi.YAML(d.json)
	})
	return d.json, d.err
}

// getOpenAPI serves GET /api/openapi.json: 200 and the description of all routes of this server as
// OpenAPI 3.1.1; 304 for a client that has it already.
func (a openapiRoutes) getOpenAPI(*rest.Request) (rest.Reply, error) {
	if _, err := a.OpenAPI(); err != nil {
		return rest.Reply{}, err
	}
	return documentReply("application/json; charset=utf-8", a.description.version, a.description.json)
}

// getOpenAPIAsYAML serves GET /api/openapi.yaml: 200 and what openapi.json has, as YAML.
func (a openapiRoutes) getOpenAPIAsYAML(*rest.Request) (rest.Reply, error) {
	if _, err := a.OpenAPI(); err != nil {
		return rest.Reply{}, err
	}
	return documentReply("application/yaml; charset=utf-8", a.description.version+"y", a.description.yaml)
}

func documentReply(contentType, version string, content []byte) (rest.Reply, error) {
	return rest.File(version, contentType, "", time.Time{}, struct {
		*bytes.Reader
		io.Closer
	}{bytes.NewReader(content), io.NopCloser(nil)})
}

// sourceGZ is the Source of the routes: their texts, which are the comments of handlers and types,
// and examples from the transcripts. TestOpenAPISource writes it.
//
//go:embed openapi.json.gz
var sourceGZ []byte

// openapiSource reads the Source.
func openapiSource() (s rest.Source, err error) {
	r, err := gzip.NewReader(bytes.NewReader(sourceGZ))
	if err != nil {
		return s, err
	}
	return s, json.NewDecoder(r).Decode(&s)
}

// describe makes the description.
func (a *api) describe() (openapi.Document, error) {
	source, err := openapiSource()
	if err != nil {
		return openapi.Document{}, err
	}
	extras, err := a.hostMembers()
	if err != nil {
		return openapi.Document{}, err
	}
	return rest.Describe(a.table, rest.Description{
		Document: baseDocument(a.BaseURL), Params: openapiParameters(), Source: source, Extras: extras,
		Failure: func(r *rest.Route) string {
			switch {
			case strings.HasPrefix(r.Pattern, scimRoot+"/"):
				return "SCIMFailure"
			case r.Failed != nil || r.Ask != nil:
				return "FailureOrPage"
			}
			return "Failure"
		},
	})
}

// hostMembers returns the members that comments and entries of bundles have for the host's kinds.
func (a *api) hostMembers() (map[reflect.Type][]openapi.Extra, error) {
	columns := map[string]bool{}
	text := func(name string) openapi.Extra {
		return openapi.Extra{Name: name, Body: openapi.One[string](), Null: true, Optional: true}
	}
	var ofComments, ofEntries []openapi.Extra
	for _, p := range a.HostParents {
		if column := comments.HostColumn(p.Kind); column != "" {
			ofComments = append(ofComments, text(column))
		}
	}
	if a.Bundles == nil {
		return map[reflect.Type][]openapi.Extra{reflect.TypeFor[commentBody](): ofComments}, nil
	}
	drivers, err := a.Bundles.Drivers(actor.With(context.Background(), actor.Actor{Tenant: "-", User: "-"}))
	if err != nil {
		return nil, err
	}
	for _, d := range drivers {
		if d.Column != "" && !slices.Contains(entryColumns, d.Column) {
			columns[d.Column] = true
		}
	}
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		ofEntries = append(ofEntries, text(column))
	}
	return map[reflect.Type][]openapi.Extra{
		reflect.TypeFor[commentBody](): ofComments, reflect.TypeFor[entryBody](): ofEntries,
		reflect.TypeFor[newEntryInput](): ofEntries,
	}, nil
}

// baseDocument returns what the description has beside routes.
func baseDocument(baseURL string) openapi.Document {
	return openapi.Document{
		OpenAPI: openapi.Version,
		Info: openapi.Info{
			Title: "tenantcontent", Version: "1",
			Description: "Content of tenants: palettes, texts, comments, datasets, files, apps and " +
				"assistants, with those who may use them. Answers are HAL: _links has links by " +
				"relation, and _embedded other resources. All members of objects in answers are " +
				"described; later versions may add some.",
			License: openapi.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers:  []openapi.Server{{URL: baseURL}},
		Security: []openapi.Security{{"token": {}}, {"session": {}}},
		Components: openapi.Components{
			SecuritySchemes: map[string]openapi.SecurityScheme{
				"token": {
					Type: "http", Scheme: "bearer",
					Description: "A session (POST /api/login), an API token (POST /api/tokens), or a token " +
						"for what its route names.",
				},
				"session": {Type: "apiKey", In: "cookie", Name: "sid", Description: "The session of a browser."},
			},
			Parameters: map[string]*openapi.Parameter{},
			Responses: map[string]*openapi.Response{
				"Failure": {
					Description: "A failure. message says what is wrong, in which field, and what to do.",
				},
				"FailureOrPage": {
					Description: "A failure, to a browser that goes to the address as a page.",
				},
				"SCIMFailure": {Description: "A failure as SCIM has it."},
			},
			Bodies: map[string]openapi.Body{
				"Failure":       openapi.One[rest.Problem](),
				"FailureOrPage": openapi.One[rest.Problem]().Or(openapi.Bytes("text/html")),
				"SCIMFailure":   openapi.One[scimProblemBody]().As(typeSCIM),
			},
		},
	}
}

// openapiParameters describes the parameters of paths and queries.
func openapiParameters() map[string]openapi.Parameter {
	all := map[string]openapi.Parameter{}
	for _, p := range strings.Split(strings.TrimSpace(parameterTexts), "\n") {
		name, text, _ := strings.Cut(p, ": ")
		all[name] = openapi.Parameter{Description: text}
	}
	for _, name := range []string{"start", "limit", "startIndex", "count"} {
		p := all[name]
		p.Schema = &openapi.Schema{Type: openapi.Types{"integer"}}
		all[name] = p
	}
	for _, name := range []string{"check", "revokeTokens", "provider"} {
		p := all[name]
		p.Schema = &openapi.Schema{Type: openapi.Types{"boolean"}}
		all[name] = p
	}
	return all
}

const parameterTexts = `
agent: The name of the agent in the manifest of the app.
attributes: The attributes to answer, with commas between them.
check: Whether the settings are checked before they are stored: true unless it says otherwise.
count: How many resources the page has at most.
cursor: Where the page begins, for the database: of the links next and prev.
datasetId: The id or natural id of the dataset.
domain: The id of the domain.
entityId: The id of the entity.
entityType: The kind of the entity.
entry: The id of the entry.
errors: Where failures of the log-in are told of: returnTo for the page that it leads to.
eventId: The id of the event.
excludedAttributes: The attributes to leave out, with commas between them.
filename: The name of the file in the body.
filter: Which resources are answered, as RFC 7644 has it.
for: What the database has to take: read or write.
id: The id, or what the path has in its place, such as a natural id.
invocationId: The id of the call.
key: The key.
limit: How many rows the page has at most; 0 for the total only.
messageId: The id of the message.
method: Calls with this method.
name: The name.
path: The path of the file or route.
principalId: The username of a user or the id of a team; * for everybody where that can be.
print: The orientation of the printed page: portrait or landscape.
provider: Whether the provider of the log-in is logged out from, too.
q: Words to search for.
RelayState: What the provider sends back.
returnTo: The path below the base URL where the browser goes on.
revokeTokens: Whether the user's API tokens are revoked.
role: The role in which the app is seen.
runId: The id of the run.
since: Rows that were made at this time or later.
sort: The member to order by, with - before it for the other direction.
sortBy: The attribute to order by.
sortOrder: ascending or descending.
start: How many rows come before the page.
startIndex: The number of the first resource, from 1 on.
state: The state of the rows, or what a provider sends back.
tagId: The id of the tag.
tenant: The id of the tenant.
token: The token that lets the caller in.
tokenId: The id of the token.
trigger: Runs that were started by this.
type: Rows of this type.
username: The username, in any case.
`
