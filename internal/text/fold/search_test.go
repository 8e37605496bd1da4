package fold_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/matryer/is"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

func TestSearch(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "Jo-1": "jo-1", "Crème Brûlée": "creme brulee", "E\u0301TE\u0301": "ete", "Ệ": "e",
		"Straße": "strasse", "İstanbul": "istanbul", "Diyarbakır": "diyarbakir", "ΑΘΉΝΑ": "αθηνα", "ΣΑΣ ς": "σασ σ",
		"Ёлка Й": "елка и", "Łódź": "lodz", "Ørsted Đỗ": "orsted do", "Ægir Œuvre": "aegir oeuvre",
		"ﬁn ½ ｃａｆé\u00a0№": "fin 1⁄2 cafe no", "ｶﾞ": "ガ", "x\u0302\u0332": "x", "\u0301a": "\u0301a",
		"日本": "日本", "が": "が", "か\u3099": "が", "हिन्दी": "हिन्दी", "שָׁלוֹם": norm.NFC.String("שָׁלוֹם"),
		"한국": "한국", norm.NFD.String("한국x"): "한국x", "þð": "þð", "a\u200db": "a\u200db",
	} {
		is.New(t).Equal(fold.Search(in), want)
	}
	is.New(t).Equal(fold.Search("Jo", "É"), "jo\ne")
}

// plainly is Search by its definition: a name without the accents of its decomposed form.
func plainly(s string) string {
	var b strings.Builder
	accented := false
	for _, r := range norm.NFD.String(fold.Name(s)) {
		if !unicode.Is(unicode.Mn, r) {
			accented = unicode.IsLetter(r) && unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic)
		} else if accented && unicode.In(r, unicode.Inherited, unicode.Latin, unicode.Greek, unicode.Cyrillic) {
			continue
		}
		b.WriteRune(r)
	}
	return norm.NFC.String(strings.NewReplacer(
		"ø", "o", "ł", "l", "đ", "d", "ħ", "h", "ŧ", "t", "ı", "i", "æ", "ae", "œ", "oe",
	).Replace(b.String()))
}

// TestSearchProperties: a search text is that of the definition, does not depend on the Unicode
// form, and can be made of a text that is already folded.
func TestSearchProperties(t *testing.T) {
	words := rapid.StringOfN(rapid.RuneFrom([]rune("aAeEoOsßéÉÅﬁİıΣςΆйЙøŁœがカ\u3099हि한½ﷺ\u0301\u0308\u05b8 -_%")), 0, 9, -1)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(words, rapid.String()).Draw(t, "s")
		got := fold.Search(s)
		for name, other := range map[string]string{
			"decomposed": fold.Search(norm.NFD.String(s)), "folded": fold.Search(fold.Text(s)),
			"searched": fold.Search(got), "defined": plainly(s), "compatible": fold.Search(norm.NFKC.String(s)),
		} {
			if other != got {
				t.Fatalf("%q is %q, %s it is %q", s, got, name, other)
			}
		}
		if ascii := rapid.StringMatching(`[ -~]*`).Draw(t, "ascii"); fold.Search(ascii) != strings.ToLower(ascii) {
			t.Fatalf("%q", ascii)
		}
	})
}

// TestSearchOfEveryCharacter: what migration 0063 makes of folded texts is what is made of the
// originals, and no text becomes longer than the databases allow in a pattern.
func TestSearchOfEveryCharacter(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if s := string(r); fold.Text(s) == s && !unicode.Is(unicode.M, r) &&
			norm.NFKC.PropertiesString(s).Decomposition() == nil && fold.Search(s) == s {
			continue // most characters
		}
		for _, s := range []string{string(r), "a" + string(r), string(r) + "\u0301"} {
			got := fold.Search(s)
			if folded := fold.Search(fold.Text(s)); folded != got || fold.Search(got) != got || plainly(s) != got {
				t.Errorf("%U: %q, %q, %q, %q", r, got, folded, fold.Search(got), plainly(s))
			}
		}
		if s := string(r); len(fold.Pattern(fold.Search(s))) > 11*len(s)+2 {
			t.Errorf("%U grows to %d bytes", r, len(fold.Search(s)))
		}
	}
}

func TestWords(t *testing.T) {
	for q, want := range map[string][]string{
		"":                       nil,
		" \t\u00a0\u3000\n":      nil,
		"Jo":                     {"jo"},
		"red  Crème\u3000brûlée": {"brulee", "creme", "red"},
		"a ab abc a":             {"abc"},
		`"Annual  Report" 2026`:  {"annual  report", "2026"},
		"\"a\nb\"":               {"a b"},
		`5" tv`:                  {`5"`, "tv"},
		`"open`:                  {`"open`},
		`say "hi"`:               {"say", "hi"},
		`"" "  "`:                {`""`},
		`x"a b"`:                 {`x"a`, `b"`},
		`"a"b c"`:                {`a"b c`},
		`50% a_b c\d`:            {"50%", "a_b", `c\d`},
	} {
		if got := fold.Words(q); !slices.Equal(got, want) {
			t.Errorf("%q: %q, not %q", q, got, want)
		}
	}
}

// TestWordsAreInTheirText: the words of a text are in its search text.
func TestWordsAreInTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.ReplaceAll(rapid.StringOf(rapid.RuneFrom(
			[]rune("aAeEoOsßéÉÅﬁİıΣςΆйЙøŁœが日हि\u00a0\u3000 \n-_%'"),
		)).Draw(t, "s"), `"`, "")
		for _, word := range fold.Words(s) {
			if !strings.Contains(fold.Search(s), word) || strings.ContainsAny(word, "\n") {
				t.Fatalf("%q of %q is not in %q", word, s, fold.Search(s))
			}
		}
	})
}

func TestPattern(t *testing.T) {
	for in, want := range map[string]string{
		"": "%%", "jo": "%jo%", "50%": `%50\%%`, "a_b": `%a\_b%`, `a\b`: `%a\\b%`, `\%_`: `%\\\%\_%`,
	} {
		is.New(t).Equal(fold.Pattern(in), want)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{"", "É", "E\u0301", "\xff\xfeA", "İ", "ᾳ\u0345", "ﷺ", `"a b" c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := fold.Search(s)
		if twice := fold.Search(once); twice != once {
			t.Errorf("%q is %q and then %q", s, once, twice)
		}
		for _, word := range fold.Words(s) {
			if word == "" || strings.Contains(word, "\n") {
				t.Errorf("%q has the word %q", s, word)
			}
		}
	})
}
