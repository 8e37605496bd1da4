package archive

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// wrongObject returns the reason why JSON cannot be a row or bundle.json, as the end of a sentence,
// or "". A duplicate name is refused, because parsers differ in which value they use. The values
// are not checked.
func wrongObject(raw []byte) (wrong string) {
	if !utf8.Valid(raw) || len(raw) == 0 || raw[0] != '{' {
		return "is not a JSON object"
	}
	seen := map[string]bool{}
	object := rawjson.Each(raw, func(name string, _ json.RawMessage) {
		switch {
		case wrong != "":
		case seen[name]:
			wrong = fmt.Sprintf("gives %q twice", short(name))
		case len(seen) == maxColumns:
			wrong = fmt.Sprintf("has more than %d names", maxColumns)
		}
		if wrong == "" {
			seen[name] = true
		}
	})
	switch {
	case !object:
		return "is not a JSON object"
	case wrong == "" && escapes.Bad(raw):
		return "has a NUL character or half of a surrogate pair"
	}
	return wrong
}

// TooDeep reports whether valid JSON is nested too deep for the data of an entry.
func TooDeep(raw []byte) bool {
	deep, _ := rawjson.Shape(raw)
	return deep > MaxNesting
}
