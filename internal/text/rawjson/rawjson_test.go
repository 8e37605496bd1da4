package rawjson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// texts are valid and invalid JSON.
var texts = []string{
	``, ` `, `{}`, `[]`, "\t[ ]\r\n", `{ }`, `null`, `nul`, `nulls`,
	`true`, `false`, `tru`, `""`, `"`, `"a`, `"\`, `"\"`, `"\\"`, `"\x"`,
	`"\u12"`, `"\u12aF"`, `"\u12ag"`, `"\ud83d\ude00 \ud83d"`, `"\u0000ä"`, "\"\n\"", "\"\x7f\xff\"", `'a'`, `0`, `-0`,
	`01`, `-`, `+1`, `1.`, `.5`, `1.5`, `1e5`, `1E+5`, `1e-`, `1e`, `-1.25e-07`,
	`1 2`, `[1,2]`, `[1 2]`, `[1,]`, `[,1]`, `[1`, `[1}`,
	`{"a":1}`, `{"a":1,}`, `{"a" : [ 1 , {"b":null} ] , "c":{}}`, `{a:1}`, `{"a"1}`, `{"a":}`, `{"a"}`,
	`{"a":1 "b":2}`, `{"a":1]`, `{"a":1`, `{"a":1}}`, `{"a":1} x`, `{"a":1,"a":2}`,
	`{"\u0061":1,"b\n":"x"}`, `{1:2}`, `{"a":[}`, `]`, `}`, `,`, `:`,
	`{"":""}`, `[[[]]]`, `[[]`, `[{}]`, `[nullx]`, `{"a":tru}`, "\xef\xbb\xbf{}", `{"a":NaN}`,
}

func same(t *testing.T, raw []byte) {
	t.Helper()
	if got, want := rawjson.Valid(raw), json.Valid(raw); got != want {
		t.Fatalf("%.100q is valid: %v", raw, want)
	}
	var want map[string]json.RawMessage
	object := json.Unmarshal(raw, &want) == nil && want != nil
	got, ok := rawjson.Members(raw)
	if ok != object || ok && !reflect.DeepEqual(got, want) {
		t.Fatalf("%.100q has the members %q, not %q", raw, want, got)
	}
	var elements, gotElements []json.RawMessage
	array := json.Unmarshal(raw, &elements) == nil && elements != nil
	ok = rawjson.Elements(raw, func(i int, value json.RawMessage) {
		if i == len(gotElements) {
			gotElements = append(gotElements, value)
		}
	})
	if ok != array || ok && !slices.EqualFunc(gotElements, elements, func(a, b json.RawMessage) bool {
		return bytes.Equal(a, b)
	}) {
		t.Fatalf("%.100q has the elements %q, not %q", raw, elements, gotElements)
	}
	if !json.Valid(raw) {
		return
	}
	raw = bytes.Trim(raw, " \t\r\n")
	var words string
	isText := raw[0] == '"' && json.Unmarshal(raw, &words) == nil
	if got, ok := rawjson.Text(raw); ok != isText || got != words {
		t.Fatalf("%.100q is the text %q, %v, not %q", raw, words, isText, got)
	}
}

func TestAsEncodingJSON(t *testing.T) {
	for _, raw := range texts {
		same(t, []byte(raw))
	}
	for _, deep := range []int{9_999, 10_000, 10_001, 1_000_000} {
		for _, end := range []string{"", "1"} {
			list := strings.Repeat("[", deep) + end + strings.Repeat("]", deep)
			same(t, []byte(list))
			same(t, []byte(fmt.Sprintf(`{"a":%s}`, list)))
			same(t, []byte(strings.Repeat(`{"a":`, deep)+"1"+strings.Repeat("}", deep)))
			same(t, []byte(list[:len(list)-1]))
		}
	}
}

func TestMembersAreApart(t *testing.T) {
	is := is.New(t)
	raw := []byte(`{"a":1,"b":2}`)
	members, ok := rawjson.Members(raw)
	is.True(ok)
	_ = append(members["a"], "0,,,"...)
	is.Equal(string(raw), `{"a":1,"b":2}`)
}

func TestEachInOrder(t *testing.T) {
	is := is.New(t)
	var all []string
	note := func(name string, value json.RawMessage) { all = append(all, name+string(value)) }
	is.True(rawjson.Each([]byte(`{"b": 1, "a": {}, "\u0062": 2}`), note))
	is.Equal(all, []string{"b1", "a{}", "b2"})
	is.True(!rawjson.Each([]byte(`{"c": 1, "a"`), note))
	is.Equal(all[3:], []string{"c1"})
}

func FuzzAsEncodingJSON(f *testing.F) {
	for _, raw := range texts {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { same(t, raw) })
}

func BenchmarkMembers(b *testing.B) {
	raw := []byte(`{"name":"A","data":{"fields":[` + strings.Repeat(
		`{"field":"column","label":"Column 7","width":120},`, 200,
	) + `0]}}`)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, ok := rawjson.Members(raw); !ok {
			b.Fatal("not valid")
		}
	}
}
