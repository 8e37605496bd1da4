package entity

import (
	"bytes"
	"encoding/json"
	"strings"
)

// space is what may stand between the parts of JSON.
const space = " \t\r\n"

// pair is an object such as {"name": "password", "value": "x"}: what its value is, its name says.
type pair struct {
	class class
	name  string
}

// pairs finds the pairs of a text, by where they begin.
func pairs(text []byte) map[int]pair {
	all, open := map[int]pair{}, []int{}
	for i := 0; i < len(text); {
		switch text[i] {
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			end := after(text, i)
			name, ok := titled(text[i+1:end-1], text[end:])
			i = end
			if !ok {
				continue
			}
			at, of := open[len(open)-1], classOf(name)
			if was := all[at].class; of.hidden() && (was == plain || of < was) {
				all[at] = pair{of, string(name)}
			}
			continue
		}
		i++
	}
	return all
}

// titled gives the text behind the name of a member that gives its object a name.
func titled(name, behind []byte) (title []byte, ok bool) {
	behind = bytes.TrimLeft(behind, space)
	if len(behind) == 0 || behind[0] != ':' {
		return nil, false
	}
	behind = bytes.TrimLeft(behind[1:], space)
	if behind[0] != '"' || classOf(unquoted(name)) != titling {
		return nil, false
	}
	return unquoted(behind[1 : after(behind, 0)-1]), true
}

// level is one object or array that a walk is in.
type level struct {
	object bool
	pair   pair
	class  class  // of all that is in it: environment, or plain
	name   []byte // of the member that it is at, without quotes; nil when its name comes next
	title  string // of the pair that this member is the value of
	begin  int    // where that member begins
	index  int    // of the member or element that it is at
	node   int    // of a tree
}

// named gives what the name of the member that it is at says.
func (l *level) named() class {
	if !l.object || l.class != plain {
		return l.class
	}
	switch c := classOf(unquoted(l.name)); {
	case c.hidden():
		return c
	case c == valued:
		l.title = l.pair.name
		return l.pair.class
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
	levels, pairs := []level{{}}, pairs(text)
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
			whole := at.class == plain && (named == environment || named == environments)
			switch {
			case hides(text[i:], named, whole):
				end := after(text, i)
				found(levels, place{begin: at.begin, value: i, end: end})
				i = end
			case c == '{' || c == '[':
				inner := level{object: c == '{', pair: pairs[i], node: unknown}
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
		return len(text) > 0 && (named != environments || string(text) == Mask || bytes.IndexByte(text, '=') >= 0)
	case c == '{' || c == '[':
		rest := bytes.TrimLeft(value[1:], space)
		return !(whole && c == '{') && len(rest) > 0 && rest[0] != '}' && rest[0] != ']'
	}
	return named != manySecrets && named != environments
}

// after gives where the value that begins at i has ended.
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
