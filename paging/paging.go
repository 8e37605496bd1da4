// Package paging defines queries for pages of lists, and the pages. A page is found by its offset,
// or by the position of the row before it, which costs the same at any depth.
//
// Nouns, their stores and httpapi import it.
package paging

import (
	"iter"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// The number of rows of a page.
const (
	MaxLimit     = 1000 // at most
	DefaultLimit = 100  // of a Query without a Limit
)

// Query selects one page of a list. The zero value is the first page of the list's own order.
type Query struct {
	Start int    // rows before the page, ≥ 0
	Limit int    // most rows of the page, up to MaxLimit; 0: DefaultLimit. A page with MaxBytes ends earlier
	Sort  string // "field" or "-field"; "" is the list's own order
	// Q selects the rows that contain all its words, in any order, ignoring case and accents. Words
	// in double quotes are one. "" and white space select all rows.
	Q     string
	After *Position // the row before the page; nil: the page is found by Start
	// Before is the row after the page. The page has the Limit rows before it, and Page.Start tells
	// how many rows precede them. A query cannot have both After and Before.
	Before *Position
	// CountOnly requests only Page.Total: the page has no rows, whatever Limit is.
	CountOnly bool
}

// Checked returns the query with its defaults. Every Store that reads a page calls it first.
// Errors: errs.Invalid naming the field for a negative Start, a Limit out of range, and a query
// with both After and Before.
func (q Query) Checked() (Query, error) {
	switch {
	case q.Start < 0:
		return q, errs.New(errs.Invalid, "start must be a whole number from 0 on, not %d", q.Start)
	case q.Limit < 0 || q.Limit > MaxLimit:
		return q, errs.New(errs.Invalid, "limit must be a whole number from 0 to %d, not %d", MaxLimit, q.Limit)
	case q.After != nil && q.Before != nil:
		return q, errs.New(errs.Invalid, "after and before exclude each other: a page is after a row or before one")
	case q.CountOnly:
		q.Limit = 0
	case q.Limit == 0:
		q.Limit = DefaultLimit
	}
	if strings.TrimSpace(q.Q) == "" {
		q.Q = ""
	}
	return q, nil
}

// Position is the place of a row in its list's order: the value it is sorted by, and its key, which
// breaks ties.
type Position struct {
	Value string
	Key   string
}

// Page is one page of a list.
type Page[T any] struct {
	Rows  []T
	Total int       // exact number of rows that fit the query on all pages
	More  bool      // more rows follow; it holds even if rows that Total counts were deleted since
	First *Position // of the first row; nil on an empty page
	Last  *Position // of the last row; nil on an empty page
	Start int       // rows before a page with Query.Before; 0 for other pages
}

// Order splits Sort into its field and direction; def is used when Sort is empty. It returns
// errs.Invalid if the field is not one of fields.
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
	return "", false, errs.New(
		errs.Invalid, "sort must be one of %s, with a - before it for the other direction",
		strings.Join(fields, ", "),
	)
}

// All returns an iterator over the rows from q on. It reads page after page; an error ends it.
func All[T any](q Query, page func(Query) (Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for at := q; ; {
			p, err := page(at)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, r := range p.Rows {
				if !yield(r, nil) {
					return
				}
			}
			if !p.More {
				return
			}
			at.Start, at.After = at.Start+len(p.Rows), p.Last
		}
	}
}

// Load returns an iterator over the rows that load returns, which is called when the iteration
// begins. An error of load ends it.
func Load[T any](load func() ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		rows, err := load()
		if err != nil {
			yield(*new(T), err)
			return
		}
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Collect returns the rows of an iterator, or its first error.
func Collect[T any](all iter.Seq2[T, error]) (rows []T, err error) {
	for r, err := range all {
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// Map returns the page with each row converted by f.
func Map[A, B any](p Page[A], f func(A) B) Page[B] {
	out := Page[B]{
		Rows:  make([]B, len(p.Rows)),
		Total: p.Total,
		More:  p.More,
		First: p.First,
		Last:  p.Last,
		Start: p.Start,
	}
	for i, r := range p.Rows {
		out.Rows[i] = f(r)
	}
	return out
}
