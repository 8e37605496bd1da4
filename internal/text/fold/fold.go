// Package fold folds texts so that they compare and sort in the same way on every database, without
// case and in one Unicode form. A column of folded text does not depend on the database's lower(),
// which may support only ASCII. Texts that are searched are also folded without accents.
//
// Nouns and their stores import it.
package fold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Text returns s without case, in composed Unicode form.
func Text(s string) string {
	if isPlain(s) {
		return s
	}
	return norm.NFC.String(strings.Map(cherokee, cases.Fold().String(norm.NFC.String(s))))
}

// Name returns the key of a username: s without case and compatibility variants (Unicode NFKC), so
// that the full-width ａｄｍｉｎ is admin.
func Name(s string) string {
	if isPlain(s) {
		return s
	}
	for range 3 { // some few runes change again in a second round
		s = Text(norm.NFKC.String(s))
	}
	return s
}

// cherokee folds the script whose small letters fold to capitals (Unicode, CaseFolding.txt).
// cases.Fold does the opposite.
func cherokee(r rune) rune {
	switch {
	case 0xab70 <= r && r <= 0xabbf:
		return r - 0xab70 + 0x13a0
	case 0x13f8 <= r && r <= 0x13fd:
		return r - 8
	}
	return r
}

// isPlain reports whether s is ASCII without capitals, which folding does not change.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// Invisible reports whether r is not visible or is a blank, although Unicode classifies it as a
// letter, mark or symbol. These are fillers, joiners, variation selectors and the blank Braille
// pattern.
func Invisible(r rune) bool {
	return r >= utf8.RuneSelf && (r == 0x2800 ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}
