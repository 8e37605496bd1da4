// Package charset decodes texts in the character encodings that browsers know. Its tables have
// 0.6 MB: package javascript imports it, and a program that runs no scripts does without.
package charset

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Decode returns the text of bytes in a character encoding, by any name that browsers know, without
// a byte order mark. It returns false for an encoding that is not known, and for bytes that are
// none of it.
func Decode(charset string, b []byte) (text string, ok bool) {
	e, err := htmlindex.Get(charset)
	if err != nil {
		return "", false
	}
	name, _ := htmlindex.Name(e)
	if name == "utf-8" {
		return string(b), utf8.Valid(b)
	}
	if name == "replacement" {
		return "", false
	}
	plain, err := e.NewDecoder().Bytes(b)
	if err != nil || bytes.ContainsRune(plain, utf8.RuneError) {
		return "", false
	}
	return strings.TrimPrefix(string(plain), "\ufeff"), true
}
