// Package fold folds texts so that they compare and sort alike on every database, without case and
// in one Unicode form: a column of folded text does not depend on the engine's lower(), which may
// know ASCII only.
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

// Name returns the key of a username: s without case and without differences of compatibility
// (Unicode NFKC), so that the full-width ａｄｍｉｎ is admin.
func Name(s string) string {
	if isPlain(s) {
		return s
	}
	for range 3 { // a second round changes some few runes once more
		s = Text(norm.NFKC.String(s))
	}
	return s
}

// cherokee folds the one script whose small letters fold to capitals (Unicode, CaseFolding.txt);
// cases.Fold swaps them.
func cherokee(r rune) rune {
	switch {
	case 0xab70 <= r && r <= 0xabbf:
		return r - 0xab70 + 0x13a0
	case 0x13f8 <= r && r <= 0x13fd:
		return r - 8
	}
	return r
}

// isPlain reports whether folding leaves s as it is, cheaply: ASCII without capitals.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// Search returns the text of a search column: the folded values, a line each, so that no match
// crosses two of them.
func Search(values ...string) string {
	return Text(strings.Join(values, "\n"))
}

var escape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Pattern returns the LIKE pattern, with \ as escape, that finds s anywhere in a search column.
func Pattern(s string) string {
	return "%" + escape.Replace(Text(s)) + "%"
}

// Invisible reports whether r is drawn as nothing or as an empty place though Unicode counts it as
// a letter, mark or sign: fillers, joiners, variation selectors and the blank Braille pattern.
func Invisible(r rune) bool {
	return r >= utf8.RuneSelf && (r == 0x2800 ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector))
}
