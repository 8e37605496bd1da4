// Package openapi describes routes and their bodies as OpenAPI 3.1.1, with schemas that are made
// from Go types by the rules of package jsonfill, which decodes requests, and of encoding/json.
//
// Package rest makes a Document of its routes. The types of documents have the fields that this
// service needs, and no others.
package openapi

import (
	"bytes"
	"encoding/json"
)

// Version is the version of OpenAPI that a Document has.
const Version = "3.1.1"

// Document is a description of a service.
type Document struct {
	OpenAPI    string             `json:"openapi"`
	Info       Info               `json:"info"`
	Servers    []Server           `json:"servers"`
	Security   []Security         `json:"security"`
	Tags       []Tag              `json:"tags"`
	Paths      Ordered[*PathItem] `json:"paths"`
	Components Components         `json:"components"`
}

// Info names the service.
type Info struct {
	Title       string  `json:"title"`
	Version     string  `json:"version"`
	Description string  `json:"description,omitempty"`
	License     License `json:"license"`
}

// License names a license by its identifier of SPDX.
type License struct {
	Name       string `json:"name"`
	Identifier string `json:"identifier"`
}

// Server is where a service is.
type Server struct {
	URL string `json:"url"`
}

// Security names one or several security schemes that are needed together.
type Security map[string][]string

// Tag names a group of operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// PathItem has the operations of a path by method, in lower case, and the parameters in the path.
type PathItem struct {
	Parameters []*Parameter
	Operations Ordered[*Operation]
}

// MarshalJSON implements json.Marshaler.
func (p *PathItem) MarshalJSON() ([]byte, error) {
	all := Ordered[any]{}
	if len(p.Parameters) > 0 {
		all.Set("parameters", p.Parameters)
	}
	for _, m := range p.Operations {
		all.Set(m.Name, m.Value)
	}
	return json.Marshal(all)
}

// Operation is a method of a path.
type Operation struct {
	Tags        []string           `json:"tags"`
	ID          string             `json:"operationId"`
	Summary     string             `json:"summary"`
	Description string             `json:"description,omitempty"`
	Parameters  []*Parameter       `json:"parameters,omitempty"`
	RequestBody *RequestBody       `json:"requestBody,omitempty"`
	Responses   Ordered[*Response] `json:"responses"`
	Security    *[]Security        `json:"security,omitempty"`
}

// Parameter is a parameter in the path or the query, or a reference to one.
type Parameter struct {
	Ref         string               `json:"$ref,omitempty"`
	Name        string               `json:"name,omitempty"`
	In          string               `json:"in,omitempty"`
	Description string               `json:"description,omitempty"`
	Required    bool                 `json:"required,omitempty"`
	Style       string               `json:"style,omitempty"`
	Explode     *bool                `json:"explode,omitempty"`
	Schema      *Schema              `json:"schema,omitempty"`
	Content     map[string]MediaType `json:"content,omitempty"`
	Example     string               `json:"example,omitempty"`
}

// RequestBody is the body that an operation takes.
type RequestBody struct {
	Required bool               `json:"required,omitempty"`
	Content  Ordered[MediaType] `json:"content"`
}

// Response is an answer, or a reference to one.
type Response struct {
	Ref         string             `json:"$ref,omitempty"`
	Description string             `json:"description,omitempty"`
	Content     Ordered[MediaType] `json:"content,omitempty"`
}

// MediaType is a body of one media type.
type MediaType struct {
	Schema  *Schema         `json:"schema,omitempty"`
	Example json.RawMessage `json:"example,omitempty"`
}

// Components are what the rest of a document refers to.
type Components struct {
	Schemas         map[string]*Schema        `json:"schemas"`
	Responses       map[string]*Response      `json:"responses"`
	Parameters      map[string]*Parameter     `json:"parameters"`
	SecuritySchemes map[string]SecurityScheme `json:"securitySchemes"`
	// Bodies are those of Responses, for which they are replaced by their schemas.
	Bodies map[string]Body `json:"-"`
}

// SecurityScheme is a way to authenticate a caller.
type SecurityScheme struct {
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
	Name        string `json:"name,omitempty"`
	In          string `json:"in,omitempty"`
}

// Ordered is a JSON object whose members keep their order.
type Ordered[T any] []Member[T]

// Member is a member of an Ordered.
type Member[T any] struct {
	Name  string
	Value T
}

// Set adds a member, or replaces the one with the name.
func (o *Ordered[T]) Set(name string, value T) {
	for i := range *o {
		if (*o)[i].Name == name {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member[T]{name, value})
}

// Get returns the member with a name.
func (o Ordered[T]) Get(name string) (value T, ok bool) {
	for _, m := range o {
		if m.Name == name {
			return m.Value, true
		}
	}
	return value, false
}

// MarshalJSON implements json.Marshaler.
func (o Ordered[T]) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, _ := json.Marshal(m.Name) // a string can always be encoded
		out = append(append(out, name...), ':')
		value, err := Encode(m.Value)
		if err != nil {
			return nil, err
		}
		out = append(out, value...)
	}
	return append(out, '}'), nil
}

// Encode encodes a value as JSON, with <, > and & as they are.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
