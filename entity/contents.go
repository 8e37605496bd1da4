package entity

import (
	"bytes"
	"crypto/sha256"
)

// contents describes the texts that are directly in an object or array.
type contents struct {
	class    class  // of the value of a pair such as {"name": "password", "value": "x"}
	title    string // the text that names this pair
	variable bool   // it has a text that may be a variable or is a Mask, under a name that is not secret
	value    bool   // it has the value of a pair that may be a variable, unless the pair is secret
}

// hasVariables reports whether an object or array with a name such as environments is an
// environment.
func (c contents) hasVariables() bool { return c.variable || c.value && !c.class.isSecret() }

// contentsOf returns the contents of the objects and arrays of valid JSON, by the offsets at which
// they begin. Most are not in the map.
func contentsOf(text []byte) map[int]contents {
	all, open := map[int]contents{}, []int{}
	var name []byte // of the value that follows, or nil
	for t := range tokens(text) {
		switch t.kind {
		case opening:
			open = append(open, t.begin)
		case closing:
			last := len(open) - 1
			if is := all[open[last]]; last > 0 && is.value && !is.class.isSecret() && text[open[last-1]] == '[' {
				// {"name": "A", "value": "x"}
				list := all[open[last-1]]
				list.variable = true
				all[open[last-1]] = list
			}
			open = open[:last]
		case memberName:
			name = t.unquoted(text)
			continue
		case textValue:
			if len(open) > 0 {
				at := open[len(open)-1]
				if was, is := all[at], all[at].with(name, t.unquoted(text)); is != was {
					all[at] = is
				}
			}
		}
		name = nil
	}
	return all
}

// with returns contents with one more text. name is that of its member, nil for an element of an
// array. If two texts name a pair, the one with the lower class counts.
func (c contents) with(name, text []byte) contents {
	own := classOf(name)
	// a member is a variable, whatever its name is
	variable := isVariable(text) || name != nil && len(text) > 0 && own != pairName
	switch {
	case own == pairValue:
		c.value = c.value || variable
	case !own.isSecret():
		c.variable = c.variable || variable
		if of := classOf(text); own == pairName && of.isSecret() && (c.class == plain || of < c.class) {
			c.class, c.title = of, short(text)
		}
	}
	return c
}

// isVariable reports whether a text is a variable such as A=x, or a Mask.
func isVariable(text []byte) bool {
	return string(text) == Mask || bytes.IndexByte(text, '=') >= 0
}

// short returns a text, or the digest of a long one, because each value of an object keeps its
// title.
func short(text []byte) string {
	if len(text) > 2*sha256.Size {
		sum := sha256.Sum256(text)
		text = sum[:]
	}
	return string(text)
}
