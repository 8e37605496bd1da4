package openapi

import (
	"reflect"
	"strings"
)

// Body describes the body of a request or an answer. The zero Body is no declaration, None the
// empty body.
type Body struct{ *declaration }

type declaration struct {
	kind  kind
	of    reflect.Type
	with  reflect.Type // the additional members of a page
	shown reflect.Type // see Update
	rel   string       // the relation of a page
	links []string     // the relations of a whole collection beside self
	types []string     // the media types
	open  bool         // unknown members are left out
	also  []Body       // other forms that the body may have
}

type kind int

const (
	none kind = iota
	one
	list
	page
	whole
	detective
	input
	file
	form
)

// Declared reports whether a Body is a declaration.
func (b Body) Declared() bool { return b.declaration != nil }

// None is the empty body.
func None() Body { return Body{&declaration{kind: none}} }

// One is a T as JSON: a resource if T is Related.
func One[T any]() Body { return Body{&declaration{kind: one, of: reflect.TypeFor[T]()}} }

// List is an array of Ts.
func List[T any]() Body { return Body{&declaration{kind: list, of: reflect.TypeFor[T]()}} }

// Page is a page of Ts under a relation.
func Page[T any](rel string) Body {
	return Body{&declaration{kind: page, of: reflect.TypeFor[T](), rel: rel}}
}

// PageWith is a Page with the additional members of an E.
func PageWith[T, E any](rel string) Body {
	b := Page[T](rel)
	b.with = reflect.TypeFor[E]()
	return b
}

// Whole is a collection of all Ts, without pages, with links beside self.
func Whole[T any](rel string, links ...string) Body {
	return Body{&declaration{kind: whole, of: reflect.TypeFor[T](), rel: rel, links: links}}
}

// Detective is a detective collection of Ts: see hal.Detective.
func Detective[T any]() Body { return Body{&declaration{kind: detective, of: reflect.TypeFor[T]()}} }

// Input is a T as a request has it. Any member may be left out; what T demands, its route says.
func Input[T any]() Body { return Body{&declaration{kind: input, of: reflect.TypeFor[T]()}} }

// Update is Input for a PUT, to which the members of an S, which a GET answers, may come back.
func Update[T, S any]() Body {
	b := Input[T]()
	b.shown = reflect.TypeFor[S]()
	return b
}

// Bytes is a body of other media types than JSON.
func Bytes(types ...string) Body { return Body{&declaration{kind: file, types: types}} }

// As returns the body with other media types of JSON.
func (b Body) As(types ...string) Body {
	b.types = types
	return b
}

// Open returns the body of a request in which unknown members are left out.
func (b Body) Open() Body {
	b.open = true
	return b
}

// Or returns a body that has one form or another.
func (b Body) Or(others ...Body) Body {
	b.also = append(b.also, others...)
	return b
}

// Answers are the bodies of answers by status.
type Answers map[int]Body

// AnyStatus stands for all statuses that Answers and the failures of a route do not name.
const AnyStatus = 0

// OK are the Answers of a route that answers 200.
func OK(b Body) Answers { return Answers{200: b} }

// Created are the Answers of a route that answers 201.
func Created(b Body) Answers { return Answers{201: b} }

// InputOf is Input for a type that is not known at compile time.
func InputOf(t reflect.Type) Body { return Body{&declaration{kind: input, of: t}} }

// Form is a form of fields, which have the members of a type, and of a file after them.
func Form(t reflect.Type) Body {
	return Body{&declaration{kind: form, of: t, types: []string{"multipart/form-data"}}}
}

// Content returns the bodies by media type. If open is set, members of requests that are not known
// are left out.
func (r *Reflector) Content(b Body, open bool) (all Ordered[MediaType]) {
	if !b.Declared() {
		return nil
	}
	for _, form := range append([]Body{b}, b.also...) {
		switch form.kind {
		case none:
		case file:
			for _, t := range form.types {
				all.Set(t, MediaType{Schema: &Schema{}})
			}
		default:
			types := form.types
			if types == nil {
				types = []string{"application/json"}
			}
			for _, name := range types {
				s := r.opened(form, open)
				if before, twice := all.Get(name); twice {
					s = &Schema{AnyOf: []*Schema{before.Schema, s}}
				}
				all.Set(name, MediaType{Schema: s})
			}
		}
	}
	return all
}

// opened returns the schema of a body. If open is set, a request may have unknown members.
func (r *Reflector) opened(b Body, open bool) *Schema {
	if b.kind == input {
		return r.schema(use{t: b.of, input: true, open: open || b.open, shown: b.shown})
	}
	return r.body(b)
}

// body returns the schema of a body.
func (r *Reflector) body(b Body) *Schema {
	switch b.kind {
	case one:
		return r.schema(use{t: b.of})
	case list:
		return &Schema{Type: Types{"array"}, Items: r.schema(use{t: b.of})}
	case input:
		return r.opened(b, false)
	case page, whole:
		return r.page(b)
	case detective:
		return r.detective(b)
	case form:
		return r.form(b)
	}
	return &Schema{}
}

// page returns a reference to the component of a collection.
func (r *Reflector) page(b Body) *Schema {
	ref, s := r.named(pageName(b), use{t: b.of, rel: b.rel})
	if s == nil {
		return ref
	}
	s.Additional = closed
	links := &Schema{Ref: "#/components/schemas/PageLinks"}
	if b.kind == whole {
		links = linksSchema(b.links, "self")
	}
	s.Properties.Set("_links", links)
	r.pageMembers(s)
	if b.with != nil {
		r.members(s, use{t: b.with}, b.with)
	}
	rows := object()
	rows.Additional, rows.Required = closed, []string{b.rel}
	rows.Properties.Set(b.rel, &Schema{Type: Types{"array"}, Items: r.schema(use{t: b.of})})
	s.Properties.Set("_embedded", rows)
	s.Required = append([]string{"_links", "_embedded"}, s.Required...)
	return ref
}

// pageName returns the name of the component of a collection: that of the rows, with the relation
// before it if that is another one.
func pageName(b Body) string {
	row, rel := nameOf(use{t: b.of}), ""
	for _, part := range strings.Split(b.rel[strings.Index(b.rel, ":")+1:], "-") {
		rel += strings.ToUpper(part[:1]) + part[1:]
	}
	switch {
	case strings.Contains(row, rel):
		return row + "Page"
	case strings.Contains(rel, row):
		return rel + "Page"
	}
	return rel + row + "Page"
}

// pageMembers adds the members of a hal.Page.
func (r *Reflector) pageMembers(s *Schema) {
	zero := 0
	for _, m := range []struct{ name, text string }{
		{"start", "How many rows come before the page."},
		{"count", "How many rows the page has."},
		{"total", "How many rows the list has."},
	} {
		s.Properties.Set(m.name, &Schema{Type: Types{"integer"}, Minimum: &zero, Description: m.text})
		s.Required = append(s.Required, m.name)
	}
}

// detective returns the schema of a detective collection.
func (r *Reflector) detective(b Body) *Schema {
	item := object()
	item.Additional, item.Required = closed, []string{"detective", "id", "value"}
	item.Properties.Set("detective", &Schema{Type: Types{"string"}})
	item.Properties.Set("id", &Schema{Type: Types{"string"}})
	item.Properties.Set("value", r.schema(use{t: b.of}))
	s := object()
	s.Additional = closed
	s.Properties.Set("_links", linksSchema(nil, "self"))
	s.Properties.Set("items", &Schema{Type: Types{"array"}, Items: item})
	s.Required = []string{"_links", "items"}
	r.pageMembers(s)
	return s
}

// form returns the schema of a form.
func (r *Reflector) form(b Body) *Schema {
	s := object()
	s.Additional, s.Properties = closed, r.Members(b.of)
	s.Properties.Set("file", &Schema{Description: "The file: the last field of the form."})
	s.Required = []string{"file"}
	return s
}

// Members returns the members of a struct that requests are decoded into.
func (r *Reflector) Members(t reflect.Type) Ordered[*Schema] {
	s := object()
	r.members(s, use{t: t, input: true}, t)
	return s.Properties
}

// Components returns the schemas that others refer to.
func (r *Reflector) Components() map[string]*Schema {
	link := object()
	link.Properties.Set("href", &Schema{
		Type: Types{"string"}, Description: "An absolute URL, or a template of RFC 6570 if templated is true.",
	})
	link.Properties.Set("templated", &Schema{Type: Types{"boolean"}})
	link.Required, link.Additional = []string{"href"}, closed
	if r.Schemas == nil {
		r.Schemas = map[string]*Schema{}
	}
	r.Schemas["Link"] = link
	r.Schemas["PageLinks"] = linksSchema([]string{"next", "prev"}, "self")
	return r.Schemas
}
