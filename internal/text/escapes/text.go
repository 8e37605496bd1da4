package escapes

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether all databases can store s: it is valid UTF-8 without NUL.
func Storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// Cut returns at most the given number of bytes of a text in a form that all databases can store.
// It removes NUL and a partial character at the end, and replaces invalid UTF-8 by U+FFFD.
func Cut(text string, bytes int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) > bytes {
		text = strings.ToValidUTF8(text[:bytes], "")
	}
	return text
}

// StorableWithin reports whether all databases can store s, and s has at most the given number of
// characters.
func StorableWithin(s string, characters int) bool {
	return Storable(s) && utf8.RuneCountInString(s) <= characters
}
