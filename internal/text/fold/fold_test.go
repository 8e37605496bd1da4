package fold_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/matryer/is"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "abc-1": "abc-1", "ABC": "abc", "É": "é",
		"E\u0301": "é", "e\u0301": "é", "Straße": "strasse", "STRASSE": "strasse",
		"ΣΑΣ": "σασ", "ς": "σ", "\u212a": "k", "İ": "i\u0307", "Ǆ": "ǆ", "ﬀ": "ff",
		"日本": "日本", "Ꮟ": "Ꮟ", "ꮟ": "Ꮟ", "ᏸ": "Ᏸ", "Ᏸ": "Ᏸ", "\x00A\n": "\x00a\n",
	} {
		is.New(t).Equal(fold.Text(in), want)
	}
}

// TestTextProperties: folding is idempotent, and does not depend on the Unicode form or the case of
// letters.
func TestTextProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got := fold.Text(norm.NFD.String(s)); got != fold.Text(s) {
			t.Fatalf("%q: decomposed it is %q, composed %q", s, got, fold.Text(s))
		}
		ascii := rapid.StringMatching(`[ -~]*`).Draw(t, "ascii")
		if fold.Text(ascii) != strings.ToLower(ascii) || fold.Text(strings.ToUpper(ascii)) != strings.ToLower(ascii) {
			t.Fatalf("%q", ascii)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "É", "E\u0301", "\xff\xfeA", "İ", "ᾳ\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := fold.Text(s)
		if twice := fold.Text(once); twice != once {
			t.Errorf("%q is %q and then %q", s, once, twice)
		}
	})
}

// TestEveryCase: all runes that Unicode folds to each other have the same result.
func TestEveryCase(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if next := unicode.SimpleFold(r); next > r && fold.Text(string(next)) != fold.Text(string(r)) {
			t.Errorf("%U %U", r, next)
		}
	}
}
