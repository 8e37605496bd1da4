// Package escapes finds text that databases cannot store: invalid UTF-8, NUL and, in JSON, half of
// a surrogate pair, which encoding/json would silently replace by another character.
//
// Nouns and httpapi import it.
package escapes

import (
	"bytes"
	"strconv"
)

// Bad reports whether valid JSON has such an escape. It relies on backslashes being only in
// strings, where they begin an escape.
func Bad(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return false
		}
		c, ok := unit(raw[i:])
		switch {
		case !ok:
			raw = raw[min(i+2, len(raw)):]
			continue
		case c == 0, low(c):
			return true
		case 0xd800 <= c && c < 0xdc00:
			if second, ok := unit(raw[i+6:]); !ok || !low(second) {
				return true
			}
			i += 6
		}
		raw = raw[i+6:]
	}
}

// low reports whether c is the second half of a pair.
func low(c uint64) bool { return 0xdc00 <= c && c < 0xe000 }

// unit returns the UTF-16 code unit of the escape at the beginning of raw, and whether there is
// one: a backslash, a u and four hexadecimal digits.
func unit(raw []byte) (uint64, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	c, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return c, err == nil
}
