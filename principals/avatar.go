package principals

import (
	"hash/fnv"
	"strings"
	"unicode"
)

// avatarColors are 16 shades of the Material palette, each with the text color that can be read on
// it: a contrast of at least 4.5 (WCAG 2.1, 1.4.3).
var avatarColors = [16]struct{ background, text string }{
	{"#c62828", "#ffffff"}, {"#c2185b", "#ffffff"}, {"#7b1fa2", "#ffffff"}, {"#512da8", "#ffffff"},
	{"#303f9f", "#ffffff"}, {"#1565c0", "#ffffff"}, {"#4fc3f7", "#000000"}, {"#4dd0e1", "#000000"},
	{"#00695c", "#ffffff"}, {"#2e7d32", "#ffffff"}, {"#aed581", "#000000"}, {"#ffee58", "#000000"},
	{"#ffb300", "#000000"}, {"#bf360c", "#ffffff"}, {"#5d4037", "#ffffff"}, {"#455a64", "#ffffff"},
}

// Avatar returns the palette index, 0 to 15, and the colors of a principal without a picture. It
// depends on the tenant and the id alone.
func Avatar(tenant, id string) (index int, background, text string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(tenant + "\x00" + id))
	sum := h.Sum32()
	index = int((sum ^ sum>>16) % 16) // the low bits of FNV alone follow the last byte
	return index, avatarColors[index].background, avatarColors[index].text
}

// Initials returns the first letters of the first and the last word of a name, in upper case; one
// letter for one word, "" for a name without letters and digits. Of an email address the part
// before the @ counts; dots, hyphens and underscores part words as spaces do.
func Initials(name string) string {
	if !strings.Contains(name, " ") {
		name, _, _ = strings.Cut(name, "@")
	}
	words := strings.FieldsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\''
	})
	var first, last rune
	for _, w := range words {
		for _, r := range w {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				continue // a word such as 'n' begins with its letter
			}
			if first == 0 {
				first = unicode.ToTitle(r)
			} else {
				last = unicode.ToTitle(r)
			}
			break
		}
	}
	if last == 0 {
		return strings.TrimRight(string(first), "\x00")
	}
	return string([]rune{first, last})
}
