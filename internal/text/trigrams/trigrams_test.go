package trigrams_test

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/text/trigrams"
)

func TestQueryOf(t *testing.T) {
	is := is.New(t)
	is.Equal(trigrams.QueryOf("ab"), nil)
	is.Equal(trigrams.QueryOf("日本"), nil)
	is.Equal(trigrams.QueryOf("日本語x"), trigrams.Query{{{"日本語", "日本語x"}, {"本語x"}}})
	is.Equal(trigrams.QueryOf("aBABa").Grams(), []string{"aba", "abab", "bab", "baba"})
	is.Equal(trigrams.QueryOf("\U0010ffff\U0010ffff\U0010ffff"), trigrams.Query{{{"\U0010ffff\U0010ffff\U0010ffff"}}})
	long := trigrams.QueryOf("0123456789abcdefghijklmnopqrstuvwxyz")[0]
	is.Equal(len(long), 8)
	is.Equal(long[0][len(long[0])-1], "0123456789ab")
	is.Equal(long[7], []string{"xyz"})
	is.Equal(trigrams.QueryOf("ab", "cde", "f"), trigrams.Query{{{"cde"}}})
	some := trigrams.QueryOf(slices.Repeat([]string{"0123456"}, 20)...)
	is.Equal(len(some), 20)
	is.Equal(some[19], trigrams.Word{{"012", "0123", "012345"}, {"456"}}) // the first place and the last
}

// segment is the written form of some texts.
type segment struct {
	texts int
	n     map[string]int
	docs  map[string]string
}

func newSegment(t interface{ Fatal(...any) }, texts ...string) segment {
	var s trigrams.Segment
	for _, text := range texts {
		s.Add(text)
	}
	written := segment{len(texts), map[string]int{}, map[string]string{}}
	last := ""
	err := s.Each(func(gram string, n int, docs string) error {
		all, err := trigrams.Read(docs)
		if docs != "" && len(all) != n || gram <= last {
			t.Fatal(gram, n, all)
		}
		written.n[gram], written.docs[gram], last = n, docs, gram
		return err
	})
	if err != nil || s.Len() != len(texts) {
		t.Fatal(err, s.Len())
	}
	return written
}

// find returns the texts that may contain all words.
func (s segment) find(t interface{ Fatal(...any) }, words ...string) (all []int) {
	grams, ok := trigrams.QueryOf(words...).Lists(s.n, s.texts)
	if !ok {
		return nil
	}
	for i := range s.texts {
		all = append(all, i)
	}
	for _, gram := range grams {
		some, err := trigrams.Read(s.docs[gram])
		if err != nil || len(some) != s.n[gram] {
			t.Fatal(gram, err, "is not listed")
		}
		all = trigrams.Common(all, some)
	}
	return all
}

// TestFindsWhatContains: the texts that contain all words are found by them, even if most texts
// have their grams.
func TestFindsWhatContains(t *testing.T) {
	some := rapid.StringMatching(`[a-bA-C%_\\é日\n"']{0,16}`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(some, 1, 3).Draw(t, "words")
		texts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return some.Draw(t, "a") + some.Draw(t, "b")
		}), 1, 20).Draw(t, "texts")
		texts = slices.Concat(
			slices.Repeat(
				append(texts, "x"+strings.Join(words, " ")+"y"), rapid.SampledFrom([]int{1, 150, 300}).Draw(t, "times"),
			),
			texts,
		)
		found := newSegment(t, texts...).find(t, words...)
		for i, text := range texts {
			if _, ok := slices.BinarySearch(found, i); !ok && !slices.ContainsFunc(words, func(word string) bool {
				return !strings.Contains(strings.ToLower(text), strings.ToLower(word))
			}) {
				t.Fatalf("%q is not found by %q", text, words)
			}
		}
	})
}

// TestCommonTrigrams: a text in few texts is distinguished from many texts with all its trigrams.
func TestCommonTrigrams(t *testing.T) {
	is := is.New(t)
	words := []string{"alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett"}
	var texts []string
	for i := range 20_000 {
		texts = append(texts, words[i%10]+" "+words[i/10%10]+" "+words[i/100%10])
	}
	texts = append(texts, "echo echo delta echo one")
	s := newSegment(t, texts...)
	few := s.find(t, "echo echo delta echo")
	is.True(len(few) <= 32 && few[len(few)-1] == 20_000)
	is.Equal(len(s.find(t, "echo one")), 1)
	is.Equal(s.find(t, "charlie bravx"), nil)
	is.Equal(s.find(t, "echoalpha"), nil)
	is.Equal(len(s.find(t, "delta echo golf")), 20)
	both := s.find(t, "alpha bravo", "bravo charlie") // in 400 texts each, and both in 20
	is.Equal(len(both), 20)
	is.True(len(s.docs) < 5000) // still few
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
		if all := want[gram]; all != nil {
			is.Equal(n, len(all))
			if n > trigrams.MaxTexts/8 {
				all = nil // the list would be long
			}
			read, err := trigrams.Read(docs)
			is.NoErr(err)
			is.True(slices.Equal(read, all))
			delete(want, gram)
		}
		return nil
	}))
	is.Equal(len(want), 0)
	is.Equal(trigrams.Common([]int{1, 2, 5, 9}, []int{0, 2, 3, 9, 11}), []int{2, 9})

	var long trigrams.Segment
	for range 5 {
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

// TestRepeatedCharactersMemory: a gram can have a place for each character of all texts. The places
// are in memory at most twice.
func TestRepeatedCharactersMemory(t *testing.T) {
	var s trigrams.Segment
	for !s.Full() {
		s.Add(strings.Repeat("a", 15<<10))
	}
	defer debug.SetGCPercent(debug.SetGCPercent(10)) // so that garbage is not counted
	var most uint64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Each(func(string, int, string) error { return nil })
	}()
	for running := true; running; {
		select {
		case <-ended:
			running = false
		case <-time.After(5 * time.Millisecond):
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapAlloc)
	}
	if most > 96<<20 {
		t.Errorf("%d MiB", most>>20)
	}
}
