// Package paging defines queries for pages of lists, and the pages: by offset or, at the same cost at any depth, by the position
// of the row before.
//
// Nouns, their stores and httpapi import it.
package paging

import (
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// MaxLimit is the most rows a page may have.
const MaxLimit = 1000

// Query selects one page of a list.
type Query struct {
	Start int       // rows before the page, ≥ 0
	Limit int       // most rows of the page, 0 to MaxLimit; it ends earlier when they pass MaxBytes
	Sort  string    // "field" or "-field"; "" is the list's own order
	Q     string    // case-insensitive substring filter; "" is none
	After *Position // the row before the page; nil for a page that Start alone finds
	// Before is the row behind the page, which has the Limit rows before it, and Start is how many rows are before that row.
	// Without After.
	Before *Position
}

// Position is the place of a row in its list's order: the value it is sorted by, and its key, which breaks ties.
type Position struct {
	Value string
	Key   string
}

// Page is one page of a list.
type Page[T any] struct {
	Rows  []T
	Total int       // exact number of rows that fit the query on all pages
	More  bool      // rows follow; also when so many were deleted meanwhile that Total says otherwise
	First *Position // of the first row; nil on an empty page
	Last  *Position // of the last row; nil on an empty page
	Start int       // rows before a page with Query.Before; 0 for other pages
}

// Order splits Sort into its field and direction; def is used when Sort is empty. Errors: errs.Invalid when the field
// is not one of fields.
func (q Query) Order(def string, fields ...string) (field string, desc bool, err error) {
	sort := q.Sort
	if sort == "" {
		sort = def
	}
	field, desc = strings.CutPrefix(sort, "-")
	if !desc {
		field = sort
	}
	for _, f := range fields {
		if f == field {
			return field, desc, nil
		}
	}
	return "", false, errs.New(errs.Invalid, "sort must be one of %s, with a - before it for the other direction", strings.Join(fields, ", "))
}

// Each calls fn with every row from q on, page after page.
func Each[T any](q Query, page func(Query) (Page[T], error), fn func(T)) error {
	for {
		p, err := page(q)
		if err != nil {
			return err
		}
		for _, r := range p.Rows {
			fn(r)
		}
		if !p.More {
			return nil
		}
		q.Start, q.After = q.Start+len(p.Rows), p.Last
	}
}

// Map returns the same page of other rows.
func Map[A, B any](p Page[A], f func(A) B) Page[B] {
	out := Page[B]{Rows: make([]B, len(p.Rows)), Total: p.Total, More: p.More, First: p.First, Last: p.Last, Start: p.Start}
	for i, r := range p.Rows {
		out.Rows[i] = f(r)
	}
	return out
}
