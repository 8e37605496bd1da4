package escapes_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

func TestBad(t *testing.T) {
	for raw, want := range map[string]bool{
		``: false, `"plain"`: false, `"\n\\u0000"`: false, `"\u00e4\ud83d\ude00x"`: false, `"\\\\ud800"`: false,
		`"\u0000"`: true, `{"a\\": "\u0000"}`: true, `"\ud800"`: true, `"\ud800x"`: true, `"\udc00"`: true,
		`"\ud800\ud800"`: true, `"\ud800\n"`: true, `"\ud83d\ude00\ude00"`: true, `"\uD83D\uDE00"`: false,
	} {
		is.New(t).Equal(escapes.Bad([]byte(raw)), want)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		bytes int
		want  string
	}{
		{"abc", 3, "abc"}, {"abc", 2, "ab"}, {"aäb", 2, "a"}, {"aäb", 3, "aä"}, {"a\x00b", 2, "ab"},
		{"a\xffb", 9, "a\uFFFDb"}, {"\xff", 2, ""},
	} {
		is.New(t).Equal(escapes.Cut(c.text, c.bytes), c.want)
	}
}

// FuzzBad compares with the result of encoding/json for a string: NUL, or a replacement character
// that is not in the input.
func FuzzBad(f *testing.F) {
	for _, s := range []string{`\u0000`, `\ud800\udc00`, `\udc00`, `\\u0000`, `a\tb`, `\ud800\\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		raw := `"` + s + `"`
		var read string
		if json.Unmarshal([]byte(raw), &read) != nil || strings.Contains(strings.ToLower(s), "fffd") ||
			strings.ContainsRune(strings.ToValidUTF8(s, "\ufffd"), '\ufffd') {
			return
		}
		if want := strings.ContainsAny(read, "\x00\ufffd"); escapes.Bad([]byte(raw)) != want {
			t.Fatalf("%q: want %v", raw, want)
		}
	})
}
