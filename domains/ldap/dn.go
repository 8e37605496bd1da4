package ldap

import (
	"crypto/sha256"
	"regexp"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"
	"golang.org/x/text/unicode/norm"
)

// key stands for a DN, or for a name, in few bytes. What a directory takes for two DNs gets two keys; one that is written
// in another case, with other spaces or escapes gets the same.
type key [16]byte

// keys makes keys. It is not for several goroutines.
type keys struct{ buffer []byte }

func (k *keys) hash() (h key) {
	sum := sha256.Sum256(k.buffer)
	copy(h[:], sum[:])
	return h
}

// name returns the key of somebody's name.
func (k *keys) name(s string) key {
	k.buffer = append(k.buffer[:0], norm.NFC.String(strings.ToLower(s))...)
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

// plain fills the buffer with a DN whose canonical form is itself in lower case, which is nearly every one.
func (k *keys) plain(s string) bool {
	before := byte(',')
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 0x7f || c < ' ', strings.IndexByte(`"#+;<>\`, c) >= 0:
			return false
		case before == ' ' && (c == ' ' || c == ',' || c == '='), before == ',' && (c == ' ' || c == '='), before == '=' && c == ' ':
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
