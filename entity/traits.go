package entity

import (
	"bytes"
	"crypto/sha256"
)

// traits describes an object or array by the texts directly in it.
type traits struct {
	class class  // of its value: it is a pair such as {"name": "password", "value": "x"}
	title string // of the pair
	sets  bool   // one may be a variable's, or is a Mask, and its name is not that of a secret
	gives bool   // so does the value, which is a secret if the pair says so
}

// holdsVariables reports whether what is called environments is one.
func (t traits) holdsVariables() bool { return t.sets || t.gives && !t.class.hidden() }

// survey finds the traits of the objects and arrays of a text, by where they begin. Most have none.
func survey(text []byte) map[int]traits {
	all, open := map[int]traits{}, []int{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			open = append(open, i)
		case '}', ']':
			last := len(open) - 1
			if is := all[open[last]]; last > 0 && is.gives && !is.class.hidden() && text[open[last-1]] == '[' { // {"name": "A", "value": "x"}
				within := all[open[last-1]]
				within.sets = true
				all[open[last-1]] = within
			}
			open = open[:last]
		case '"':
			begin, end := i, after(text, i)
			var name []byte
			if behind := bytes.TrimLeft(text[end:], space); len(behind) > 0 && behind[0] == ':' {
				name, begin = text[i+1:end-1], len(text)-len(bytes.TrimLeft(behind[1:], space))
				end = begin
				if text[begin] == '"' {
					end = after(text, begin)
				}
			}
			if i = end - 1; len(open) > 0 && begin < end {
				at := open[len(open)-1]
				if was, is := all[at], all[at].with(unquoted(name), unquoted(text[begin+1:end-1])); is != was {
					all[at] = is
				}
			}
		}
	}
	return all
}

// with notes a text and its name, which an element has not. Of two that make a pair the one that says more counts.
func (t traits) with(name, text []byte) traits {
	c := classOf(name)
	sets := setsVariable(text) || name != nil && len(text) > 0 && c != titling // a variable, whatever its name is
	switch {
	case c == valued:
		t.gives = t.gives || sets
	case !c.hidden():
		t.sets = t.sets || sets
		if of := classOf(text); c == titling && of.hidden() && (t.class == plain || of < t.class) {
			t.class, t.title = of, short(text)
		}
	}
	return t
}

// setsVariable reports whether a text is one such as A=x, or was.
func setsVariable(text []byte) bool {
	return string(text) == Mask || bytes.IndexByte(text, '=') >= 0
}

// short returns a text, or what stands for a long one: each value of an object keeps its title.
func short(text []byte) string {
	if len(text) > 2*sha256.Size {
		sum := sha256.Sum256(text)
		text = sum[:]
	}
	return string(text)
}
