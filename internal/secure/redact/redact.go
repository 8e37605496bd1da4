// Package redact masks secrets in texts of servers that have received them and may repeat them.
// Drivers of domains and of models import it.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Lengths of secrets that Text masks, in bytes. Very short secrets, such as a code, occur in any
// message. Masking them would hide the message and reveal the secret.
const (
	leastMasked = 4 // if it is a word of the message
	leastAnyhow = 8 // also within a word
	mask        = "********"
)

// Text returns a text in which some secrets are masked. It ignores secrets that are "".
func Text(text string, secrets ...string) string {
	longest := slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range longest { // a secret may contain another one
		switch {
		case len(secret) >= leastAnyhow:
			text = strings.ReplaceAll(text, secret, mask)
		case len(secret) >= leastMasked:
			text = maskedWord(text, secret)
		}
	}
	return text
}

// maskedWord masks a word in a text where no letter or digit is next to it.
func maskedWord(text, word string) string {
	part := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	var b strings.Builder
	before := ' '
	for {
		at := strings.Index(text, word)
		if at < 0 {
			return b.String() + text
		}
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(text[:at])
		}
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		b.WriteString(text[:at])
		if part(before) || part(after) {
			b.WriteString(word)
		} else {
			b.WriteString(mask)
		}
		before, _ = utf8.DecodeLastRuneInString(word)
		text = text[at+len(word):]
	}
}
