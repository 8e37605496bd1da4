package entity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// SameJSON reports whether two JSON texts are equal, except for white space and the order of
// members. The order of members with the same name matters, because parsers differ in which one
// they use. Numbers are compared as they are written. A text that is not JSON equals no text.
func SameJSON(a, b json.RawMessage) bool {
	if !json.Valid(a) || !json.Valid(b) {
		return false
	}
	return bytes.Equal(a, b) || digest(decoder(a)) == digest(decoder(b))
}

func decoder(data json.RawMessage) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d
}

// digest reads one value of valid JSON and returns its digest. It hashes digests of the parts, so
// that deeply nested text takes linear time.
func digest(d *json.Decoder) [sha256.Size]byte {
	type member struct {
		name  string
		value [sha256.Size]byte
	}
	token, _ := d.Token()
	delim, ok := token.(json.Delim)
	if !ok {
		return sha256.Sum256(fmt.Appendf(nil, "%T %[1]v", token))
	}
	var members []member
	for d.More() {
		var m member
		if delim == '{' {
			name, _ := d.Token()
			m.name, _ = name.(string)
		}
		m.value = digest(d)
		members = append(members, m)
	}
	_, _ = d.Token() // the closing bracket
	if delim == '{' {
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	}
	all := []byte(delim.String())
	for _, m := range members {
		all = append(fmt.Appendf(all, "%q", m.name), m.value[:]...)
	}
	return sha256.Sum256(all)
}
