// Package keyring encrypts secrets at rest. It seals the value of a column with a key of the host,
// bound to the place where the value is stored, and opens it only there.
//
// A sealed value is v1.<key id>.<base64url of nonce and ciphertext>. The cipher is AES-256-GCM with
// a key that HKDF derives from one of the ring's keys and the tenant. Tenant, table, column and row
// are additional data. The first key of the ring seals and all open, so keys are changed in three
// steps: Rotate, seal everything again, Retire.
//
// Stores with secrets, the root and cmd import it.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strings"
	"unicode"

	"github.com/tenantcontent/tenantcontent/errs"
)

const (
	version = "v1"
	keySize = 32
)

// Ring is a list of keys, which is never empty. Logs and formatted texts of a Ring do not contain
// the keys.
type Ring struct {
	keys []key
}

type key struct {
	id     string         // 8 hex digits that reveal nothing about secret
	secret *[keySize]byte // a pointer, so that the secret is not printed with an enclosing value
}

// Parse parses a key ring: keys of 32 bytes in base64 (either alphabet, padded or not) or in 64 hex
// digits, separated by commas or white space. The first key seals. It returns errs.Invalid, without
// any part of the text, for invalid keys.
func Parse(text string) (*Ring, error) {
	r := &Ring{}
	for i, word := range words(text) {
		k, err := parseKey(word)
		if err != nil {
			return nil, errs.New(errs.Invalid, "Key %d of the key ring is not usable: %s.", i+1, err)
		}
		if r.find(k.id) != nil {
			return nil, errs.New(errs.Invalid, "Key %d of the key ring is there already.", i+1)
		}
		r.keys = append(r.keys, k)
	}
	if len(r.keys) == 0 {
		return nil, errs.New(errs.Invalid, "The key ring has no key.")
	}
	return r, nil
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

func parseKey(word string) (key, error) {
	b, err := decode(word)
	if err != nil {
		return key{}, fmt.Errorf("want %d bytes in base64 or %d hex digits", keySize, 2*keySize) // err has the word
	}
	if len(b) != keySize {
		return key{}, fmt.Errorf("it has %d bytes, want %d", len(b), keySize)
	}
	k := key{secret: (*[keySize]byte)(b)}
	if *k.secret == [keySize]byte{} {
		return key{}, fmt.Errorf("it is all zeros")
	}
	id, err := k.derive("key id", 4)
	k.id = hex.EncodeToString(id)
	return k, err
}

func decode(word string) ([]byte, error) {
	if len(word) == 2*keySize {
		if b, err := hex.DecodeString(word); err == nil {
			return b, nil
		}
	}
	word = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(word, "="))
	return base64.RawStdEncoding.Strict().DecodeString(word)
}

// derive returns size bytes derived from the key for one purpose.
func (k key) derive(purpose string, size int) ([]byte, error) {
	return hkdf.Key(sha256.New, k.secret[:], nil, "tenantcontent keyring "+version+" "+purpose, size)
}

// Derive returns 32 bytes derived from the first key for one purpose. They are the same in every
// program with the key.
func (r *Ring) Derive(purpose string) ([]byte, error) {
	return r.keys[0].derive("for "+purpose, sha256.Size)
}

// Generate returns a new random key in the format of Parse.
func Generate() string {
	var b [keySize]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

// Seal encrypts a value for one place. Each call returns a different text.
func (r *Ring) Seal(tenant, table, column, row string, plain []byte) (string, error) {
	aead, err := r.keys[0].aead(tenant)
	if err != nil {
		return "", err
	}
	box := aead.Seal(nil, nil, plain, place(tenant, table, column, row))
	return version + "." + r.keys[0].id + "." + base64.RawURLEncoding.EncodeToString(box), nil
}

// Open decrypts the result of Seal for the same place. It returns errs.Internal, because a stored
// value is not the caller's fault, if the key is not in the ring, or the value was changed or
// copied from another place.
func (r *Ring) Open(tenant, table, column, row, sealed string) ([]byte, error) {
	id, box, err := split(sealed)
	if err != nil {
		return nil, err
	}
	k := r.find(id)
	if k == nil {
		return nil, errs.New(
			errs.Internal, "keyring: a secret is sealed under key %s, which is not in the key ring", id,
		)
	}
	aead, err := k.aead(tenant)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, box, place(tenant, table, column, row))
	if err != nil {
		return nil, errSealed
	}
	return plain, nil
}

// Beginning returns the length of a sealed value up to the end of the id of its key.
func (r *Ring) Beginning() int { return len(version) + 1 + 8 }

// Current reports whether a value is sealed with the first key. If so, it need not be sealed again.
func (r *Ring) Current(sealed string) bool {
	id, _, err := split(sealed)
	return err == nil && id == r.keys[0].id
}

var errSealed = errs.New(errs.Internal, "keyring: a sealed value is damaged or was not sealed for the place it is in")

// split parses a sealed value. It accepts only the form that Seal writes.
func split(sealed string) (id string, box []byte, err error) {
	v, rest, _ := strings.Cut(sealed, ".")
	id, text, _ := strings.Cut(rest, ".")
	if v != version || !isID(id) || strings.ContainsAny(text, "\r\n") { // which base64 ignores
		return "", nil, errSealed
	}
	if box, err = base64.RawURLEncoding.Strict().DecodeString(text); err != nil {
		return "", nil, errSealed
	}
	return id, box, nil
}

func isID(s string) bool {
	return len(s) == 8 && strings.Trim(s, "0123456789abcdef") == ""
}

func (r *Ring) find(id string) *key {
	for i := range r.keys {
		if r.keys[i].id == id {
			return &r.keys[i]
		}
	}
	return nil
}

func (k key) aead(tenant string) (cipher.AEAD, error) {
	derived, err := k.derive("seal for tenant "+tenant, keySize)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// place returns the additional data: each part after its length, so that the data of two places
// differ.
func place(parts ...string) []byte {
	b := []byte(version)
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

// String returns the ids of the keys.
func (r Ring) String() string {
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.id
	}
	return "keyring(" + strings.Join(ids, " ") + ")"
}

// Format implements fmt.Formatter: every verb prints String.
func (r Ring) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(r.String())) }

// LogValue implements slog.LogValuer.
func (r Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }
