package entity

import (
	"bytes"
	"encoding/json"
	"iter"
	"strings"
)

// space is the white space of JSON.
const space = " \t\r\n"

// tokenKind is a kind of token. Commas and colons are not tokens.
type tokenKind int

const (
	opening tokenKind = iota // of an object or array
	closing
	memberName
	textValue
	literal // a number, true, false or null
)

// token is a part of a JSON text.
type token struct {
	kind       tokenKind
	begin, end int
}

// tokens returns the tokens of valid JSON as offsets in the text. The callers keep the other bytes
// as they are, for which json.Decoder is not suited, and it is faster.
func tokens(text []byte) iter.Seq[token] {
	return func(yield func(token) bool) {
		for i := 0; i < len(text); {
			t := token{begin: i, end: i + 1}
			switch c := text[i]; {
			case c == ',' || c == ':' || strings.IndexByte(space, c) >= 0:
				i++
				continue
			case c == '{' || c == '[':
				t.kind = opening
			case c == '}' || c == ']':
				t.kind = closing
			case c == '"':
				t.kind, t.end = textValue, stringEnd(text, i)
				if rest := bytes.TrimLeft(text[t.end:], space); len(rest) > 0 && rest[0] == ':' {
					t.kind = memberName
				}
			default:
				t.kind = literal
				for t.end < len(text) && strings.IndexByte(",]}"+space, text[t.end]) < 0 {
					t.end++
				}
			}
			if !yield(t) {
				return
			}
			i = t.end
		}
	}
}

// stringEnd returns the offset after the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// unquoted returns the text of a string, or of a name, with its escapes resolved.
func (t token) unquoted(text []byte) []byte {
	return unescaped(text[t.begin+1 : t.end-1])
}

// unescaped resolves the escapes of a string without its quotes.
func unescaped(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	var text string
	_ = json.Unmarshal(append(append([]byte{'"'}, s...), '"'), &text) // the string is valid
	return []byte(text)
}
