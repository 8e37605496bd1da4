// Package hal encodes resources, collections and detective collections as the API writes them.
//
// httpapi and hosts with routes of their own import it. It knows no noun and no request: links come
// in absolute.
package hal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Link is a HAL link, or an array of links.
type Link struct {
	Href      string `json:"href"`
	Templated bool   `json:"templated,omitempty"`
	// All are the links of a relation that has an array of them. It is nil for one link, and in the
	// links of All.
	All []Link `json:"-"`
}

// Links are the links of a resource by relation.
type Links map[string]Link

// Self makes links with the relation self.
func Self(href string) Links { return Links{"self": {Href: href}} }

// With adds a relation and returns the links.
func (l Links) With(rel, href string) Links {
	l[rel] = Link{Href: href}
	return l
}

// Embedded are resources inside a resource, by relation.
type Embedded map[string]any

// Resource is one resource: the members of Value, which must encode to a JSON object, with its
// links and what is embedded in it.
type Resource struct {
	Links    Links
	Value    any
	Last     *Member // an additional member, after those of Value, or nil
	Embedded Embedded

	// Row is the row that the resource shows, or nil. Its version is the first part of the tag.
	// Beside is what Value and Embedded contain that is not in the row, such as permissions. If
	// Beside is nil, the tag is a digest of the whole body. See Tag.
	Row    interface{ Version() string }
	Beside any
	// List reports whether the resource is a collection, which has no tag.
	List bool
}

// Member is a member of a resource: an array of other resources.
type Member struct {
	Name string
	Rows Rows
}

// Appender is a value that appends itself as JSON, faster than encoding/json by reflection. Answers
// that are read often have one.
type Appender interface {
	AppendJSON(dst []byte) ([]byte, error)
}

// MarshalJSON implements json.Marshaler.
func (r Resource) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendJSON puts _links first, then the members of Value, then Last, then _embedded.
func (r Resource) AppendJSON(dst []byte) ([]byte, error) { return r.stream(dst, nil) }

// members appends the opening brace, _links and the members of Value.
func (r Resource) members(dst []byte) ([]byte, error) {
	dst = append(r.Links.append(append(dst, `{"_links":`...)), ',')
	start := len(dst)
	dst, err := Append(dst, r.Value)
	if err != nil {
		return nil, err
	}
	if len(dst) < start+2 || dst[start] != '{' {
		return nil, fmt.Errorf("hal: %T does not encode to a JSON object", r.Value)
	}
	// the members of the value follow those of the resource, without the braces of the value
	members := copy(dst[start:], dst[start+1:len(dst)-1])
	if dst = dst[:start+members]; members == 0 {
		dst = dst[:start-1]
	}
	return dst, nil
}

// Append appends any value as JSON; nil is an empty object.
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "{}"...), nil
	case Appender:
		return v.AppendJSON(dst)
	}
	return appendJSON(dst, v)
}

// appendJSON appends what encoding/json makes of a value, but & as it is: clients and people read
// the addresses of links. < and > stay escaped, so that JSON in a page cannot end a script.
func appendJSON(dst []byte, v any) ([]byte, error) {
	start := len(dst)
	w := appender{dst}
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return w.dst, err
	}
	w.dst = w.dst[:len(w.dst)-1] // the end of the line
	if bytes.IndexByte(w.dst[start:], '<') < 0 && bytes.IndexByte(w.dst[start:], '>') < 0 {
		return w.dst, nil
	}
	encoded := bytes.ReplaceAll(w.dst[start:], []byte("<"), []byte(`\u003c`)) // only strings contain it
	return append(w.dst[:start], bytes.ReplaceAll(encoded, []byte(">"), []byte(`\u003e`))...), nil
}

// appender is a slice that an io.Writer appends to.
type appender struct{ dst []byte }

// Write implements io.Writer.
func (a *appender) Write(p []byte) (int, error) {
	a.dst = append(a.dst, p...)
	return len(p), nil
}

// append appends the links, ordered by relation.
func (l Links) append(dst []byte) []byte {
	dst = append(dst, '{')
	for i, rel := range slices.Sorted(maps.Keys(l)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = l[rel].append(append(AppendString(dst, rel), ':'))
	}
	return append(dst, '}')
}

func (l Link) append(dst []byte) []byte {
	if l.All != nil {
		dst = append(dst, '[')
		for i, one := range l.All {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = one.append(dst)
		}
		return append(dst, ']')
	}
	dst = AppendString(append(dst, `{"href":`...), l.Href)
	if l.Templated {
		dst = append(dst, `,"templated":true`...)
	}
	return append(dst, '}')
}

// Page is the position of a collection in its list.
type Page struct {
	Start int `json:"start"`
	Count int `json:"count"`
	Total int `json:"total"`
}

// Collection returns a page of resources of one relation. The members of extra are added if it is
// not nil.
func Collection[T any](links Links, page Page, rel string, rows []T, extra map[string]any) Resource {
	if rows == nil {
		rows = []T{}
	}
	value := map[string]any{"start": page.Start, "count": page.Count, "total": page.Total}
	for name, v := range extra {
		value[name] = v
	}
	return Resource{Links: links, Value: value, Embedded: Embedded{rel: rows}, List: true}
}

// Detective returns a detective collection of all values.
//
// The opaque identifier of a value is its index, so that the same catalog has the same identifiers
// and responses can be cached and compared.
func Detective[T any](links Links, values []T) Resource {
	type item struct {
		Detective string `json:"detective"`
		ID        string `json:"id"`
		Value     T      `json:"value"`
	}
	items := make([]item, len(values))
	for i, v := range values {
		n := strconv.Itoa(i)
		items[i] = item{Detective: "d" + n, ID: "d" + n + ":" + n, Value: v}
	}
	return Resource{List: true, Links: links, Value: struct {
		Items []item `json:"items"`
		Page
	}{items, Page{Count: len(items), Total: len(items)}}}
}

// Href joins path segments to an API path. Each is escaped so that it is read as one segment:
// Href("colors", "brand/primary 100%") is /api/colors/brand%2Fprimary%20100%25. The ":" of a
// natural id is written as %3A. In the segments "." and ".." the dots are escaped, because clients
// resolve them. (Browsers resolve them even so.)
func Href(segments ...string) string {
	var b strings.Builder
	b.WriteString("/api")
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(Segment(s))
	}
	return b.String()
}

// Segment escapes one path segment.
func Segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return strings.ReplaceAll(url.PathEscape(s), ":", "%3A")
}

// AppendString appends s as a JSON string. It is for lists that are encoded without encoding/json.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' {
			dst, _ = appendJSON(dst, s) // a string can always be encoded
			return dst
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// AppendRaw appends encoded JSON without its white space, and null if raw is empty.
func AppendRaw(dst []byte, raw json.RawMessage) ([]byte, error) {
	switch string(raw) {
	case "":
		return append(dst, "null"...), nil
	case "{}", "null":
		return append(dst, raw...), nil
	}
	return appendJSON(dst, raw)
}

// AppendStringOrNull appends *s as a JSON string, null for nil.
func AppendStringOrNull(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return AppendString(dst, *s)
}
