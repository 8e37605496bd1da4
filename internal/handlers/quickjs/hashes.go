package quickjs

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"strings"

	"github.com/google/uuid"
)

// algorithms are the digests by name.
var algorithms = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224,
	"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// algorithm returns the digest that a script names, such as "sha256" or "SHA-256", or nil and an
// exception.
func (m *vm) algorithm(name string) (func() hash.Hash, value) {
	if f := algorithms[strings.ReplaceAll(strings.ToLower(name), "-", "")]; f != nil {
		return f, undefined()
	}
	return nil, m.throw("the algorithm %s is not supported: use md5, sha1, sha224, sha256, sha384 or sha512", name)
}

func nativeHash(m *vm, in arguments) value {
	f, e := m.algorithm(in.s[0])
	if f == nil {
		return e
	}
	return m.newBuffer(sum(f, in.b[0]))
}

// sum returns the digest of data.
func sum(f func() hash.Hash, data []byte) []byte {
	h := f()
	h.Write(data)
	return h.Sum(nil)
}

func nativeHMAC(m *vm, in arguments) value {
	f, e := m.algorithm(in.s[0])
	if f == nil {
		return e
	}
	return m.newBuffer(hmacOf(f, in.b[0], in.b[1]))
}

func hmacOf(f func() hash.Hash, key, data []byte) []byte {
	h := hmac.New(f, key)
	h.Write(data)
	return h.Sum(nil)
}

// nativeVerifyHMAC compares in constant time: algorithm, key, data, signature in hex or base64,
// also after "sha256=" and its like.
func nativeVerifyHMAC(m *vm, in arguments) value {
	f, e := m.algorithm(in.s[0])
	if f == nil {
		return e
	}
	signature := strings.TrimSpace(in.s[1])
	if prefix := strings.ToLower(in.s[0]) + "="; len(signature) > len(prefix) &&
		strings.EqualFold(signature[:len(prefix)], prefix) {
		signature = signature[len(prefix):]
	}
	want := hmacOf(f, in.b[0], in.b[1])
	got, err := hex.DecodeString(signature)
	if err != nil || len(got) != len(want) {
		got, _ = fromBase64(signature)
	}
	return newBool(hmac.Equal(got, want))
}

func nativeEqual(m *vm, in arguments) value {
	a, b := sha256.Sum256(in.b[0]), sha256.Sum256(in.b[1])
	return newBool(subtle.ConstantTimeCompare(a[:], b[:]) == 1)
}

func nativeRandom(m *vm, in arguments) value {
	n, ok := m.number(in.all[0])
	if !ok {
		return exception()
	}
	if !(n >= 0 && n <= 65536) {
		return m.throw("random bytes are made 65536 at once at most")
	}
	b := make([]byte, int(n))
	rand.Read(b)
	return m.newBuffer(b)
}

func nativeUUID(m *vm, _ arguments) value { return m.newString(uuid.NewString()) }
