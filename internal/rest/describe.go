package rest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// Description is what Describe adds to the routes.
type Description struct {
	// Document has what is not of a single route: title, servers, schemes, responses.
	Document openapi.Document
	// Params describe the parameters in paths and queries by name.
	Params map[string]openapi.Parameter
	// Source is what the source code and the tests say.
	Source Source
	// Extras are members of types that they have no fields for.
	Extras map[reflect.Type][]openapi.Extra
	// Failure names the response of failures of a route, one of Document.Components.Responses.
	Failure func(*Route) string
}

// Source is what the source code says of routes and types, and examples from the tests.
type Source struct {
	Routes map[string]RouteSource  `json:"routes"` // by name
	Types  map[string]openapi.Text `json:"types"`  // by package and name
}

// RouteSource is what is known of a route beside its row.
type RouteSource struct {
	Text    string          `json:"text,omitempty"` // what its handler does
	Takes   json.RawMessage `json:"takes,omitempty"`
	Gives   json.RawMessage `json:"gives,omitempty"`
	Status  int             `json:"status,omitempty"`  // of Gives
	Options map[string]bool `json:"options,omitempty"` // that the test samples have
}

// Describe returns the description of routes. It fails for routes without a declaration, and for
// types without a schema.
func Describe(routes []Route, d Description) (openapi.Document, error) {
	w := describe(routes, d)
	return w.doc, errors.Join(append(w.errs, w.reflector.Errs...)...)
}

// DescribedTypes returns the types whose members are in the description of routes, as Source has
// them.
func DescribedTypes(routes []Route, d Description) []string {
	return describe(routes, d).reflector.Seen()
}

func describe(routes []Route, d Description) *describer {
	w := &describer{Description: d, doc: d.Document}
	w.reflector.Texts, w.reflector.Extras = d.Source.Types, d.Extras
	for name, body := range w.doc.Components.Bodies {
		r := w.doc.Components.Responses[name]
		r.Content = w.reflector.Content(body, false)
	}
	for i := range routes {
		w.add(&routes[i])
	}
	w.doc.Components.Schemas = w.reflector.Components()
	return w
}

type describer struct {
	Description
	doc       openapi.Document
	reflector openapi.Reflector
	errs      []error
}

// add adds the operation of a route.
func (w *describer) add(route *Route) {
	if !route.described() {
		w.errs = append(w.errs, fmt.Errorf("the route %s says not what it takes and gives", route.Name))
		return
	}
	path := TemplateOf(route.Pattern)
	item, known := w.doc.Paths.Get(path)
	if !known {
		item = &openapi.PathItem{Parameters: w.pathParameters(route.Pattern)}
		w.doc.Paths.Set(path, item)
	}
	source := w.Source.Routes[route.Name]
	op := &openapi.Operation{
		Tags: []string{w.tag(path)}, ID: route.Name, Summary: route.Summary,
		Description: strings.TrimSpace(source.Text + " " + needs(route)),
		Parameters:  w.queryParameters(route),
		Responses:   w.responses(route, source),
		RequestBody: w.requestBody(route, source),
	}
	if route.Public {
		op.Security = &[]openapi.Security{}
	}
	item.Operations.Set(strings.ToLower(route.Method), op)
}

// described reports whether the route declares its input and its answers.
func (route *Route) described() bool {
	return len(route.Gives) > 0 && (IsRead(route.Method) || route.Options != nil || route.Takes.Declared())
}

// needs returns the sentence about what a route requires of its caller.
func needs(route *Route) string {
	switch {
	case route.Public:
		return "Needs no session."
	case route.Permission != "":
		return "Needs the permission " + string(route.Permission) + "."
	}
	return ""
}

// tag returns the group of a path: its first segment below /api, without what follows a hyphen if
// that is a group, too.
func (w *describer) tag(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/"), "/")
	name = cmp.Or(name, "root")
	has := func(name string) bool {
		return slices.ContainsFunc(w.doc.Tags, func(t openapi.Tag) bool { return t.Name == name })
	}
	if before, _, cut := strings.Cut(name, "-"); cut && has(before) {
		return before
	}
	if !has(name) {
		w.doc.Tags = append(w.doc.Tags, openapi.Tag{Name: name})
	}
	return name
}

// pathParameters returns the parameters in a pattern.
func (w *describer) pathParameters(pattern string) (all []*openapi.Parameter) {
	for _, s := range strings.Split(pattern, "/") {
		if IsParam(s) || IsCatchAll(s) {
			p := w.parameter(s[1:])
			p.In, p.Required = "path", true
			if IsCatchAll(s) {
				p.Description += " It may have several segments, with slashes between them; as one " +
					"parameter, %2F stands for each slash."
			}
			all = append(all, p)
		}
	}
	return all
}

// parameter returns the description of a parameter with a name.
func (w *describer) parameter(name string) *openapi.Parameter {
	p := w.Params[name]
	if p.Description == "" {
		w.errs = append(w.errs, fmt.Errorf("the parameter %s has no description", name))
	}
	p.Name = name
	if p.Schema == nil {
		p.Schema = &openapi.Schema{Type: openapi.Types{"string"}}
	}
	return &p
}

// queryParameters returns the parameters in the query of a route.
func (w *describer) queryParameters(route *Route) (all []*openapi.Parameter) {
	for _, name := range slices.Concat(route.Query, route.Reads) {
		p := w.parameter(name)
		p.In = "query"
		if w.doc.Components.Parameters[name] == nil {
			w.doc.Components.Parameters[name] = p
		}
		all = append(all, &openapi.Parameter{Ref: "#/components/parameters/" + name})
	}
	if route.Options == nil {
		return all
	}
	options := w.reflector.Members(reflect.TypeOf(route.Options))
	types := jsonfill.FieldTypes(reflect.TypeOf(route.Options))
	for _, m := range options {
		p := &openapi.Parameter{Name: m.Name, In: "query", Description: m.Value.Description}
		schema := *m.Value
		schema.Description = ""
		switch t := types[m.Name]; {
		case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
			commas := false
			p.Style, p.Explode, p.Schema = "form", &commas, &schema
		case t.Kind() == reflect.String || t.Kind() == reflect.Bool || t.Kind() == reflect.Int:
			p.Schema = &schema
		default:
			p.Content = map[string]openapi.MediaType{"application/json": {Schema: &schema}}
		}
		all = append(all, p)
	}
	return all
}

// requestBody returns the body that a route takes, nil for none.
func (w *describer) requestBody(route *Route, source RouteSource) *openapi.RequestBody {
	takes := route.Takes
	if route.Options != nil {
		takes = openapi.InputOf(reflect.TypeOf(route.Options))
		if len(w.reflector.Members(reflect.TypeOf(route.Options))) == 0 {
			takes = openapi.None()
		}
		if route.File {
			takes = takes.Or(openapi.Bytes(archiveType)).Or(openapi.Form(reflect.TypeOf(route.Options)))
		}
	}
	content := w.reflector.Content(takes, route.Drops)
	if len(content) == 0 {
		return nil
	}
	if source.Takes != nil {
		content[0].Value.Example = source.Takes
	}
	return &openapi.RequestBody{Content: content}
}

// responses returns the answers of a route.
func (w *describer) responses(route *Route, source RouteSource) (all openapi.Ordered[*openapi.Response]) {
	for _, status := range slices.Sorted(maps.Keys(route.Gives)) {
		content := w.reflector.Content(route.Gives[status], false)
		if source.Gives != nil && source.Status == status && len(content) > 0 {
			content[0].Value.Example = source.Gives
		}
		if status == openapi.AnyStatus {
			any := &openapi.Response{
				Description: "What the program of the tenant answers, or a failure.", Content: content,
			}
			return openapi.Ordered[*openapi.Response]{{Name: "default", Value: any}}
		}
		all.Set(fmt.Sprint(status), &openapi.Response{Description: http.StatusText(status), Content: content})
	}
	failure := &openapi.Response{Ref: "#/components/responses/" + w.Failure(route)}
	for _, status := range route.Fails {
		all.Set(fmt.Sprint(status), failure)
	}
	all.Set("default", failure)
	return all
}
