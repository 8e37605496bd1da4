package openapi

import "encoding/json"

// Schema is a JSON Schema of the dialect 2020-12, with the keywords that Reflector uses. The zero
// Schema accepts any value.
type Schema struct {
	Ref         string           `json:"$ref,omitempty"`
	Type        Types            `json:"type,omitempty"`
	Format      string           `json:"format,omitempty"`
	Description string           `json:"description,omitempty"`
	Enum        []any            `json:"enum,omitempty"`
	Minimum     *int             `json:"minimum,omitempty"`
	Maximum     *int             `json:"maximum,omitempty"`
	ReadOnly    bool             `json:"readOnly,omitempty"`
	Encoding    string           `json:"contentEncoding,omitempty"`
	Properties  Ordered[*Schema] `json:"properties,omitempty"`
	Required    []string         `json:"required,omitempty"`
	Items       *Schema          `json:"items,omitempty"`
	AnyOf       []*Schema        `json:"anyOf,omitempty"`
	// Additional is the schema of members that are not in Properties. Default: any.
	Additional *Additional `json:"additionalProperties,omitempty"`
}

// Types are the types that a value may have.
type Types []string

// MarshalJSON implements json.Marshaler. One type is a string.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Additional is a schema, or false.
type Additional struct{ Of *Schema }

// MarshalJSON implements json.Marshaler.
func (a Additional) MarshalJSON() ([]byte, error) {
	if a.Of == nil {
		return []byte("false"), nil
	}
	return Encode(a.Of)
}

// closed is the Additional of objects that have no other members.
var closed = &Additional{}

// nullable returns a schema that accepts null, too.
func nullable(s *Schema) *Schema {
	switch {
	case len(s.Type) > 0:
		if s.Type = append(s.Type, "null"); len(s.Enum) > 0 {
			s.Enum = append(s.Enum, nil)
		}
		return s
	case s.Ref == "" && s.AnyOf == nil: // it accepts anything
		return s
	}
	return &Schema{AnyOf: []*Schema{s, {Type: Types{"null"}}}}
}

// object returns the schema of an object without members.
func object() *Schema { return &Schema{Type: Types{"object"}} }
