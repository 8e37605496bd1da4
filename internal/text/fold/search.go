package fold

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Search returns the text of a search column: the values without case, accents and compatibility
// variants, one on each line, so that a match cannot span two values.
//
// An accent is a mark on a Latin, Greek or Cyrillic letter. Marks of other scripts remain: vowel
// signs of Devanagari and the dakuten of Japanese make other letters.
func Search(values ...string) string {
	s := strings.Join(values, "\n")
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = Text(s)
	for range 3 { // as for Name
		if norm.NFKC.IsNormalString(s) {
			break
		}
		s = Text(norm.NFKC.String(s))
	}
	return withoutAccents(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// withoutAccents returns a folded text without the marks on letters of the accented scripts, and
// with plain letters for those that Unicode does not decompose. The text remains composed: a letter
// of these scripts composes with no other mark.
func withoutAccents(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	accented := false // the last character that is not a mark is a letter that can have accents
	for i, r := range s {
		switch {
		case r < utf8.RuneSelf:
			accented = 'a' <= r && r <= 'z'
			b.WriteByte(byte(r))
		case unicode.Is(unicode.Mn, r):
			if !accented || !unicode.In(r, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
				b.WriteRune(r)
			}
		default:
			accented = unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic) && unicode.IsLetter(r)
			if accented {
				if parts := norm.NFD.PropertiesString(s[i:]).Decomposition(); parts != nil {
					r, _ = utf8.DecodeRune(parts)
				}
			}
			if letters, ok := plain[r]; ok {
				b.WriteString(letters)
			} else {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}

// plain are the letters for small letters that people write with a plain keyboard, and that Unicode
// does not decompose: those with a stroke, the dotless i, and two ligatures.
var plain = map[rune]string{
	'ø': "o", 'ł': "l", 'đ': "d", 'ħ': "h", 'ŧ': "t", 'ı': "i", 'æ': "ae", 'œ': "oe",
}

// Words returns the texts that a search column must contain to be found by q, folded as Search
// does, each once. They are the words of q, separated by white space. Several words between double
// quotes that begin and end words are one text, with the spaces between them. A text that is part
// of another one is left out. The longest text is first.
func Words(q string) []string {
	var words []string
	for rest := strings.TrimSpace(q); rest != ""; rest = strings.TrimSpace(rest) {
		var word string
		word, rest = next(rest)
		words = append(words, Search(word))
	}
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	kept := words[:0]
	for _, word := range words {
		if !slices.ContainsFunc(kept, func(longer string) bool { return strings.Contains(longer, word) }) {
			kept = append(kept, word)
		}
	}
	return kept
}

// next returns the first word or quoted text of s, which begins with it, and the rest.
func next(s string) (word, rest string) {
	if quoted, ok := strings.CutPrefix(s, `"`); ok {
		for end := 0; end < len(quoted); end++ {
			if quoted[end] != '"' || !isEnd(quoted[end+1:]) {
				continue
			}
			if strings.TrimSpace(quoted[:end]) == "" {
				break
			}
			return strings.Map(space, quoted[:end]), quoted[end+1:]
		}
	}
	end := strings.IndexFunc(s, unicode.IsSpace)
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// isEnd reports whether a word ends before s.
func isEnd(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s == "" || unicode.IsSpace(r)
}

// space returns a space for other white space, so that quoted text cannot span two values.
func space(r rune) rune {
	if unicode.IsSpace(r) {
		return ' '
	}
	return r
}

var escape = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// Pattern returns the LIKE pattern, with the escape \, that finds a text of Words anywhere in a
// search column.
func Pattern(word string) string { return "%" + escape.Replace(word) + "%" }
