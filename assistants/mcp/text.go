package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// The most that a model is given of a server's words.
const (
	maxDescription = 4 << 10  // bytes, of a tool
	maxSchema      = 16 << 10 // of a tool
	maxSchemas     = 128 << 10
	maxText        = 1 << 10 // of a text within a schema
	maxDepth       = 8       // of a schema
	maxMembers     = 100     // of each list and object in a schema
	maxToolName    = 64
)

// short returns a text of the server without secrets, as UTF-8 without control characters, and cut
// to a number of bytes.
func (s *server) short(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s.redact(strings.ToValidUTF8(text, "")))
	return cut(text, most)
}

// cut cuts a text to a number of bytes, between two characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	at := most
	for !utf8.RuneStart(text[at]) {
		at--
	}
	return strings.Clone(text[:at]) // a part would keep the whole in memory
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// toolName returns the name of a tool for models, <skill>_<tool>, and adds it to those that are
// taken. A name that is too long, or would be there twice, ends with a part of a digest.
func toolName(skill, tool string, taken map[string]bool) string {
	whole := skill + "_" + tool
	name := notInNames.ReplaceAllString(whole, "_")
	if len(name) > maxToolName || taken[name] {
		sum := sha256.Sum256([]byte(whole))
		digest := "_" + hex.EncodeToString(sum[:4])
		name = name[:min(len(name), maxToolName-len(digest))] + digest
	}
	taken[name] = true
	return name
}

// text returns the result of a call as the model reads it.
func (s *server) text(r *sdk.CallToolResult) string {
	var parts []string
	for _, c := range r.Content {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, c.Text)
		case *sdk.ImageContent:
			parts = append(
				parts, fmt.Sprintf("[An image (%s, %d bytes) that is not shown here]", c.MIMEType, len(c.Data)),
			)
		case *sdk.AudioContent:
			parts = append(
				parts, fmt.Sprintf("[A sound (%s, %d bytes) that is not played here]", c.MIMEType, len(c.Data)),
			)
		case *sdk.ResourceLink:
			parts = append(parts, fmt.Sprintf("[A link to the resource %s: %s]", c.Name, c.URI))
		case *sdk.EmbeddedResource:
			switch {
			case c.Resource == nil:
			case c.Resource.Text != "":
				parts = append(parts, c.Resource.Text)
			default:
				parts = append(
					parts,
					fmt.Sprintf(
						"[The resource %s (%s, %d bytes) that is not shown here]", c.Resource.URI,
						c.Resource.MIMEType, len(c.Resource.Blob),
					),
				)
			}
		}
	}
	if len(r.Content) == 0 && r.StructuredContent != nil {
		structured, err := json.Marshal(r.StructuredContent)
		if err == nil {
			parts = append(parts, string(structured))
		}
	}
	text := s.redact(strings.ToValidUTF8(strings.Join(parts, "\n"), ""))
	const note = "\n[%d more bytes of the result are left out: ask for less]"
	if most := chat.DefaultResult - len(note) - 20; len(text) > most {
		kept := cut(text, most)
		text = kept + fmt.Sprintf(note, len(text)-len(kept))
	}
	return text
}

// schema returns the parameters of a tool. It leaves out what a model's server could refuse, as
// that would fail the whole conversation. If the rest is too long, it leaves out the descriptions,
// too, and in the end everything but the type.
func (s *server) schema(t *sdk.Tool) json.RawMessage {
	for _, described := range []bool{true, false} {
		in, _ := t.InputSchema.(map[string]any)
		c := cleaner{s: s, described: described, definitions: map[string]bool{}}
		for _, group := range []string{"$defs", "definitions"} {
			kept, _ := c.members(in[group], 0).(map[string]any)
			for name := range kept {
				c.definitions["#/"+group+"/"+name] = true
			}
		}
		out := c.clean(in, 0)
		out["type"] = "object"
		for _, refused := range []string{"anyOf", "oneOf", "allOf", "enum", "const", "not", "$ref"} {
			delete(out, refused) // of the whole, providers take none
		}
		if out["properties"] == nil {
			out["properties"] = map[string]any{}
		}
		raw, err := json.Marshal(out)
		if err == nil && len(raw) <= maxSchema {
			return raw
		}
	}
	return json.RawMessage(`{"type":"object","properties":{}}`)
}

// cleaner copies the parts of a JSON Schema that have the form they must have.
type cleaner struct {
	s           *server
	described   bool
	definitions map[string]bool // what $ref can name
}

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// clean returns the schema of a value.
func (c cleaner) clean(in map[string]any, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxDepth {
		return out
	}
	for name, value := range in {
		var kept any
		switch name {
		case "type":
			kept = c.types(value)
		case "title", "description":
			if text, ok := value.(string); ok && c.described {
				kept = c.s.short(text, maxText)
			}
		case "format", "pattern":
			if text, ok := value.(string); ok && len(text) <= maxText {
				kept = c.s.short(text, maxText)
			}
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
			"minItems", "maxItems", "minProperties", "maxProperties":
			if number, ok := value.(float64); ok {
				kept = number
			}
		case "uniqueItems":
			if b, ok := value.(bool); ok {
				kept = b
			}
		case "default", "const":
			kept = c.scalar(value)
		case "enum":
			kept = c.list(value, c.scalar)
		case "required":
			kept = c.list(value, func(v any) any {
				if text, ok := v.(string); ok && propertyName(text) {
					return text
				}
				return nil
			})
		case "anyOf", "oneOf", "allOf":
			kept = c.list(value, func(v any) any { return c.sub(v, depth) })
		case "items", "not":
			kept = c.sub(value, depth)
		case "additionalProperties":
			if kept = c.sub(value, depth); kept == nil {
				if b, ok := value.(bool); ok {
					kept = b
				}
			}
		case "properties":
			kept = c.members(value, depth)
		case "$defs", "definitions":
			if depth == 0 {
				kept = c.members(value, depth)
			}
		case "$ref":
			if text, ok := value.(string); ok && c.definitions[text] {
				kept = text
			}
		}
		if kept != nil {
			out[name] = kept
		}
	}
	return out
}

// propertyName reports whether a text can be the name of a parameter.
func propertyName(text string) bool {
	return text != "" && len(text) <= maxName && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' || r == 0x7f
		})
}

// sub returns a schema within another one, nil if it is none.
func (c cleaner) sub(v any, depth int) any {
	if in, ok := v.(map[string]any); ok {
		return c.clean(in, depth+1)
	}
	return nil
}

func (c cleaner) members(v any, depth int) any {
	in, ok := v.(map[string]any)
	if !ok || len(in) > maxMembers {
		return nil
	}
	out := map[string]any{}
	for name, value := range in {
		if schema := c.sub(value, depth); schema != nil && propertyName(name) {
			out[c.s.redact(name)] = schema
		}
	}
	return out
}

func (c cleaner) types(v any) any {
	one := func(v any) any {
		if text, ok := v.(string); ok && slices.Contains(schemaTypes, text) {
			return text
		}
		return nil
	}
	if kept := one(v); kept != nil {
		return kept
	}
	return c.list(v, one)
}

// list returns the elements of a list that a function keeps, nil for none.
func (c cleaner) list(v any, keep func(any) any) any {
	in, _ := v.([]any)
	var out []any
	for _, element := range in[:min(len(in), maxMembers)] {
		if kept := keep(element); kept != nil {
			out = append(out, kept)
		}
	}
	if out == nil {
		return nil
	}
	return out
}

// scalar returns a text, number or boolean.
func (c cleaner) scalar(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) <= maxText {
			return c.s.short(v, maxText)
		}
	case float64, bool:
		return v
	}
	return nil
}
