package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// Shaper is a type that encodes or decodes itself. Shape returns a value of a type with the same
// JSON, whose schema the type has.
type Shaper interface{ Shape() any }

// Either is the type of an element of a Shape that has one of several forms. Either returns a value
// of each.
type Either interface{ Either() []any }

// Related is the value of a resource: see hal.Resource.
type Related interface{ Relations() Relations }

// Relations are the relations of a resource.
type Relations struct {
	// Links are the relations beside self. "[]" after the name stands for an array of links.
	Links []string
	// Embeds are the bodies that may be embedded, by relation.
	Embeds Embeds
	// Others is the body of all other relations that may be embedded.
	Others Body
	// Rows are the members that are arrays of resources beside the value: see hal.Resource.Last.
	Rows Embeds
}

// Extended is a type that writes members beside those of its fields.
type Extended interface{ Extras() []Extra }

// Extra is a member that no field has.
type Extra struct {
	Name     string
	Body     Body
	Null     bool // it may be null
	Optional bool // it may be missing
}

// Any is the relation that stands for links of any relation.
const Any = "*"

// Embeds are bodies by relation.
type Embeds map[string]Body

// Resource is the type of a member of a Shape that is a resource with a value of type T, or null
// for a *Resource.
type Resource[T any] struct{}

func (Resource[T]) value() reflect.Type { return reflect.TypeFor[T]() }

type resource interface{ value() reflect.Type }

// Text is what the source code says of a type.
type Text struct {
	Text   string            `json:"text,omitempty"`
	Fields map[string]string `json:"fields,omitempty"` // by their names in Go
}

// Reflector makes the schemas of types. It collects those of named structs as components.
type Reflector struct {
	// Texts are those of types, by package and name, such as httpapi.colorBody.
	Texts map[string]Text
	// Extras are additional members of types.
	Extras map[reflect.Type][]Extra
	// Schemas are the components by name.
	Schemas map[string]*Schema
	// Errs are the types that have no schema, or that need a name of their own.
	Errs []error

	of   map[string]use // what the components are of
	seen map[string]bool
}

// Seen returns the types whose members are described, as Texts names them.
func (r *Reflector) Seen() []string { return slices.Sorted(maps.Keys(r.seen)) }

// use is how a type is used: each use has a component of its own.
type use struct {
	t     reflect.Type
	input bool         // requests are decoded into it, by package jsonfill; else answers are encoded
	open  bool         // unknown members are left out
	shown reflect.Type // of a PUT: the members of an answer that may come back
	plain bool         // the value of a resource, without its links
	rel   string       // of a collection
}

func (r *Reflector) fail(format string, args ...any) *Schema {
	r.Errs = append(r.Errs, fmt.Errorf(format, args...))
	return &Schema{}
}

var (
	rawJSON         = reflect.TypeFor[json.RawMessage]()
	anyType         = reflect.TypeFor[any]()
	halTime         = reflect.TypeFor[hal.Time]()
	timeTime        = reflect.TypeFor[time.Time]()
	timestamp       = reflect.TypeFor[jsonfill.Timestamp]()
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
)

// schema returns the schema of a use, which is a reference for a named struct.
func (r *Reflector) schema(u use) *Schema {
	switch u.t {
	case rawJSON, anyType:
		return &Schema{}
	case halTime, timeTime, timestamp:
		return &Schema{Type: Types{"string"}, Format: "date-time"}
	}
	if u.t.Kind() == reflect.Pointer {
		u.t = u.t.Elem()
		if u.input {
			return r.schema(u)
		}
		return nullable(r.schema(u))
	}
	zero := reflect.New(u.t).Elem().Interface()
	switch z := zero.(type) {
	case resource:
		return r.schema(use{t: z.value()})
	case Shaper:
		return r.shaped(u, reflect.TypeOf(z.Shape()))
	case Either:
		s := &Schema{}
		for _, form := range z.Either() {
			s.AnyOf = append(s.AnyOf, r.schema(use{t: reflect.TypeOf(form), input: u.input, open: u.open}))
		}
		return s
	}
	if custom := u.t.Implements(jsonMarshaler) || u.t.Implements(textMarshaler); custom && !u.input ||
		u.input && reflect.PointerTo(u.t).Implements(jsonUnmarshaler) {
		return r.fail("%s encodes itself: it needs a Shape", u.t)
	}
	switch u.t.Kind() {
	case reflect.Struct:
		if u.t.NumField() == 0 && u.t.Name() == "" {
			s := object()
			s.Additional = closed
			return s
		}
		return r.component(u, u.t)
	case reflect.Slice, reflect.Array:
		if u.t.Elem().Kind() == reflect.Uint8 {
			return &Schema{Type: Types{"string"}, Encoding: "base64"}
		}
		u.t = u.t.Elem()
		return &Schema{Type: Types{"array"}, Items: r.schema(u)}
	case reflect.Map:
		u.t = u.t.Elem()
		return &Schema{Type: Types{"object"}, Additional: &Additional{r.schema(u)}}
	}
	return r.scalar(u.t)
}

func (r *Reflector) scalar(t reflect.Type) *Schema {
	switch t.Kind() {
	case reflect.String:
		return &Schema{Type: Types{"string"}}
	case reflect.Bool:
		return &Schema{Type: Types{"boolean"}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: Types{"integer"}}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Types{"number"}}
	}
	return r.fail("%s has no JSON", t)
}

// shaped returns the schema of a type that has a Shape.
func (r *Reflector) shaped(u use, shape reflect.Type) *Schema {
	if shape.Kind() == reflect.Struct {
		return r.component(u, shape)
	}
	u.t = shape
	return r.schema(u)
}

// component returns a reference to the component of a struct, whose members are those of shape.
func (r *Reflector) component(u use, shape reflect.Type) *Schema {
	related, is := reflect.New(u.t).Elem().Interface().(Related)
	u.plain = u.plain && is && !u.input
	name := nameOf(u)
	if name == "" {
		return r.fail("%s needs a name", u.t)
	}
	ref, s := r.named(name, u)
	if s == nil {
		return ref
	}
	s.Description = r.Texts[textKey(u.t)].Text
	is = is && !u.input && !u.plain
	if is {
		s.Properties.Set("_links", linksSchema(related.Relations().Links, "self"))
		s.Required = append(s.Required, "_links")
	}
	r.members(s, u, shape)
	r.extras(s, u.t)
	if u.shown != nil {
		r.shownMembers(s, u.shown)
	}
	if is {
		for _, name := range slices.Sorted(maps.Keys(related.Relations().Rows)) {
			s.Properties.Set(name, r.body(related.Relations().Rows[name]))
			s.Required = append(s.Required, name)
		}
		r.embed(s, related.Relations())
	}
	if !u.open {
		s.Additional = closed
	}
	return ref
}

// named returns a reference to the component with a name and, if the component is new, its
// schema, an object without members. It fails for the name of another use.
func (r *Reflector) named(name string, u use) (ref, made *Schema) {
	ref = &Schema{Ref: "#/components/schemas/" + name}
	if known, ok := r.of[name]; ok {
		if known != u {
			return r.fail("%s is the component of %v and of %v", name, known, u), nil
		}
		return ref, nil
	}
	if r.of == nil {
		r.of, r.Schemas = map[string]use{}, map[string]*Schema{}
	}
	made = object()
	r.of[name], r.Schemas[name] = u, made
	return ref, made
}

// textKey is the key of a type in Texts.
func textKey(t reflect.Type) string { return t.String() }

// nameOf returns the name of the component of a struct, "" if its type has none.
func nameOf(u use) string {
	name := u.t.Name()
	if name == "" || strings.Contains(name, "[") {
		return ""
	}
	name = strings.ToUpper(name[:1]) + name[1:]
	if short := strings.TrimSuffix(name, "Body"); short != "" {
		name = short
	}
	switch {
	case u.input && u.shown != nil:
		return strings.TrimSuffix(strings.TrimSuffix(name, "Input"), "Update") + "Update"
	case u.input:
		return strings.TrimSuffix(name, "Input") + "Input"
	case u.plain:
		return name + "Members"
	}
	return name
}

// members adds the members of a struct to an object.
func (r *Reflector) members(s *Schema, u use, t reflect.Type) {
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[textKey(t)], r.seen[textKey(u.t)] = true, true
	text := r.Texts[textKey(t)]
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if z, ok := reflect.New(inner).Elem().Interface().(Shaper); ok {
				inner = reflect.TypeOf(z.Shape())
			}
			r.members(s, u, inner)
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		member, required := r.member(u, f, options)
		if member.Description == "" {
			member.Description = text.Fields[f.Name]
		}
		s.Properties.Set(name, member)
		if required {
			s.Required = append(s.Required, name)
		}
	}
}

// member returns the schema of a field, and whether each object has it.
func (r *Reflector) member(u use, f reflect.StructField, options string) (*Schema, bool) {
	t, null := f.Type, false
	if u.input {
		if value, is := optional(t); is {
			t, null = value, true
		}
	}
	left := slices.ContainsFunc(strings.Split(options, ","), func(o string) bool {
		return strings.HasPrefix(o, "omit")
	})
	if left && !u.input && t.Kind() == reflect.Pointer {
		t = t.Elem() // it is left out in place of null
	}
	s := r.schema(use{t: t, input: u.input, open: u.open, plain: true})
	tagged(s, f.Tag)
	if null || f.Tag.Get("null") != "" {
		s = nullable(s)
	}
	return s, !u.input && !left || f.Tag.Get("required") != ""
}

// extras adds the members of a type that it has no fields for.
func (r *Reflector) extras(s *Schema, t reflect.Type) {
	all := r.Extras[t]
	if extended, is := reflect.New(t).Elem().Interface().(Extended); is {
		all = append(extended.Extras(), all...)
	}
	for _, extra := range all {
		member := r.body(extra.Body)
		if extra.Null {
			member = nullable(member)
		}
		s.Properties.Set(extra.Name, member)
		if !extra.Optional {
			s.Required = append(s.Required, extra.Name)
		}
	}
}

// tagged adds what the tags of a field say: enum:"a b" has the values of a string, or of the
// strings of an array, and format:"uuid" its format. null:"true" is for a value that may be null
// although its type has nothing that says so, as a slice.
func tagged(s *Schema, tag reflect.StructTag) {
	of := s
	if s.Items != nil {
		of = s.Items
	}
	if format := tag.Get("format"); format != "" {
		of.Format = format
	}
	if values := tag.Get("enum"); values != "" {
		for _, v := range strings.Fields(values) {
			of.Enum = append(of.Enum, v)
		}
		if slices.Contains(of.Type, "null") {
			of.Enum = append(of.Enum, nil)
		}
	}
}

// optional returns the type of the value of a jsonfill.Field.
func optional(t reflect.Type) (value reflect.Type, is bool) {
	if t.PkgPath() != timestamp.PkgPath() || !strings.HasPrefix(t.Name(), "Field[") {
		return nil, false
	}
	f, is := t.FieldByName("Value")
	return f.Type.Elem(), is
}

// shownMembers adds the members of an answer that a PUT ignores.
func (r *Reflector) shownMembers(s *Schema, shown reflect.Type) {
	all := object()
	if z, ok := reflect.New(shown).Elem().Interface().(Shaper); ok {
		shown = reflect.TypeOf(z.Shape())
	}
	if shown.Kind() == reflect.Struct {
		r.members(all, use{t: shown, plain: true}, shown)
	}
	names := []string{"_links", "_embedded"}
	for _, m := range all.Properties {
		names = append(names, m.Name)
	}
	for _, name := range names {
		if _, has := s.Properties.Get(name); !has {
			s.Properties.Set(name, &Schema{ReadOnly: true})
		}
	}
}

// linksSchema returns the schema of _links: required relations, which one link each has, and
// others.
func linksSchema(others []string, required ...string) *Schema {
	s := object()
	s.Additional, s.Required = closed, required
	for _, rel := range slices.Concat(required, others) {
		link := &Schema{Ref: "#/components/schemas/Link"}
		if rel == Any {
			s.Additional = &Additional{link}
			continue
		}
		if name, many := strings.CutSuffix(rel, "[]"); many {
			rel, link = name, &Schema{Type: Types{"array"}, Items: link}
		}
		s.Properties.Set(rel, link)
	}
	return s
}

// embed adds _embedded to a resource.
func (r *Reflector) embed(s *Schema, of Relations) {
	if of.Embeds == nil && !of.Others.Declared() {
		return
	}
	inner := object()
	inner.Additional = closed
	for _, rel := range slices.Sorted(maps.Keys(of.Embeds)) {
		inner.Properties.Set(rel, nullable(r.body(of.Embeds[rel])))
	}
	if of.Others.Declared() {
		inner.Additional = &Additional{nullable(r.body(of.Others))}
	}
	s.Properties.Set("_embedded", inner)
}
