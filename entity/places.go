package entity

import "bytes"

// level is one object or array that findSecrets is in, and the member or element of it that it is
// at.
type level struct {
	object   bool
	contents contents
	class    class // of all that is in it: environment, or plain

	name  []byte // of the member, without quotes
	title string // of the pair that the member is the value of
	begin int    // of the member with its name, or of the element
	index int    // of the element; -1 before the first one
	node  int    // of a tree
}

// place is where a secret is in a text.
type place struct {
	begin      int // of the member with its name
	value, end int
	node       int
}

// findSecrets calls found with each secret of valid JSON, in their order, and the levels that it is
// in, and closed with each object and array that is not in a secret, at its end. It reads the text
// twice, from the begin to the end: the contents of an object decide about what comes before them.
//
// It is no recursion over decoded values, which would be shorter: what is not masked keeps its
// bytes, a text of some megabytes takes many times its size when it is decoded, and nesting costs
// nothing here.
func findSecrets(text []byte, found func([]level, place), closed func(level)) {
	all, levels := contentsOf(text), []level{{index: -1}} // the outermost level has the whole text for its element
	var secret place
	within := 0 // how many objects and arrays that are, or are in, the secret are open
	for t := range tokens(text) {
		at := &levels[len(levels)-1]
		switch {
		case within > 0: // the end of the secret is looked for, and nothing else
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
		environ := at.class == plain && (of == environment || of == environments) // the value is one, and not in one
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

// classOfValue returns the class of the value of the member or element. It sets its title.
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
// environment: if that is an object, its members are secrets instead of the object.
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
		return c != secrets // a number under a plural is a count
	}
}

// isEmpty reports whether an object or array, of which rest follows the bracket, has nothing in it.
func isEmpty(rest []byte) bool {
	rest = bytes.TrimLeft(rest, space)
	return len(rest) > 0 && (rest[0] == '}' || rest[0] == ']')
}
