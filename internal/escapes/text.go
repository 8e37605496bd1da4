package escapes

import (
	"strings"
	"unicode/utf8"
)

// Storable reports whether every database can store s: it is UTF-8 without NUL.
func Storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// StorableWithin reports whether every database can store s, and it has at most so many characters.
func StorableWithin(s string, characters int) bool {
	return Storable(s) && utf8.RuneCountInString(s) <= characters
}
