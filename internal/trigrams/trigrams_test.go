package trigrams_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/trigrams"
)

func TestOf(t *testing.T) {
	is := is.New(t)
	is.Equal(trigrams.Of("ab"), nil)
	is.Equal(trigrams.Of("日本"), nil)
	is.Equal(trigrams.Of("日本語x"), []string{"日本語", "本語x"})
	is.Equal(trigrams.Of("aBABa"), []string{"aba", "bab"})
	is.Equal(trigrams.Of("\U0010ffff\U0010ffff\U0010ffff"), []string{"\U0010ffff\U0010ffff\U0010ffff"})
}

// segment returns the lists of a segment of texts.
func segment(t interface{ Fatal(...any) }, texts ...string) map[string][]int {
	var s trigrams.Segment
	for _, text := range texts {
		s.Add(text)
	}
	lists := map[string][]int{}
	last := ""
	err := s.Each(func(gram string, n int, docs string) error {
		all, err := trigrams.Read(docs)
		if len(all) != n || gram <= last {
			t.Fatal(gram, n, all)
		}
		lists[gram], last = all, gram
		return err
	})
	if err != nil || s.Len() != len(texts) {
		t.Fatal(err, s.Len())
	}
	return lists
}

// TestContained: a text that is part of another one has no trigram that the other has not.
func TestContained(t *testing.T) {
	some := rapid.StringMatching(`[a-cA-C%_\\é日\n"']{0,12}`)
	rapid.Check(t, func(t *rapid.T) {
		q, texts := some.Draw(t, "q"), rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return some.Draw(t, "a") + some.Draw(t, "b") }), 1, 20).Draw(t, "texts")
		texts = append(texts, "x"+q+"y")
		lists := segment(t, texts...)
		for i, text := range texts {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(q)) {
				continue
			}
			for _, g := range trigrams.Of(q) {
				if !slices.Contains(lists[g], i) {
					t.Fatalf("%q has %q, but not its trigram %q", text, q, g)
				}
			}
		}
	})
}

func TestSegment(t *testing.T) {
	is := is.New(t)
	var s trigrams.Segment
	want := map[string][]int{}
	for i := 0; !s.Full(); i++ {
		text := "aa"
		for _, every := range []struct {
			n    int
			text string
		}{{1, "one"}, {7, "|seven"}, {1000, "|thousand"}, {40_000, "|end"}} {
			if i%every.n == 0 {
				text += every.text
				want[every.text[:3]] = append(want[every.text[:3]], i)
			}
		}
		s.Add(text)
	}
	is.Equal(s.Len(), trigrams.MaxTexts)
	is.NoErr(s.Each(func(gram string, n int, docs string) error {
		if want[gram] != nil {
			all, err := trigrams.Read(docs)
			is.NoErr(err)
			is.Equal(all, want[gram])
			is.Equal(n, len(all))
			delete(want, gram)
		}
		return nil
	}))
	is.Equal(len(want), 0)
	is.Equal(trigrams.Common([]int{1, 2, 5, 9}, []int{0, 2, 3, 9, 11}), []int{2, 9})

	var long trigrams.Segment
	for range 9 {
		is.True(!long.Full())
		long.Add(strings.Repeat("x", 1_000_000))
	}
	is.True(long.Full())
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"", "A", "AAA", "gB", "g", "_____", "!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		all, err := trigrams.Read(s)
		if err == nil && (!slices.IsSorted(all) || len(all) > len(s)) {
			t.Errorf("%q: %v", s, all)
		}
	})
}
