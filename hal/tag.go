package hal

import (
	"crypto/sha256"
	"encoding/base64"
)

// Nothing is the Beside of a row that is the same for all callers.
type Nothing struct{}

// AppendJSON implements Appender.
func (Nothing) AppendJSON(dst []byte) ([]byte, error) { return dst, nil }

// Tag returns the strong entity tag of a resource: the version of its row, a dot, and a digest of
// Beside and the links, which can differ between callers. It does not need an encoded Value.
func (r Resource) Tag() (string, error) {
	var scratch [1024]byte
	seen, err := Append(r.Links.append(scratch[:0]), r.Beside)
	if err != nil {
		return "", err
	}
	return r.TagOf(seen), nil
}

// TagOf returns the strong entity tag of a resource whose caller sees the given bytes: the whole
// body, if Beside is nil.
func (r Resource) TagOf(seen []byte) string {
	sum := sha256.Sum256(seen)
	tag := make([]byte, 0, 48)
	tag = append(tag, '"')
	if r.Row != nil {
		tag = append(append(tag, r.Row.Version()...), '.')
	}
	tag = base64.RawURLEncoding.AppendEncode(tag, sum[:9])
	return string(append(tag, '"'))
}
