package entity

import "bytes"

// level is an object or array that findSecrets is reading, and the current member or element.
type level struct {
	object   bool
	contents contents
	class    class // environment or plain; it applies to all its members

	name  []byte // of the member, without quotes
	title string // of the pair whose value is the member
	begin int    // of the member with its name, or of the element
	index int    // of the element; -1 before the first one
	node  int    // index in a tree
}

// place is the position of a secret in a text.
type place struct {
	begin      int // of the member with its name
	value, end int
	node       int
}

// findSecrets calls found with each secret of valid JSON, in order, and with the levels that
// contain it. It calls closed at the end of each object and array that is not in a secret. It reads
// the text twice, because the contents of an object decide about members before them.
//
// It does not decode the JSON. What is not masked keeps its bytes, decoded values would take many
// times the size of the text, and deep nesting costs nothing.
func findSecrets(text []byte, found func([]level, place), closed func(level)) {
	all, levels := contentsOf(text), []level{{index: -1}} // the element of the outermost level is the whole text
	var secret place
	within := 0 // the number of open objects and arrays in a secret, including the secret
	for t := range tokens(text) {
		at := &levels[len(levels)-1]
		switch {
		case within > 0: // find the end of the secret
			switch t.kind {
			case opening:
				within++
			case closing:
				if within--; within == 0 {
					secret.end = t.end
					found(levels, secret)
				}
			}
			continue
		case t.kind == closing:
			closed(*at)
			levels = levels[:len(levels)-1]
			continue
		case t.kind == memberName:
			at.name, at.title, at.begin = text[t.begin+1:t.end-1], "", t.begin
			continue
		case !at.object:
			at.index, at.begin = at.index+1, t.begin
		}

		of := at.classOfValue()
		if of == environments && t.kind != textValue && !all[t.begin].hasVariables() {
			of = plain
		}
		environ := at.class == plain && (of == environment || of == environments) // not inside an environment
		secret = place{begin: at.begin, value: t.begin, end: t.end}
		switch {
		case t.isSecret(text, of, environ):
			if t.kind == opening {
				within = 1
			} else {
				found(levels, secret)
			}
		case t.kind == opening:
			inner := level{object: text[t.begin] == '{', contents: all[t.begin], index: -1, node: unknown}
			if environ {
				inner.class = environment
			}
			levels = append(levels, inner)
		}
	}
}

// classOfValue returns the class of the value of the member or element. It sets the title of the
// level.
func (l *level) classOfValue() class {
	if !l.object || l.class != plain {
		return l.class
	}
	switch c := classOf(unescaped(l.name)); {
	case c.isSecret():
		return c
	case c == pairValue:
		l.title = l.contents.title
		return l.contents.class
	}
	return plain
}

// isSecret reports whether a value of a class is a secret. environ reports whether the value is an
// environment. If that is an object, its members are secrets and the object is not.
func (t token) isSecret(text []byte, c class, environ bool) bool {
	if c == plain {
		return false
	}
	switch first := text[t.begin]; t.kind {
	case textValue:
		value := t.unquoted(text)
		return len(value) > 0 && (c != environments || isVariable(value))
	case opening:
		return !(environ && first == '{') && !isEmpty(text[t.end:])
	default:
		switch first {
		case 'n':
			return false
		case 't', 'f':
			return c == environment && !environ
		}
		return c != secrets // a number with a plural name is a count
	}
}

// isEmpty reports whether an object or array is empty. rest is the text after the bracket.
func isEmpty(rest []byte) bool {
	rest = bytes.TrimLeft(rest, space)
	return len(rest) > 0 && (rest[0] == '}' || rest[0] == ']')
}
