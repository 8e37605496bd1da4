package httpapi

import "testing"

func TestLogged(t *testing.T) {
	for text, want := range map[string]string{
		"o'brien": "o'brien", "日本 x": "日本 x", "a\nb": `a\nb`, "a\u202eb": `a\u202eb`,
		"a\x1b[2J": `a\x1b[2J`, "a\xff": `a\xff`, "0123456789": "01234567…", "0123456ü": "0123456…",
	} {
		if got := logged(text, 8); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
