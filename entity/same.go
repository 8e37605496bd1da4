package entity

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
)

// SameJSON reports whether two JSON texts are equal, apart from the order of members and white
// space. The order of members with the same name matters, since readers differ in which one counts,
// and numbers are compared as they are written. A text that is not JSON equals no text.
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

// digest reads one value of valid JSON. It is of digests, so that deep nesting takes no more time
// than the text is long.
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
	_, _ = d.Token() // its end
	if delim == '{' {
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	}
	all := []byte(delim.String())
	for _, m := range members {
		all = append(fmt.Appendf(all, "%q", m.name), m.value[:]...)
	}
	return sha256.Sum256(all)
}
