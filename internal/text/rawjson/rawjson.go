// Package rawjson validates JSON and splits objects, four times as fast as encoding/json and with
// the same results. It is for rows in archives, of which an import reads hundreds of megabytes.
//
// Nouns that read JSON, internal/transfer/archive, internal/sqldb/bunx and internal/transfer import
// it.
package rawjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// maxDepth is the most levels of nested objects and arrays, as in encoding/json.
const maxDepth = 10_000

// Valid reports whether raw is JSON. Like json.Valid it does not check that strings are UTF-8.
func Valid(raw []byte) bool {
	end := value(raw, space(raw, 0), 0)
	return end >= 0 && space(raw, end) == len(raw)
}

// Members returns the members of an object, the last one for each name, and whether raw is a JSON
// object. They are parts of raw, without the white space around them.
func Members(raw []byte) (map[string]json.RawMessage, bool) {
	all := map[string]json.RawMessage{}
	if !Each(raw, func(name string, value json.RawMessage) { all[name] = value }) {
		return nil, false
	}
	return all, true
}

// Each calls member with each member of an object in order, including repeated names. It reports
// whether raw is a JSON object. It calls member for the members before an error, too. Values are
// parts of raw, as in Members.
func Each(raw []byte, member func(name string, value json.RawMessage)) bool {
	at := space(raw, 0)
	if !is(raw, at, '{') {
		return false
	}
	if at = space(raw, at+1); is(raw, at, '}') {
		return space(raw, at+1) == len(raw)
	}
	for {
		colon := name(raw, at)
		if colon < 0 {
			return false
		}
		key, ok := Text(bytes.TrimRight(raw[at:colon], " \n\t\r"))
		if !ok {
			return false
		}
		begin := space(raw, colon+1)
		end := value(raw, begin, 1)
		if end < 0 {
			return false
		}
		member(key, raw[begin:end:end]) // so that append makes a copy
		switch at = space(raw, end); {
		case is(raw, at, '}'):
			return space(raw, at+1) == len(raw)
		case !is(raw, at, ','):
			return false
		}
		at = space(raw, at+1)
	}
}

// Elements calls element with each element of an array and its index. It reports whether raw is a
// JSON array. It calls element for the elements before an error, too. Values are parts of raw, as
// in Members.
func Elements(raw []byte, element func(i int, value json.RawMessage)) bool {
	at := space(raw, 0)
	if !is(raw, at, '[') {
		return false
	}
	if at = space(raw, at+1); is(raw, at, ']') {
		return space(raw, at+1) == len(raw)
	}
	for i := 0; ; i++ {
		end := value(raw, at, 1)
		if end < 0 {
			return false
		}
		element(i, raw[at:end:end])
		switch at = space(raw, end); {
		case is(raw, at, ']'):
			return space(raw, at+1) == len(raw)
		case !is(raw, at, ','):
			return false
		}
		at = space(raw, at+1)
	}
}

// Text returns the text of a JSON string, and whether raw is a string. raw must be valid JSON
// without white space around it.
func Text(raw []byte) (string, bool) {
	if !is(raw, 0, '"') {
		return "", false
	}
	if body := raw[1 : len(raw)-1]; bytes.IndexByte(body, '\\') < 0 && utf8.Valid(body) {
		return string(body), true
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// Shape returns the number of levels of valid JSON, and the number of values in its first two
// levels, without the first one of each object and array.
func Shape(raw []byte) (deep, wide int) {
	level := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			level++
			deep = max(deep, level)
		case '}', ']':
			level--
		case ',':
			if level <= 2 {
				wide++
			}
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		}
	}
	return deep, wide
}

// Each of these functions takes a text and the index at which something begins, and returns the
// index after it, or -1 if it is not there.

// value reads any JSON, without recursion. depth is the number of objects and arrays around it.
func value(t []byte, i, depth int) int {
	var open []byte // the closing brackets of the open objects and arrays
	for i < len(t) {
		switch c := t[i]; c {
		case '{', '[':
			if depth+len(open) == maxDepth {
				return -1
			}
			closer := c + 2
			i = space(t, i+1)
			if is(t, i, closer) {
				i++
				break
			}
			open = append(open, closer)
			if i = element(t, i, closer); i < 0 {
				return -1
			}
			continue
		case '"':
			i = text(t, i)
		case 't':
			i = word(t, i, "true")
		case 'f':
			i = word(t, i, "false")
		case 'n':
			i = word(t, i, "null")
		default:
			i = number(t, i)
		}
		if i < 0 {
			return -1
		}
		for { // after a value
			n := len(open) - 1
			if n < 0 {
				return i
			}
			if i = space(t, i); is(t, i, ',') {
				if i = element(t, space(t, i+1), open[n]); i < 0 {
					return -1
				}
				break
			}
			if !is(t, i, open[n]) {
				return -1
			}
			open = open[:n]
			i++
		}
	}
	return -1
}

// element reads what precedes a value: in an object its name.
func element(t []byte, i int, closer byte) int {
	if closer == '}' {
		if i = name(t, i); i < 0 {
			return -1
		}
		i = space(t, i+1)
	}
	return i
}

// name reads the name of a member, and returns the index of its colon.
func name(t []byte, i int) int {
	if !is(t, i, '"') {
		return -1
	}
	if i = text(t, i); i < 0 {
		return -1
	}
	if i = space(t, i); !is(t, i, ':') {
		return -1
	}
	return i
}

// plain are the bytes of a string that are not escapes or its end.
var plain = func() (all [256]bool) {
	for c := ' '; c < 256; c++ {
		all[c] = c != '"' && c != '\\'
	}
	return all
}()

func text(t []byte, i int) int {
	for i++; i < len(t); i++ {
		c := t[i]
		if plain[c] {
			continue
		}
		if c == '"' {
			return i + 1
		}
		if c != '\\' {
			return -1
		}
		if i = escape(t, i+1); i < 0 {
			return -1
		}
	}
	return -1
}

// escape reads what follows a backslash, and returns the index of its last byte.
func escape(t []byte, i int) int {
	if i >= len(t) {
		return -1
	}
	switch t[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i
	case 'u':
		if i+4 >= len(t) {
			return -1
		}
		for _, c := range t[i+1 : i+5] {
			if !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f') {
				return -1
			}
		}
		return i + 4
	}
	return -1
}

func number(t []byte, i int) int {
	if is(t, i, '-') {
		i++
	}
	if is(t, i, '0') {
		i++
	} else if i = digits(t, i); i < 0 {
		return -1
	}
	if is(t, i, '.') {
		if i = digits(t, i+1); i < 0 {
			return -1
		}
	}
	if is(t, i, 'e') || is(t, i, 'E') {
		if i++; is(t, i, '+') || is(t, i, '-') {
			i++
		}
		i = digits(t, i)
	}
	return i
}

func digits(t []byte, i int) int {
	begin := i
	for i < len(t) && '0' <= t[i] && t[i] <= '9' {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}

func word(t []byte, i int, w string) int {
	if end := i + len(w); end <= len(t) && string(t[i:end]) == w {
		return end
	}
	return -1
}

// space returns the index of the next byte that is not white space.
func space(t []byte, i int) int {
	for i < len(t) && (t[i] == ' ' || t[i] == '\n' || t[i] == '\t' || t[i] == '\r') {
		i++
	}
	return i
}

func is(t []byte, i int, c byte) bool { return i < len(t) && t[i] == c }
