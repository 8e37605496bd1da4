// Package trigrams finds texts by their trigrams, which are three consecutive characters: a text
// that contains a word contains its trigrams. A Segment has lists of up to 262,144 texts by
// trigram, as compact text. A trigram in many texts is distinguished by what follows it: the
// Segment also has its longer grams, of 4, 6, 8 and 12 characters. So short lists are enough to
// find a text that few texts contain, even if all its trigrams are common.
//
// internal/sqldb/bunx reads such lists; internal/jobs/indexer writes them. The lists are stored in
// databases. A change of their format needs a migration that rebuilds the indexes.
package trigrams

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	gramRunes = 3 // of a trigram
	// many is the most texts of a gram without longer grams.
	many = 256
	// maxPlaces is the number of places of a word that a Query uses, divided among several words.
	// minPlaces is what each word has at least.
	maxPlaces, minPlaces = 8, 2
	// A list of fewTexts is so short that no others are read. maxLists is the most lists that are
	// read.
	fewTexts, maxLists = 32, 4
)

// lengths are the numbers of characters of a trigram and of its longer grams.
var lengths = [...]int{gramRunes, 4, 6, 8, 12}

// listed reports whether the list of a gram in n of some texts is written. A long list is not
// useful.
func listed(n, texts int) bool { return n <= max(many, texts/8) }

// hasLonger reports whether a gram of lengths[i] characters in n texts has longer grams.
func hasLonger(i, n int) bool { return n > many && i < len(lengths)-1 }

// lower returns the small letter for a capital letter of ASCII, as LIKE of SQLite does, and other
// characters unchanged.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// Query is a search in a Segment for the texts that contain all of some words.
type Query []Word

// Word is a text to search: for some places in it, the grams that begin there, from the trigram to
// the longest.
type Word [][]string

// QueryOf returns the Query for some words. Words of fewer than three characters are left out.
func QueryOf(words ...string) (q Query) {
	for _, word := range words {
		if w := wordOf(word, max(minPlaces, maxPlaces/len(words))); len(w) > 0 {
			q = append(q, w)
		}
	}
	return q
}

// wordOf returns the Word for a text, with up to most places.
func wordOf(text string, most int) (w Word) {
	runes := []rune(strings.Map(lower, text))
	places := len(runes) - gramRunes + 1
	for i := range min(places, most) {
		if places > most { // distributed from the first to the last
			i = i * (places - 1) / (most - 1)
		}
		var grams []string
		for _, n := range lengths {
			if i+n <= len(runes) {
				grams = append(grams, string(runes[i:i+n]))
			}
		}
		w = append(w, grams)
	}
	return w
}

// Grams returns all grams, each once.
func (q Query) Grams() []string {
	all := slices.Concat(slices.Concat(q...)...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Lists returns grams with which the texts of a segment are found: every text that contains the
// words of the Query is in the lists of all these grams. The shortest list of each word precedes
// others of the same word. Without grams, any text of the segment may contain the words. ok is
// false if no text does. n is the number of texts of the segment by gram, and texts the number of
// all its texts.
func (q Query) Lists(n map[string]int, texts int) (grams []string, ok bool) {
	shortest := func(a, b string) int { return cmp.Or(n[a]-n[b], strings.Compare(a, b)) }
	var others []string
	for _, w := range q {
		some, ok := w.lists(n, texts)
		if !ok {
			return nil, false
		}
		slices.SortFunc(some, shortest)
		if len(some) > 0 {
			grams, others = append(grams, some[0]), append(others, some[1:]...)
		}
	}
	slices.SortFunc(grams, shortest)
	grams = slices.Compact(grams)
	if len(grams) > 0 && n[grams[0]] <= fewTexts {
		return grams[:1], true
	}
	slices.SortFunc(others, shortest)
	for _, gram := range others {
		if len(grams) < maxLists && !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams[:min(len(grams), maxLists)], true
}

// lists returns the grams of a word that have a list. ok is false if no text contains the word.
func (w Word) lists(n map[string]int, texts int) (grams []string, ok bool) {
	for _, place := range w {
		longest := -1
		for i, gram := range place {
			if n[gram] > 0 {
				longest = i
			}
		}
		if longest < 0 {
			return nil, false
		}
		gram := place[longest]
		if longest < len(place)-1 && hasLonger(longest, n[gram]) {
			return nil, false // no text has a longer gram
		}
		if listed(n[gram], texts) {
			grams = append(grams, gram)
		}
	}
	return grams, true
}

// MaxTexts is the most texts of a Segment.
const MaxTexts = 1 << 18

// Segment collects texts. The zero Segment is empty.
type Segment struct {
	text []byte
	ends []int32 // of each text
}

// maxBytes is the most bytes of the texts of a Segment, which limits the memory for collecting it.
const maxBytes = 4 << 20

// Full reports whether a Segment is full.
func (s *Segment) Full() bool { return len(s.ends) == MaxTexts || len(s.text) >= maxBytes }

// Len returns the number of texts.
func (s *Segment) Len() int { return len(s.ends) }

// Add adds a text. Its number is the number of texts before it.
func (s *Segment) Add(text string) {
	for _, r := range text {
		s.text = utf8.AppendRune(s.text, lower(r))
	}
	s.ends = append(s.ends, int32(len(s.text)))
}

// gram is a gram of a segment.
type gram struct {
	text string
	n    int    // number of texts that contain it
	docs string // their list, "" if it is not listed
}

// place is the offset in the texts of a segment at which a gram ends.
type place int32

// in returns the number of the text at a place, which must be from or a later text.
func (s *Segment) in(p place, from int) int {
	if from >= 0 && int32(p) <= s.ends[from] {
		return from
	}
	i, _ := slices.BinarySearch(s.ends[from+1:], int32(p))
	return from + 1 + i
}

// Each calls f with each gram in order, until f returns an error: with the number of texts that
// contain it, and their list, "" for a long list.
func (s *Segment) Each(f func(gram string, n int, docs string) error) error {
	var grams []gram
	for text, places := range s.trigrams() {
		some := *places
		*places = nil // free memory: there may be a place for each character
		grams = s.add(grams, text, 0, some)
	}
	slices.SortFunc(grams, func(a, b gram) int { return strings.Compare(a.text, b.text) })
	for _, g := range grams {
		if err := f(g.text, g.n, g.docs); err != nil {
			return err
		}
	}
	return nil
}

// trigrams returns the places of all trigrams.
func (s *Segment) trigrams() map[string]*[]place {
	all := map[string]*[]place{}
	from := 0
	for _, end := range s.ends {
		to := int(end)
		starts := [gramRunes]int{} // offsets of the last characters
		for at, n := from, 0; at < to; n++ {
			_, size := utf8.DecodeRune(s.text[at:to])
			starts[n%gramRunes] = at
			at += size
			if n < gramRunes-1 {
				continue
			}
			gram := s.text[starts[(n+1)%gramRunes]:at]
			places := all[string(gram)]
			if places == nil {
				places = new([]place)
				all[string(gram)] = places
			}
			*places = append(*places, place(at))
		}
		from = to
	}
	return all
}

// add appends a gram of lengths[i] characters with some places, and its longer grams.
func (s *Segment) add(to []gram, text string, i int, places []place) []gram {
	g := gram{text: text}
	last := -1
	for _, p := range places {
		if in := s.in(p, last); in != last {
			g.n, last = g.n+1, in
		}
	}
	if listed(g.n, s.Len()) {
		g.docs = s.list(places)
	}
	to = append(to, g)
	if !hasLonger(i, g.n) {
		return to
	}
	longer := map[string][]place{}
	last = -1
	for _, p := range places {
		last = s.in(p, last)
		if more := s.following(p, last, lengths[i+1]-lengths[i]); more != "" {
			longer[more] = append(longer[more], p+place(len(more)))
		}
	}
	for more, some := range longer {
		delete(longer, more)
		to = s.add(to, text+more, i+1, some)
	}
	return to
}

// following returns the n characters after a place in a text, or "" near the end.
func (s *Segment) following(p place, text, n int) string {
	end := int(p)
	for ; n > 0; n-- {
		if end == int(s.ends[text]) {
			return ""
		}
		_, size := utf8.DecodeRune(s.text[end:])
		end += size
	}
	return string(s.text[p:end])
}

// list returns the list of the texts at some places, which must be ordered.
func (s *Segment) list(places []place) string {
	var docs []byte
	last := -1
	for _, p := range places {
		if text := s.in(p, last); text != last {
			docs = appendNumber(docs, text-last-1)
			last = text
		}
	}
	return string(docs)
}

// A list contains the differences between the numbers of its texts, less one, each in characters of
// five bits, the low ones first. The sixth bit of a character is set if more follow.
const (
	digits   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	fiveBits = 1<<5 - 1
	more     = 1 << 5
)

func appendNumber(to []byte, n int) []byte {
	for n > fiveBits {
		to = append(to, digits[n&fiveBits|more])
		n >>= 5
	}
	return append(to, digits[n])
}

// values are the bits of the characters, and 0xff for others.
var values = func() (v [256]byte) {
	for i := range v {
		v[i] = 0xff
	}
	for i := range digits {
		v[digits[i]] = byte(i)
	}
	return v
}()

// errList is the error for an invalid list.
var errList = errors.New("not a list of texts with a trigram")

// Read returns the numbers of the texts in a list, in order.
func Read(docs string) (all []int, err error) {
	at, n, shift := -1, 0, 0
	for i := range len(docs) {
		v := values[docs[i]]
		if v == 0xff || shift > 15 {
			return nil, errList
		}
		n |= int(v&fiveBits) << shift
		if v&more != 0 {
			shift += 5
			continue
		}
		if at += n + 1; at >= MaxTexts {
			return nil, errList
		}
		all = append(all, at)
		n, shift = 0, 0
	}
	if shift > 0 {
		return nil, errList
	}
	return all, nil
}

// Common returns the numbers that are in two sorted slices.
func Common(a, b []int) []int {
	var both []int
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			both = append(both, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return both
}
