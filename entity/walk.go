package entity

import (
	"bytes"
	"encoding/json"
	"strings"
)

// class is what a member's name says of its value.
type class int

const (
	plain       class = iota
	secret            // whatever it is
	manySecrets       // a number is a count of them
	environment
)

type word struct {
	letters string
	class   class
	whole   bool // nothing stands before it
}

// words are the names of secrets by their last two letters. MaskSecrets documents them.
var words = func() (by [26 * 26][]word) {
	add := func(of class, whole bool, all string) {
		for _, letters := range strings.Fields(all) {
			w, last := word{letters, of, whole}, len(letters)-1
			if of == secret && letters[last] == 's' && letters[last-1] != 's' {
				w.class = manySecrets
			}
			at := &by[tail(letters[last-1], letters[last])]
			*at = append(*at, w)
		}
	}
	add(secret, false, "password passwords passwd pwd passphrase passcode secret secrets token apikey apikeys accesskey accountkey "+
		"encryptionkey privatekey privatekeys secretkey sharedkey signingkey sshkey credential credentials authorization "+
		"connectionstring passwordhash secrethash tokenhash accesstokens apitokens authtokens refreshtokens")
	add(secret, true, "bearer cookie cookies setcookie databaseurl dsn jwt pass dbpass smtppass userpass pw tokens")
	add(environment, true, "env envvars environment environmentvariables")
	return by
}()

func tail(a, b byte) int { return int(a|0x20-'a')*26 + int(b|0x20-'a') }

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// classOf reads a name that has no escapes.
func classOf(name []byte) class {
	var buffer [24]byte // longer than all words
	at := len(buffer)
	for i := len(name) - 1; i >= 0 && at > 0; i-- {
		switch c := name[i]; {
		case letter(c):
			at--
			buffer[at] = c | 0x20
		case c >= 0x80: // a letter of no word
			at--
			buffer[at] = c
		}
	}
	letters := buffer[at:]
	n := len(letters)
	if n < 2 || letters[n-1] >= 0x80 || letters[n-2] >= 0x80 {
		return plain
	}
	for _, w := range words[tail(letters[n-2], letters[n-1])] {
		if begin := n - len(w.letters); begin >= 0 && (begin == 0 || !w.whole) && string(letters[begin:]) == w.letters {
			return w.class
		}
	}
	return plain
}

// space is what may stand between the parts of JSON.
const space = " \t\r\n"

// suspicious reports false, as fast as it can, when JSON has no name that could be a secret's.
func suspicious(text []byte) bool {
	for i := 0; ; i++ {
		colon := bytes.IndexByte(text[i:], ':')
		if colon < 0 {
			return false
		}
		i += colon
		end := i - 1
		for end >= 0 && strings.IndexByte(space, text[end]) >= 0 {
			end--
		}
		if end < 1 || text[end] != '"' || innocent(text[:end]) {
			continue
		}
		begin := bytes.LastIndexByte(text[:end], '"') + 1
		name := text[begin:end]
		if bytes.IndexByte(name, '\\') >= 0 || begin > 1 && text[begin-2] == '\\' || classOf(name) != plain {
			return true
		}
	}
}

// innocent reports whether a name ends with two letters, as no escape of a letter does, that no word ends with.
func innocent(name []byte) bool {
	n := len(name)
	return n > 1 && letter(name[n-1]) && letter(name[n-2]) && words[tail(name[n-2], name[n-1])] == nil
}

// level is one object or array that a walk is in.
type level struct {
	object bool
	class  class  // of all that is in it: environment, or plain
	name   []byte // of the member that it is at, without quotes; nil when its name comes next
	begin  int    // where that member begins
	index  int    // of the member or element that it is at
	node   int    // of a tree
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
	levels := []level{{}}
	for i := 0; i < len(text); {
		at := &levels[len(levels)-1]
		switch c := text[i]; {
		case c == ':' || strings.IndexByte(space, c) >= 0:
			i++
		case c == ',':
			at.index++
			at.name = nil
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
			named := at.class
			if at.object && named == plain {
				named = classOf(unquoted(at.name))
			}
			whole := named == environment && at.class == plain
			switch {
			case hides(text[i:], named, whole):
				end := after(text, i)
				found(levels, place{begin: at.begin, value: i, end: end})
				i = end
			case c == '{' || c == '[':
				inner := level{object: c == '{', node: unknown}
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

// hides reports whether a value is a secret. A whole environment is none, only what is in it.
func hides(value []byte, named class, whole bool) bool {
	switch c := value[0]; {
	case named == plain || c == 'n':
		return false
	case c == 't' || c == 'f':
		return named == environment && !whole
	case c == '"':
		return !bytes.HasPrefix(value, []byte(`""`))
	case c == '{' || c == '[':
		rest := bytes.TrimLeft(value[1:], space)
		return !whole && len(rest) > 0 && rest[0] != '}' && rest[0] != ']'
	}
	return named != manySecrets
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
