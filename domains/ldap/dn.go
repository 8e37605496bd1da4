package ldap

import (
	"crypto/sha256"
	"regexp"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"
	"golang.org/x/text/unicode/norm"
)

// key is a digest of a DN or a name, to save memory. DNs that differ only in case, spaces or
// escapes have the same key.
type key [16]byte

// keys computes keys. It is not safe for concurrent use.
type keys struct{ buffer []byte }

func (k *keys) hash() (h key) {
	sum := sha256.Sum256(k.buffer)
	copy(h[:], sum[:])
	return h
}

// name returns the key of a username.
func (k *keys) name(s string) key {
	k.buffer = append(k.buffer[:0], norm.NFC.String(strings.ToLower(s))...)
	return k.hash()
}

// other returns the key of another text, as it is.
func (k *keys) other(s string) key {
	k.buffer = append(k.buffer[:0], s...)
	return k.hash()
}

// dn returns the key of a DN.
func (k *keys) dn(s string) key {
	k.buffer = k.buffer[:0]
	if !k.plain(s) {
		k.buffer = append(k.buffer[:0], canonical(s)...)
	}
	return k.hash()
}

// plain fills the buffer with the lower-case form of a DN if that is canonical, as it is for nearly
// all, and reports whether it is.
func (k *keys) plain(s string) bool {
	before := byte(',')
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 0x7f || c < ' ', strings.IndexByte(`"#+;<>\`, c) >= 0:
			return false
		case before == ' ' && (c == ' ' || c == ',' || c == '='), before == ',' && (c == ' ' || c == '='),
			before == '=' && c == ' ':
			return false
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		k.buffer = append(k.buffer, c)
		before = c
	}
	return before != ' '
}

// canonical writes a DN in one way. What cannot be parsed stays as it is.
func canonical(s string) string {
	dn, err := goldap.ParseDN(s)
	if err != nil {
		return s
	}
	for _, rdn := range dn.RDNs {
		for _, a := range rdn.Attributes {
			a.Value = strings.Join(strings.Fields(norm.NFC.String(strings.ToLower(a.Value))), " ")
		}
	}
	return dn.String()
}

// bits is what a uniqueMember may have behind its DN.
var bits = regexp.MustCompile(`#'[01]*'B$`)

// withoutBits returns the DN of a value of uniqueMember.
func withoutBits(s string) string {
	if !strings.HasSuffix(s, "'B") {
		return s
	}
	return bits.ReplaceAllString(s, "")
}
