package bunx

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/fold"
	"github.com/tenantcontent/tenantcontent/paging"
)

// List describes how the rows of a table are paged.
type List[R any] struct {
	Table  *Table[R]
	Key    string // column that is unique in the tenant; it breaks ties
	Order  string // the list's own order, as in paging.Query.Sort
	Sorts  []Sort[R]
	Search string // column with fold.Search of what q searches; "" for a list without q
}

// Sort is one way to order a list.
type Sort[R any] struct {
	Field  string         // as the API names it
	Column string         // NOT NULL; one that ends in _at holds a Time
	Value  func(R) string // the row's value in the column, as an argument
}

// Page reads one page, which ends before q.Limit when its rows pass paging.MaxBytes. rows is a SELECT of the Table's Rows with
// all predicates of the list, the tenant's first; key returns a row's value in List.Key. It is two statements: the count, from an
// index, and the rows.
func Page[R any](ctx context.Context, rows *bun.SelectQuery, l List[R], key func(R) string, q paging.Query) (paging.Page[R], error) {
	if err := l.check(q); err != nil {
		return paging.Page[R]{}, err
	}
	if q.Q != "" {
		rows = rows.Where("? LIKE ? ESCAPE '\\'", bun.Ident(l.Search), fold.Pattern(q.Q))
	}
	n, err := rows.Clone().Count(ctx)
	if err != nil {
		return paging.Page[R]{}, Err(err, "Page")
	}
	page := paging.Page[R]{Total: int(n)}
	if q.Limit == 0 || q.After == nil && q.Before == nil && q.Start >= page.Total {
		return page, nil
	}
	err = l.read(ctx, rows.ColumnExpr(l.Table.Qualified), key, q, &page)
	return page, err
}

// Counted is Page for a list without q whose total is kept in a row: kept is the SELECT of that one number. It is one statement,
// which costs the same in a list of any length: a count reads the whole index. A page without rows is one statement more. It
// returns errs.NotFound about what if kept returns no row.
func Counted[R any](ctx context.Context, rows, kept *bun.SelectQuery, what string, l List[R], key func(R) string, q paging.Query) (page paging.Page[R], err error) {
	if err := l.check(q); err != nil {
		return page, err
	}
	if q.Limit > 0 {
		rows = rows.ColumnExpr(l.Table.Qualified).ColumnExpr("(?) AS total", kept)
		if q.After == nil && q.Before == nil && q.Start > 0 {
			rows = rows.Where("? < (?)", q.Start, kept) // past the end no rows are skipped
		}
		if err := l.read(ctx, rows, key, q, &page, &page.Total); err != nil {
			return page, err
		}
	}
	if len(page.Rows) > 0 {
		return page, nil
	}
	err = Err(kept.Scan(ctx, &page.Total), what)
	return page, err
}

// read fills a page with its rows. last are the destinations of the columns after those of the Table.
func (l List[R]) read(ctx context.Context, rows *bun.SelectQuery, key func(R) string, q paging.Query, page *paging.Page[R], last ...any) error {
	r, err := l.bounds(q)
	if err != nil {
		return err
	}
	column, id := bun.Ident(r.Column), bun.Ident(l.Key)
	rows = rows.OrderExpr("? "+r.Dir+", ? "+r.Dir, column, id).Limit(int64(q.Limit) + 1) // one more tells whether there are more
	if r.After == nil {
		rows = rows.Offset(int64(q.Start))
	} else {
		rows = rows.Where("(?, ?) "+r.Past+" (?, ?)", column, id, r.After.Value, r.After.Key)
	}
	found, err := rows.Rows(ctx)
	return l.Fill(ctx, found, err, key, q, page, last...)
}

// Fill fills a page with the rows of a statement that Range describes, and closes them. The columns are those of the Table; last
// are the destinations of further ones.
func (l List[R]) Fill(ctx context.Context, rows *sql.Rows, err error, key func(R) string, q paging.Query, page *paging.Page[R], last ...any) error {
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

// restoreOrder puts the rows of a page with q.Before into the list's order: they were read backwards, one more than the page has.
func restoreOrder[R any](page *paging.Page[R], q paging.Query) {
	if len(page.Rows) > q.Limit {
		page.Rows, page.More = page.Rows[:q.Limit], true
	}
	if page.More { // rows precede
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

// maxQ is the most bytes of q. SQLite refuses a LIKE pattern of 50,000, and escapes and folding lengthen it.
const maxQ = 10_000

// check refuses an unknown order, and what no statement can carry.
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
	case !fits(q.After) || !fits(q.Before):
		return errs.New(errs.Invalid, "cursor does not fit this list")
	}
	return nil
}

// fits reports whether a statement can carry a position, nil for none.
func fits(p *paging.Position) bool { return p == nil || isText(p.Value) && isText(p.Key) }

// isText reports whether a database can hold s: PostgreSQL takes neither NUL nor what is not UTF-8.
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

// Range is where the rows of a page begin and in which direction they are read.
type Range struct {
	Column string           // the rows are ordered by it, then by List.Key
	Dir    string           // ASC or DESC, of both
	Past   string           // > or <: how the rows compare with After
	After  *paging.Position // the rows begin behind it; nil: with the row Query.Start
}

// Range returns how a statement of fixed text reads the page of a query: the rows of the Range, one more than q.Limit, for Fill.
// It refuses the queries that Page refuses.
func (l List[R]) Range(q paging.Query) (Range, error) {
	if err := l.check(q); err != nil {
		return Range{}, err
	}
	return l.bounds(q)
}

// bounds returns the Range of a page: behind the position of q.After, or backwards before that of q.Before, when the query has one.
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
		if at, err := time.Parse(timeText, r.After.Value); err != nil || at.Year() < 1 { // PostgreSQL has no year 0
			return Range{}, errs.New(errs.Invalid, "cursor does not fit this list")
		}
	}
	return r, nil
}
