package bunx

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// List describes how the rows of a table are paged.
type List[R any] struct {
	Table  *Table[R]
	Join   string // what follows the table in FROM, such as " JOIN …", or ""
	Key    string // column that is unique in the tenant; it breaks ties
	Order  string // the default order, as in paging.Query.Sort
	Sorts  []Sort[R]
	Search string // column with fold.Search of the texts that q searches; "": the list does not support q
}

// Sort is one way to order a list.
type Sort[R any] struct {
	Field  string         // the name in the API
	Column string         // NOT NULL; a column whose name ends in _at holds a Time
	Value  func(R) string // the row's value in the column, as an argument
}

// Part is the part of a list that is paged.
type Part struct {
	Where string // condition with the alias of the Table; the arguments begin with the tenant
	Args  []any
	// Total is an expression for the number of rows, such as one of Total. Its arguments are the
	// first of Args. "": the rows are counted.
	Total string
	// What names the entity in the errs.NotFound that Page returns if Total is NULL.
	What string
	// Index is the index by which a page with q finds its rows; nil: it compares all rows.
	Index *Index
}

// And returns a Part with an additional condition, whose rows are counted. @ stands for the next
// argument.
func (p Part) And(condition string, args ...any) Part {
	p.Args, p.Total = slices.Clip(p.Args), ""
	p.Where += " AND " + p.bind(condition, args...)
	return p
}

// bind returns text with each @ replaced by a placeholder for the next argument.
func (p *Part) bind(text string, args ...any) string {
	for _, a := range args {
		p.Args = append(p.Args, a)
		text = strings.Replace(text, "@", "$"+strconv.Itoa(len(p.Args)), 1)
	}
	return text
}

// Page reads one page. The page ends before q.Limit if its rows exceed paging.MaxBytes. key returns
// a row's value in List.Key. Page runs one statement of fixed text, which costs the same for a list
// of any length. It runs another one for the total if the page is empty but the list may not be, or
// if the part has no Total.
func Page[R any](
	ctx context.Context, c Conn, l List[R], part Part, key func(R) string, q paging.Query,
) (page paging.Page[R], err error) {
	r, q, err := l.Range(q)
	if err != nil {
		return page, err
	}
	from := " FROM " + l.Table.Name + " AS " + l.Table.alias + l.Join + " WHERE " + part.Where
	if q.Q != "" {
		if from, part, err = l.search(ctx, c, part, q); err != nil {
			return page, err
		}
	}
	if part.Total == "" {
		err := c.Row(ctx, "SELECT count(*)"+from, part.Args...).Scan(&page.Total)
		if err != nil || q.Limit == 0 || r.After == nil && q.Start >= page.Total {
			return page, Err(err, "Page")
		}
		found, err := c.Rows(ctx, part.rows(c, l, from, "", r, q), part.Args...)
		return page, l.Fill(ctx, found, err, key, q, &page)
	}
	args := part.Args
	if q.Limit > 0 {
		found, err := c.Rows(ctx, part.rows(c, l, from, ", "+part.Total+" AS total", r, q), part.Args...)
		err = l.Fill(ctx, found, err, key, q, &page, &page.Total)
		if empty := part.What == "" && r.After == nil && q.Start == 0; err != nil || empty || len(page.Rows) > 0 {
			return page, err
		}
	}
	var total *int
	err = c.Row(ctx, "SELECT "+part.Total+" AS total", args[:arguments(part.Total)]...).Scan(&total)
	switch {
	case err != nil:
		return page, Err(err, "Page")
	case total == nil:
		return page, errs.New(errs.NotFound, "%s not found.", part.What)
	}
	page.Total = *total
	return page, nil
}

// rows adds the arguments of a page to those of its part, and returns the statement.
func (p *Part) rows(
	c Conn, l interface{ columns() (all, key string) }, from, total string, r Range, q paging.Query,
) string {
	all, key := l.columns()
	query := "SELECT " + all + total + from
	if r.After != nil {
		query += p.bind(" AND ("+r.Column+", "+key+") "+r.Past+" (@, @)", r.After.Value, r.After.Key)
	}
	limit := p.bind("@", q.Limit+1) // one more row shows whether more rows follow
	if c.Postgres() && slices.Contains(usual, q.Limit) {
		p.Args, limit = p.Args[:len(p.Args)-1], strconv.Itoa(q.Limit+1)
	}
	if r.After == nil && q.Start > 0 && p.Total != "" { // skip no rows beyond the end
		if c.Postgres() {
			query += p.bind(" AND @ < "+p.Total, q.Start)
		} else { // which would compare each row
			limit = p.bind("CASE WHEN @ < "+p.Total+" THEN "+limit+" ELSE 0 END", q.Start)
		}
	}
	query += " ORDER BY " + r.Column + " " + r.Dir + ", " + key + " " + r.Dir + " LIMIT " + limit
	if r.After == nil && q.Start > 0 {
		query += p.bind(" OFFSET @", q.Start)
	}
	return query
}

// usual are the limits that are part of a statement's text. PostgreSQL plans a statement with an
// argument as LIMIT each time.
var usual = []int{1, 10, 20, 25, 50, 100, 200, 250, 500, paging.MaxLimit}

// arguments returns the number of arguments in a text.
func arguments(text string) (n int) {
	for _, after := range strings.Split(text, "$")[1:] {
		digits := len(after) - len(strings.TrimLeft(after, "0123456789"))
		if i, err := strconv.Atoi(after[:digits]); err == nil {
			n = max(n, i)
		}
	}
	return n
}

func (l List[R]) columns() (all, key string) { return l.Table.Qualified, l.Key }

// Fill fills a page with the rows of a statement that Range describes, and closes them. The columns
// are those of the Table; last are the destinations of the columns after them.
func (l List[R]) Fill(
	ctx context.Context, rows *sql.Rows, err error, key func(R) string, q paging.Query, page *paging.Page[R],
	last ...any,
) error {
	if err != nil {
		return Err(err, "Page")
	}
	page.Rows, page.More, err = l.Table.bounded(rows, paging.NewMeter(ctx), last...)
	if err != nil {
		return Err(err, "Page")
	}
	if q.Before != nil {
		restoreOrder(page, q)
	}
	return l.Cut(page, q.Limit, key, q)
}

// restoreOrder puts the rows of a page with q.Before into the list's order. They were read
// backwards, with one more row than the page has.
func restoreOrder[R any](page *paging.Page[R], q paging.Query) {
	if len(page.Rows) > q.Limit {
		page.Rows, page.More = page.Rows[:q.Limit], true
	}
	if page.More { // rows precede the page
		page.Start = max(1, q.Start-len(page.Rows))
	}
	slices.Reverse(page.Rows)
	page.More = true // at least the row of q.Before
}

// Cut ends a page of the query q with its n-th row.
func (l List[R]) Cut(page *paging.Page[R], n int, key func(R) string, q paging.Query) error {
	sort, _, err := l.sort(q)
	if err == nil {
		l.cut(page, n, sort, key)
	}
	return err
}

func (l List[R]) cut(page *paging.Page[R], n int, sort Sort[R], key func(R) string) {
	if len(page.Rows) > n {
		page.Rows, page.More = page.Rows[:n], true
	}
	if page.First, page.Last = nil, nil; len(page.Rows) > 0 {
		first, last := page.Rows[0], page.Rows[len(page.Rows)-1]
		page.First = &paging.Position{Value: sort.Value(first), Key: key(first)}
		page.Last = &paging.Position{Value: sort.Value(last), Key: key(last)}
	}
}

// Bounds of q. SQLite refuses a LIKE pattern of 50,000 bytes, and folding can make a text eleven
// times as long.
const (
	maxQ     = 4_000 // bytes
	maxWords = 20
)

// check returns an error for an unknown order, and for values that cannot be part of a statement.
func (l List[R]) check(q paging.Query) error {
	if _, _, err := l.sort(q); err != nil {
		return err
	}
	switch {
	case q.Q != "" && l.Search == "":
		return errs.New(errs.Invalid, "q is not known: this list cannot be searched")
	case len(q.Q) > maxQ:
		return errs.New(errs.Invalid, "q must have at most %d bytes", maxQ)
	case !isText(q.Q):
		return errs.New(errs.Invalid, "q must be text")
	case len(fold.Words(q.Q)) > maxWords:
		return errs.New(
			errs.Invalid, "q must have at most %d words; words in double quotes count as one", maxWords,
		)
	case !fits(q.After) || !fits(q.Before):
		return errs.New(errs.Invalid, "cursor does not fit this list")
	}
	return nil
}

// fits reports whether a position, which may be nil, can be an argument of a statement.
func fits(p *paging.Position) bool { return p == nil || isText(p.Value) && isText(p.Key) }

// isText reports whether a database can hold s: PostgreSQL refuses NUL and invalid UTF-8.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func (l List[R]) sort(q paging.Query) (Sort[R], bool, error) {
	fields := make([]string, len(l.Sorts))
	for i, s := range l.Sorts {
		fields[i] = s.Field
	}
	field, desc, err := q.Order(l.Order, fields...)
	if err != nil {
		return Sort[R]{}, false, err
	}
	for _, s := range l.Sorts {
		if s.Field == field {
			return s, desc, nil
		}
	}
	return Sort[R]{}, false, errs.New(errs.Invalid, "sort is not known")
}

// Range defines where the rows of a page begin and in which direction they are read.
type Range struct {
	Column string           // the rows are ordered by it, then by List.Key
	Dir    string           // ASC or DESC, of both columns
	Past   string           // > or <: how the rows compare with After
	After  *paging.Position // the rows begin after it; nil: with the row Query.Start
}

// Range returns how a statement of fixed text reads the page of a query: the rows of the Range, one
// more than q.Limit, for Fill. It also returns the query with its defaults. It refuses the queries
// that Page refuses.
func (l List[R]) Range(q paging.Query) (Range, paging.Query, error) {
	q, err := q.Checked()
	if err == nil {
		err = l.check(q)
	}
	if err != nil {
		return Range{}, q, err
	}
	r, err := l.bounds(q)
	return r, q, err
}

// bounds returns the Range of a page: after the position of q.After, or backwards before q.Before,
// if the query has one.
func (l List[R]) bounds(q paging.Query) (Range, error) {
	s, desc, err := l.sort(q)
	if err != nil {
		return Range{}, err
	}
	r := Range{Column: s.Column, Dir: "ASC", Past: ">", After: q.After}
	if q.Before != nil {
		r.After = q.Before
	}
	if desc != (q.Before != nil) {
		r.Dir, r.Past = "DESC", "<"
	}
	if r.After != nil && strings.HasSuffix(s.Column, "_at") {
		if at, err := time.Parse(timeText, r.After.Value); err != nil || at.Year() < 1 { // PostgreSQL has years from 1
			return Range{}, errs.New(errs.Invalid, "cursor does not fit this list")
		}
	}
	return r, nil
}
