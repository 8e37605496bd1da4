package archive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

func TestWrongObject(t *testing.T) {
	is := is.New(t)
	long := `"` + strings.Repeat("ü", 300) + `": 1`
	for raw, want := range map[string]string{
		`{}`: "", ` {}`: "is not a JSON object", `{} `: "", `{"a": {"b": [1, {"c": null}]}, "b": "", "A": 1}`: "",
		``: "is not a JSON object", `[]`: "is not a JSON object",
		`{`: "is not a JSON object", `{}{}`: "is not a JSON object", "{\"a\": \"\xff\"}": "is not a JSON object",
		`{"a": 1, "a": 1`:  "is not a JSON object",
		`{"a": 1, "a": 1}`: `gives "a" twice`, `{"a": 1, "\u0061": 1, "b": 1}`: `gives "a" twice`,
		`{"x": {"a": 1, "a": 1}}`:     "", // values are not checked
		`{"\u0000": 1}`:               "has a NUL character or half of a surrogate pair",
		`{"a": "\ud800"}`:             "has a NUL character or half of a surrogate pair",
		"{" + long + "," + long + "}": `gives "` + strings.Repeat("ü", 100) + `…" twice`,
		many(maxColumns):              "", many(maxColumns + 1): "has more than 10000 names",
	} {
		is.Equal(wrongObject([]byte(raw)), want)
	}
}

// many returns an object of n members.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"%d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestShape(t *testing.T) {
	is := is.New(t)
	for raw, want := range map[string][2]int{
		`1`: {0, 0}, `{}`: {1, 0}, `[1, 2]`: {1, 1}, `{"a": [1, 2, {"b": [3, 4, 5]}], "c": {"d": {}, "e": 1}}`: {4, 4},
		`{"[{,": "\"[{,\\", "a": [[1, 2, 3]]}`: {3, 1},
	} {
		deep, wide := rawjson.Shape([]byte(raw))
		is.Equal([2]int{deep, wide}, want)
	}
	is.True(!TooDeep([]byte(strings.Repeat("[", MaxNesting) + strings.Repeat("]", MaxNesting))))
	is.True(TooDeep([]byte(strings.Repeat("[", MaxNesting+1) + strings.Repeat("]", MaxNesting+1))))
}
