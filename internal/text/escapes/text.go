package escapes

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether every database can store s: it is UTF-8 without NUL.
func Storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// Cut returns the first bytes of a text, at most so many, as every database can store them: without
// NUL and a part of a character at the end, and with U+FFFD in place of what is not UTF-8.
func Cut(text string, bytes int) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "\uFFFD")
	if len(text) > bytes {
		text = strings.ToValidUTF8(text[:bytes], "")
	}
	return text
}

// StorableWithin reports whether every database can store s, and it has at most so many characters.
func StorableWithin(s string, characters int) bool {
	return Storable(s) && utf8.RuneCountInString(s) <= characters
}
