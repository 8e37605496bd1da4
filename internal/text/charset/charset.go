// Package charset decodes texts in the character encodings that browsers know. Package javascript
// imports it. Other packages do not, as its tables add 0.6 MB to a program.
package charset

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"
)

// Decode returns the text of bytes in a character encoding, without a byte order mark. charset is
// any name that browsers know. It reports false if the encoding is not known or the bytes are not
// valid in it.
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
