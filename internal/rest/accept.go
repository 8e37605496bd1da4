package rest

import (
	"net/http"
	"strconv"
	"strings"
)

// The media types of answers. An answer is application/json unless the client prefers
// application/hal+json.
const (
	typeJSON = "application/json; charset=utf-8"
	TypeHAL  = "application/hal+json"
)

// MediaType returns the media type of the answer to a request with these headers:
// application/hal+json if the client prefers it to application/json, else application/json.
// acceptable is false if the client accepts neither.
func MediaType(h http.Header) (name string, acceptable bool) {
	var ranges []mediaRange
	for _, line := range h.Values("Accept") {
		ranges = append(ranges, mediaRanges(line)...)
	}
	if len(ranges) == 0 {
		return typeJSON, true
	}
	json, hal := quality(ranges, "application", "json"), quality(ranges, "application", "hal+json")
	switch {
	case json == 0 && hal == 0:
		return typeJSON, false
	case hal > json:
		return TypeHAL, true
	}
	return typeJSON, true
}

// mediaRange is one element of an Accept header, such as text/*;q=0.5.
type mediaRange struct {
	kind, subtype string
	q             float64
}

// mediaRanges parses an Accept header. It leaves out elements that are malformed.
func mediaRanges(line string) []mediaRange {
	var all []mediaRange
	for _, element := range elements(line, ',') {
		params := elements(element, ';')
		kind, subtype, ok := strings.Cut(strings.ToLower(strings.TrimSpace(params[0])), "/")
		if !ok || kind == "" || subtype == "" || kind == "*" && subtype != "*" {
			continue
		}
		r := mediaRange{kind, subtype, 1}
		for _, p := range params[1:] {
			name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			if strings.EqualFold(name, "q") {
				q, err := strconv.ParseFloat(value, 64)
				if ok = err == nil && q >= 0 && q <= 1; !ok {
					break
				}
				r.q = q
			}
		}
		if ok {
			all = append(all, r)
		}
	}
	return all
}

// elements splits a header's value at a separator, but not inside quoted strings.
func elements(s string, separator byte) []string {
	var all []string
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case quoted && s[i] == '\\':
			i++
		case !quoted && s[i] == separator:
			all, from = append(all, s[from:i]), i+1
		}
	}
	return append(all, s[from:])
}

// quality returns the quality that the most specific range has for a media type, 0 if no range has
// the type.
func quality(ranges []mediaRange, kind, subtype string) float64 {
	best, q := 0, 0.0
	for _, r := range ranges {
		specific := 0
		switch {
		case r.kind == kind && r.subtype == subtype:
			specific = 3
		case r.kind == kind && r.subtype == "*":
			specific = 2
		case r.kind == "*":
			specific = 1
		}
		if specific > best || specific == best && specific > 0 && r.q > q {
			best, q = specific, r.q
		}
	}
	return q
}
