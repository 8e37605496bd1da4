// Package slug makes and checks the names that stand in URLs for an entity.
//
// Nouns import it.
package slug

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

var form = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Valid reports whether s is a slug: 1 to 128 letters, digits, hyphens and underscores of ASCII
// that begin with a letter or digit, and do not spell an id. One that contains an id is a slug like
// any other.
func Valid(s string) bool { return form.MatchString(s) && !uuids.Valid(s) }

// Numbered returns a slug with a number behind it, as the second, third… of a name gets it. It cuts
// a long one.
func Numbered(s string, n int) string {
	number := "-" + strconv.Itoa(n)
	return s[:min(len(s), maxSlug-len(number))] + number
}

// FirstFree returns the first of slug-2, slug-3… that is not taken.
func FirstFree(s string, taken map[string]bool) string {
	for n := 2; ; n++ {
		if try := Numbered(s, n); !taken[try] {
			return try
		}
	}
}

// IsNumbered reports whether Numbered returns a slug for another one and some number from 2.
func IsNumbered(numbered, s string) bool {
	n, err := strconv.Atoi(numbered[strings.LastIndexByte(numbered, '-')+1:])
	return err == nil && n >= 2 && numbered == Numbered(s, n)
}

// maxSlug is the most bytes of a slug, as form has it.
const maxSlug = 128

// Of makes a slug of a name: lower case, accents gone, hyphens between words, at most 100
// characters, so that there is room for a number. noun is what it is called, and begins with, when
// that would leave nothing or a UUID.
func Of(name, noun string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(fold.Text(name)) {
		switch {
		case b.Len() == 100:
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case unicode.IsMark(r):
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	if !Valid(s) {
		return strings.TrimSuffix(noun+"-"+s, "-")
	}
	return s
}
