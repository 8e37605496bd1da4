// Package slug makes and checks the names of entities in URLs.
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
// that begin with a letter or digit and are not an id. A slug may contain an id.
func Valid(s string) bool { return form.MatchString(s) && !uuids.Valid(s) }

// Numbered returns a slug with a number after it, for the second, third… entity with a name. It
// shortens a long slug.
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

// IsNumbered reports whether numbered is the result of Numbered for s and some number from 2 on.
func IsNumbered(numbered, s string) bool {
	n, err := strconv.Atoi(numbered[strings.LastIndexByte(numbered, '-')+1:])
	return err == nil && n >= 2 && numbered == Numbered(s, n)
}

// maxSlug is the most bytes of a slug, as in form.
const maxSlug = 128

// Of returns a slug for a name: lower case, without accents, hyphens between words, at most 100
// characters, so that a number can be added. If that is empty or a UUID, the slug is noun or begins
// with it.
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
