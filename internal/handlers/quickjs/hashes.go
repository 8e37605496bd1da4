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
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// algorithm returns the digest that a script names, such as "sha256" or "SHA-256", or an exception.
func (m *vm) algorithm(v value) (func() hash.Hash, value) {
	name, ok := m.stringOf(v)
	if !ok {
		return nil, exception()
	}
	if f := algorithms[strings.ReplaceAll(strings.ToLower(name), "-", "")]; f != nil {
		return f, undefined()
	}
	return nil, m.throw("the algorithm %s is not supported: use md5, sha1, sha224, sha256, sha384 or sha512", name)
}

func nativeHash(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	h := f()
	h.Write(data[0])
	return m.newBuffer(h.Sum(nil))
}

func nativeHMAC(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1], args[2])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	h := hmac.New(f, data[0])
	h.Write(data[1])
	return m.newBuffer(h.Sum(nil))
}

// nativeVerifyHMAC compares in constant time: algorithm, key, data, signature in hex or base64, also after "sha256=" and its like.
func nativeVerifyHMAC(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1], args[2])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	name, _ := m.stringOf(args[0])
	signature, _ := m.stringOf(args[3])
	signature = strings.TrimSpace(signature)
	if prefix := strings.ToLower(name) + "="; len(signature) > len(prefix) && strings.EqualFold(signature[:len(prefix)], prefix) {
		signature = signature[len(prefix):]
	}
	h := hmac.New(f, data[0])
	h.Write(data[1])
	want := h.Sum(nil)
	got, err := hex.DecodeString(signature)
	if err != nil || len(got) != len(want) {
		got, _ = fromBase64(signature)
	}
	return newBool(hmac.Equal(got, want))
}

func nativeEqual(m *vm, args []value) value {
	data, ok := m.data(args[0], args[1])
	if !ok {
		return exception()
	}
	a, b := sha256.Sum256(data[0]), sha256.Sum256(data[1])
	return newBool(subtle.ConstantTimeCompare(a[:], b[:]) == 1)
}

func nativeRandom(m *vm, args []value) value {
	n, ok := m.number(args[0])
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

func nativeUUID(m *vm, _ []value) value { return m.newString(uuid.NewString()) }
