// Package trigrams finds texts by the trigrams, three characters in a row, that they have: whatever
// contains a text contains its trigrams. A Segment has lists of which of up to 262,144 texts have
// each, as compact text. A trigram that many of them have is told apart by what follows it: it has
// longer grams beside it, of 4, 6, 8 and 12 characters. So what few texts contain is found by short
// lists, also if all its trigrams are common.
//
// internal/sqldb/bunx reads such lists, internal/jobs/indexer writes them. What a Segment writes is
// kept in databases: a change of it needs a migration that has the indexes built again.
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
	// many is the most texts of a gram without longer ones beside it.
	many = 256
	// maxPlaces is how many places of a text a Query looks at.
	maxPlaces = 8
	// A list of fewTexts is so short that no others are read, and maxLists is how many are read at
	// most.
	fewTexts, maxLists = 32, 4
)

// lengths are the characters of a trigram and of the grams beside it that are longer.
var lengths = [...]int{gramRunes, 4, 6, 8, 12}

// listed reports whether a gram that n of some texts have is written with its list: there is
// nothing to gain from one that is long.
func listed(n, texts int) bool { return n <= max(many, texts/8) }

// hasLonger reports whether a gram of lengths[i] characters that n texts have has longer ones
// beside it.
func hasLonger(i, n int) bool { return n > many && i < len(lengths)-1 }

// lower returns a capital letter of ASCII as a small one, as in a LIKE of SQLite, and others as
// they are.
func lower(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

// Query is what a Segment is searched for: for some places in a text, the grams that begin there,
// from the trigram to the longest.
type Query [][]string

// QueryOf returns the Query of a text. One of fewer than three characters has no place.
func QueryOf(text string) (q Query) {
	runes := []rune(strings.Map(lower, text))
	places := len(runes) - gramRunes + 1
	for i := range min(places, maxPlaces) {
		if places > maxPlaces { // from the first to the last
			i = i * (places - 1) / (maxPlaces - 1)
		}
		var grams []string
		for _, n := range lengths {
			if i+n <= len(runes) {
				grams = append(grams, string(runes[i:i+n]))
			}
		}
		q = append(q, grams)
	}
	return q
}

// Grams returns all grams, each once.
func (q Query) Grams() []string {
	all := slices.Concat(q...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Lists returns grams such that all texts of a segment that contain the text of the Query are in
// each of their lists, the shortest list first; none: any text of the segment may contain it. ok is
// false if none does. n is how many texts of the segment have each gram, and texts how many it has.
func (q Query) Lists(n map[string]int, texts int) (grams []string, ok bool) {
	for _, place := range q {
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
			return nil, false // nothing has what follows it
		}
		if listed(n[gram], texts) {
			grams = append(grams, gram)
		}
	}
	slices.SortFunc(grams, func(a, b string) int { return cmp.Or(n[a]-n[b], strings.Compare(a, b)) })
	grams = slices.Compact(grams)
	if len(grams) > 0 && n[grams[0]] <= fewTexts {
		return grams[:1], true
	}
	return grams[:min(len(grams), maxLists)], true
}

// MaxTexts is the most texts of a Segment.
const MaxTexts = 1 << 18

// Segment collects texts. The zero Segment has none.
type Segment struct {
	text []byte
	ends []int32 // of each text
}

// maxBytes is how long the texts of a Segment may be together: it bounds the memory of whoever
// collects it.
const maxBytes = 4 << 20

// Full reports whether a Segment takes no more texts.
func (s *Segment) Full() bool { return len(s.ends) == MaxTexts || len(s.text) >= maxBytes }

// Len returns the number of texts.
func (s *Segment) Len() int { return len(s.ends) }

// Add adds a text, whose number is that of the texts before it.
func (s *Segment) Add(text string) {
	for _, r := range text {
		s.text = utf8.AppendRune(s.text, lower(r))
	}
	s.ends = append(s.ends, int32(len(s.text)))
}

// gram is one of a segment.
type gram struct {
	text string
	n    int    // texts that have it
	docs string // their list, "" if it is not listed
}

// place is where a gram ends in the texts of a segment.
type place int32

// in returns the number of the text that has a place, which is from or a later one.
func (s *Segment) in(p place, from int) int {
	if from >= 0 && int32(p) <= s.ends[from] {
		return from
	}
	i, _ := slices.BinarySearch(s.ends[from+1:], int32(p))
	return from + 1 + i
}

// Each calls f with each gram, in their order, until it returns an error: the number of texts that
// have it, and their list, "" for a long one.
func (s *Segment) Each(f func(gram string, n int, docs string) error) error {
	var grams []gram
	for text, places := range s.trigrams() {
		some := *places
		*places = nil // there may be one for each character
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
		starts := [gramRunes]int{} // of the last characters
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

// add appends a gram of lengths[i] characters with some places, and the longer ones beside it.
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

// following returns the n characters behind a place in a text, "" if it has fewer.
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

// list returns the list of the texts of some places, which are in their order.
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

// A list is the distances between the numbers of its texts, less one, each in characters of five
// bits, the low ones first; the sixth bit of a character is set if more follow.
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

// values are the bits of the characters, 0xff for others.
var values = func() (v [256]byte) {
	for i := range v {
		v[i] = 0xff
	}
	for i := range digits {
		v[digits[i]] = byte(i)
	}
	return v
}()

// errList is returned for what is no list.
var errList = errors.New("not a list of texts with a trigram")

// Read returns the numbers of the texts in a list, in their order.
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
