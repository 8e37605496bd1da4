// Package trigrams finds texts by the trigrams, three characters in a row, that they have: whatever contains a text contains its trigrams. A Segment
// says which of up to 65,536 texts have each, in lists that are compact text.
//
// internal/bunx reads such lists, internal/indexer writes them.
package trigrams

import (
	"errors"
	"slices"
)

// Of returns the trigrams of a text, each once and sorted. Capitals of ASCII are small letters, as in a LIKE of SQLite. A text of fewer
// than three characters has none.
func Of(text string) []string {
	var all []string
	each(text, func(g gram) { all = append(all, g.String()) })
	slices.Sort(all)
	return slices.Compact(all)
}

// gram is a trigram: three runes of 21 bits.
type gram uint64

const runeBits, gramMask = 21, 1<<63 - 1

func (g gram) String() string {
	const mask = 1<<runeBits - 1
	return string([]rune{rune(g >> (2 * runeBits) & mask), rune(g >> runeBits & mask), rune(g & mask)})
}

// each calls f with the trigrams of a text in their order.
func each(text string, f func(gram)) {
	var g gram
	n := 0
	for _, r := range text {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		g = (g<<runeBits | gram(r)) & gramMask
		if n++; n >= 3 {
			f(g)
		}
	}
}

// MaxTexts is the most texts of a Segment.
const MaxTexts = 1 << 16

// Segment collects which texts have which trigrams. The zero Segment has no text.
type Segment struct {
	texts, bytes int
	lists        map[gram]*list
}

// list is what is written of the texts that have a trigram.
type list struct {
	n, last int
	docs    []byte
}

// maxBytes is how long the texts of a Segment may be together: it bounds the memory of whoever collects it.
const maxBytes = 8 << 20

// Full reports whether a Segment takes no more texts.
func (s *Segment) Full() bool { return s.texts == MaxTexts || s.bytes >= maxBytes }

// Len returns the number of texts.
func (s *Segment) Len() int { return s.texts }

// Add adds a text, whose number is that of the texts before it.
func (s *Segment) Add(text string) {
	if s.lists == nil {
		s.lists = map[gram]*list{}
	}
	each(text, func(g gram) {
		l := s.lists[g]
		if l == nil {
			l = &list{last: -1}
			s.lists[g] = l
		}
		if l.last < s.texts {
			l.docs = appendNumber(l.docs, s.texts-l.last-1)
			l.n, l.last = l.n+1, s.texts
		}
	})
	s.texts++
	s.bytes += len(text)
}

// Each calls f with each trigram, in their order, until it returns an error: the number of texts that have it, and their list.
func (s *Segment) Each(f func(gram string, n int, docs string) error) error {
	grams := make([]string, 0, len(s.lists))
	lists := make(map[string]*list, len(s.lists))
	for g, l := range s.lists {
		text := g.String()
		grams = append(grams, text)
		lists[text] = l
	}
	slices.Sort(grams)
	for _, g := range grams {
		if err := f(g, lists[g].n, string(lists[g].docs)); err != nil {
			return err
		}
	}
	return nil
}

// A list is the distances between the numbers of its texts, less one, each in characters of five bits, the low ones first; the sixth bit of a
// character is set if more follow.
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
