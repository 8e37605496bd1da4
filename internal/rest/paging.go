package rest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/paging"
)

// maxSearch is how many bytes q may have.
const maxSearch = 1000

// cursor is the position in a next or prev link, beside start and limit: where the page begins or
// ends, so that the database need not count rows up to there. It is valid only for the list that it
// was made for.
type cursor struct {
	List  string `json:"l"` // of the path and all parameters but start, limit and cursor
	Start int    `json:"s"`
	Value string `json:"v"`
	Key   string `json:"k"`

	Before bool `json:"b,omitempty"` // the page ends before the row, which Start rows precede; else it begins behind it
}

// ParseQuery reads the query parameters. Errors: errs.Invalid for escapes that are none.
func ParseQuery(r *http.Request) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "The query is not properly escaped.")
	}
	return query, nil
}

// Page reads start, limit, sort, q and cursor. Errors: errs.Invalid naming the parameter.
func (r *Request) Page(defaultLimit int) (paging.Query, error) {
	query, err := ParseQuery(r.Request)
	if err != nil {
		return paging.Query{}, err
	}
	q := paging.Query{Limit: defaultLimit, Sort: query.Get("sort"), Q: query.Get("q")}
	if len(q.Q) > maxSearch {
		return q, errs.New(errs.Invalid, "q must have at most %d bytes", maxSearch)
	}
	if query.Has("start") {
		if q.Start, err = strconv.Atoi(query.Get("start")); err != nil || q.Start < 0 {
			return q, errs.New(errs.Invalid, "start must be a whole number from 0 on")
		}
	}
	if query.Has("limit") {
		if q.Limit, err = strconv.Atoi(query.Get("limit")); err != nil || q.Limit < 0 || q.Limit > paging.MaxLimit {
			return q, errs.New(errs.Invalid, "limit must be a whole number from 0 to %d", paging.MaxLimit)
		}
		q.CountOnly = q.Limit == 0
	}
	if s := query.Get("cursor"); s != "" {
		err = readCursor(&q, s, listPath(r), query)
	}
	return q, err
}

// readCursor reads a cursor into the query of a page. Errors: errs.Invalid when it is none, or one
// of another list or page.
func readCursor(q *paging.Query, text, path string, query url.Values) error {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	var c cursor
	fits := err == nil && json.Unmarshal(raw, &c) == nil && c.List == listOf(path, query) &&
		escapes.Storable(c.Value) && escapes.Storable(c.Key)
	at := &paging.Position{Value: c.Value, Key: c.Key}
	switch {
	case fits && c.Before && c.Start > 0 && q.Start == startBefore(c.Start, q.Limit):
		q.Start, q.Before = c.Start, at
	case fits && !c.Before && q.Start == c.Start:
		q.After = at
	default:
		return errs.New(errs.Invalid, "cursor does not fit this list: follow the links next and prev, or leave it out")
	}
	return nil
}

// startBefore returns how many rows precede the page that ends before a row which start rows
// precede.
func startBefore(start, limit int) int { return max(0, start-limit) }

// NewCursor makes the cursor of the page that begins behind a position, with start rows before it,
// or, for a prev link, of the page that ends before a row at the position, which start rows
// precede.
func NewCursor(path string, query url.Values, start int, at *paging.Position, prev bool) string {
	raw, _ := json.Marshal(cursor{List: listOf(path, query), Start: start, Value: at.Value, Key: at.Key, Before: prev})
	return base64.RawURLEncoding.EncodeToString(raw)
}

// listPath returns the path of a request as hrefs have it, also when a natural id is spelled
// otherwise.
func listPath(r *Request) string { return strings.ReplaceAll(r.URL.EscapedPath(), ":", "%3A") }

// listOf names a list: its path and all that filters and orders it.
func listOf(path string, query url.Values) string {
	rest := url.Values{}
	for name, values := range query {
		if !slices.Contains([]string{"start", "limit", "cursor"}, name) {
			rest[name] = values
		}
	}
	sum := sha256.Sum256([]byte(path + "?" + rest.Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Collection encodes a page: self, prev and next links that keep all other parameters, and the rows
// under rel, which are made when they are written.
func Collection[T any](
	baseURL string, r *Request, q paging.Query, p paging.Page[T], rel string, extra map[string]any,
	row func(T) hal.Resource,
) hal.Resource {
	query, _ := ParseQuery(r.Request) // page has read it already
	path := listPath(r)
	at := func(start int, c string) string {
		to := url.Values{}
		for name, values := range query {
			to[name] = values
		}
		to.Set("start", strconv.Itoa(start))
		to.Set("limit", strconv.Itoa(q.Limit))
		if to.Del("cursor"); c != "" {
			to.Set("cursor", c)
		}
		return baseURL + path + "?" + to.Encode()
	}
	self := baseURL + path
	if len(query) > 0 {
		self += "?" + query.Encode()
	}
	links, start, count := hal.Self(self), q.Start, len(p.Rows)
	if q.Before != nil {
		start = p.Start
	}
	if start > 0 {
		before, c := startBefore(start, q.Limit), ""
		switch {
		case p.First != nil:
			c = NewCursor(path, query, start, p.First, true)
		case start >= p.Total && q.Limit > 0: // nothing is here: the last page is before it
			before = max(0, p.Total-1) / q.Limit * q.Limit
		}
		links.With("prev", at(before, c))
	}
	if p.More {
		next := ""
		if p.Last != nil {
			next = NewCursor(path, query, start+count, p.Last, false)
		}
		links.With("next", at(start+count, next))
	}
	res := hal.Collection[hal.Resource](links, hal.Page{Start: start, Count: count, Total: p.Total}, rel, nil, extra)
	res.Embedded[rel] = hal.Rows(func(yield func(hal.Resource) bool) {
		for _, v := range p.Rows {
			if !yield(row(v)) {
				return
			}
		}
	})
	return res
}
