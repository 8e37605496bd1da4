package entity

import (
	"fmt"
	"slices"
)

// Count is a number of something.
type Count struct {
	N  int
	Of string // a noun, which gets an s for other numbers than 1
}

// String returns "1 user" or "3 users".
func (c Count) String() string {
	if c.N == 1 {
		return "1 " + c.Of
	}
	return fmt.Sprintf("%d %ss", c.N, c.Of)
}

// Warnings sums counts over all batches of an import, so that there is one warning in place of one
// for each row. The zero Warnings is empty.
type Warnings struct{ sums []sum }

type sum struct {
	sentence string
	counts   []Count
}

// Add adds counts to those of a sentence, which has a %s for each. The same sentence with other
// nouns is counted separately.
func (t *Warnings) Add(sentence string, counts ...Count) {
	at := slices.IndexFunc(t.sums, func(s sum) bool {
		return s.sentence == sentence && slices.EqualFunc(s.counts, counts, func(a, b Count) bool {
			return a.Of == b.Of
		})
	})
	if at < 0 {
		t.sums = append(t.sums, sum{sentence, slices.Clone(counts)})
		return
	}
	for i, c := range counts {
		t.sums[at].counts[i].N += c.N
	}
}

// Warnings returns the sentences with their sums, in the order in which they were first added.
func (t *Warnings) Warnings() []string {
	var all []string
	for _, s := range t.sums {
		words := make([]any, len(s.counts))
		for i, c := range s.counts {
			words[i] = c
		}
		all = append(all, fmt.Sprintf(s.sentence, words...))
	}
	return all
}
