package entity

import (
	"bytes"
	"encoding/json"
	"strings"
)

// space is what may stand between the parts of JSON.
const space = " \t\r\n"

// level is one object or array that a walk is in.
type level struct {
	object bool
	traits traits
	class  class  // of all that is in it: environment, or plain
	name   []byte // of the member that it is at, without quotes; nil when its name comes next
	title  string // of the pair that this member is the value of
	begin  int    // where that member begins
	index  int    // of the member or element that it is at
	node   int    // of a tree
}

// named returns what the name of the member that it is at says.
func (l *level) named() class {
	if !l.object || l.class != plain {
		return l.class
	}
	switch c := classOf(unquoted(l.name)); {
	case c.hidden():
		return c
	case c == valued:
		l.title = l.traits.title
		return l.traits.class
	}
	return plain
}

// place is where a secret is in a text.
type place struct {
	begin      int // of the member
	value, end int
	node       int
}

// walk tells the secrets of JSON in their order, with all that it is in then, and tells each object and array at its end.
// The text must be valid. It needs no recursion.
func walk(text []byte, found func([]level, place), closed func(level)) {
	levels, all := []level{{}}, survey(text)
	for i := 0; i < len(text); {
		at := &levels[len(levels)-1]
		switch c := text[i]; {
		case c == ':' || strings.IndexByte(space, c) >= 0:
			i++
		case c == ',':
			at.index++
			at.name, at.title = nil, ""
			i++
		case c == '}' || c == ']':
			closed(*at)
			levels = levels[:len(levels)-1]
			i++
		case c == '"' && at.object && at.name == nil:
			at.begin = i
			i = after(text, i)
			at.name = text[at.begin+1 : i-1]
		default:
			if !at.object {
				at.begin = i
			}
			named := at.named()
			if named == environments && c != '"' && !all[i].holdsVariables() {
				named = plain
			}
			whole := at.class == plain && (named == environment || named == environments)
			switch {
			case hides(text[i:], named, whole):
				end := after(text, i)
				found(levels, place{begin: at.begin, value: i, end: end})
				i = end
			case c == '{' || c == '[':
				inner := level{object: c == '{', traits: all[i], node: unknown}
				if whole {
					inner.class = environment
				}
				levels = append(levels, inner)
				i++
			default:
				i = after(text, i)
			}
		}
	}
}

// hides reports whether a value is a secret. Of a whole environment that is an object only what is in it is one.
func hides(value []byte, named class, whole bool) bool {
	switch c := value[0]; {
	case named == plain || c == 'n':
		return false
	case c == 't' || c == 'f':
		return named == environment && !whole
	case c == '"':
		text := unquoted(value[1 : after(value, 0)-1])
		return len(text) > 0 && (named != environments || setsVariable(text))
	case c == '{' || c == '[':
		rest := bytes.TrimLeft(value[1:], space)
		return !(whole && c == '{') && len(rest) > 0 && rest[0] != '}' && rest[0] != ']'
	}
	return named != manySecrets
}

// after returns where the value that begins at i has ended.
func after(text []byte, i int) int {
	for depth := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && (i+1 == len(text) || strings.IndexByte(":,]}"+space, text[i+1]) >= 0) {
			return i + 1
		}
	}
	return len(text)
}

// unquoted resolves the escapes of a name.
func unquoted(name []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	var s string
	_ = json.Unmarshal(append(append([]byte{'"'}, name...), '"'), &s) // it is valid
	return []byte(s)
}
