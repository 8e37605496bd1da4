package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

const (
	maxColumns = 200 // of a table and of a result
	// bytes of a pattern of LIKE or GLOB: with the longest text, one takes seconds, and cannot be
	// interrupted
	maxPattern = 200
	// maxSelects is how many SELECTs a statement may have when its views and common table
	// expressions are put in their places, as SQLite does. With maxColumns it bounds the memory
	// that preparing a statement takes: without it, ten lines of views that each join the one
	// before twice take hundreds of megabytes.
	maxSelects = 500
	// memory is how many bytes the values may have together that a statement has in its hands at
	// once, and maxLength those of one.
	memory, maxLength, minLength = 64 << 20, 4 << 20, 16 << 10
)

// weight is what a piece of SQL is made of.
type weight struct {
	tokens, selects int
	// functions and operators that can make a large value, and tables whose rows can have one
	makers int
	names  map[string]int // how often each identifier is in it
}

func (w *weight) add(by weight, times int) {
	const most = 1 << 30
	w.tokens = min(most, w.tokens+by.tokens*times)
	w.selects = min(most, w.selects+by.selects*times)
	w.makers = min(most, w.makers+by.makers*times)
}

// scope is a statement, or the statement of a view or trigger: its weight without its common table
// expressions, and these by name.
type scope struct {
	weight
	expressions map[string]weight
}

// newScope weighs a statement. It returns errs.Invalid for two common table expressions with one
// name: which of them is meant where would have to be known.
func newScope(tokens []sqltext.Token) (*scope, error) {
	s := &scope{expressions: map[string]weight{}}
	var err error
	s.weight, err = s.weigh(tokens)
	return s, err
}

// weigh weighs tokens. Common table expressions are added to the scope, in place of the weight.
func (s *scope) weigh(tokens []sqltext.Token) (w weight, err error) {
	w.names = map[string]int{}
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		w.tokens++
		switch {
		case t.Is("SELECT") || t.Is("VALUES"):
			w.selects++
		case t.Sign("|") && i+1 < len(tokens) && tokens[i+1].Sign("|") && tokens[i+1].Pos == t.Pos+1:
			w.makers++
		}
		name, ok := identifier(t)
		if !ok {
			continue
		}
		from, to, ok := expression(tokens, i)
		if !ok {
			w.names[name]++
			if i+1 < len(tokens) && tokens[i+1].Sign("(") {
				w.makers++
				if strings.HasPrefix(name, "json") { // collects its arguments before it looks how long they are
					w.makers += commas(tokens, i+1)
				}
			}
			continue
		}
		if _, ok := s.expressions[name]; ok {
			return w, errs.New(
				errs.Invalid,
				"The statement has two common table expressions with the name %s: name them differently.",
				t.Value,
			)
		}
		s.expressions[name] = weight{} // so that one inside of it cannot have the name
		if s.expressions[name], err = s.weigh(tokens[from:to]); err != nil {
			return w, err
		}
		i = to
	}
	return w, nil
}

// identifier returns the name that a token can stand for, as SQLite compares names: without the
// case of ASCII letters. SQLite accepts a string for an identifier in some places.
func identifier(t sqltext.Token) (name string, ok bool) {
	switch t.Kind {
	case sqltext.Word, sqltext.Quoted:
		return lower(t.Value), true
	case sqltext.String:
		if strings.HasPrefix(t.Value, "'") {
			return lower(strings.ReplaceAll(t.Value[1:len(t.Value)-1], "''", "'")), true
		}
	}
	return "", false
}

func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		return c
	}, s)
}

// expression returns the range of the tokens in the parentheses of a common table expression whose
// name is at i: name [(columns)] AS [NOT MATERIALIZED | MATERIALIZED] (SELECT …).
func expression(tokens []sqltext.Token, i int) (from, to int, ok bool) {
	at := i + 1
	if at < len(tokens) && tokens[at].Sign("(") {
		if at = closing(tokens, at) + 1; at == 0 {
			return 0, 0, false
		}
	}
	if at >= len(tokens) || !tokens[at].Is("AS") {
		return 0, 0, false
	}
	for at++; at < len(tokens) && (tokens[at].Is("NOT") || tokens[at].Is("MATERIALIZED")); at++ {
	}
	if at+1 >= len(tokens) || !tokens[at].Sign("(") || !tokens[at+1].Is("SELECT") && !tokens[at+1].Is("WITH") &&
		!tokens[at+1].Is("VALUES") {
		return 0, 0, false // a window, or a generated column
	}
	end := closing(tokens, at)
	if end < 0 {
		return 0, 0, false
	}
	return at + 1, end, true
}

// commas returns how many commas are in the parenthesis that is open at i, and not in one inside of
// it.
func commas(tokens []sqltext.Token, i int) (n int) {
	for depth := 0; i < len(tokens); i++ {
		switch {
		case tokens[i].Sign("("):
			depth++
		case tokens[i].Sign(")"):
			if depth--; depth == 0 {
				return n
			}
		case tokens[i].Sign(",") && depth == 1:
			n++
		}
	}
	return n
}

// closing returns where the parenthesis that is open at i is closed, -1 if it is not.
func closing(tokens []sqltext.Token, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch {
		case tokens[i].Sign("("):
			depth++
		case tokens[i].Sign(")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// schema is the weights of what a workspace has.
type schema struct {
	version  int64
	views    map[string]*scope   // and tables: what is put in the place of their names
	triggers map[string][]*scope // of each table; each runs once in a statement
}

// load reads the schema, if it has changed.
func (c *conn) load(ctx context.Context) error {
	var version int64
	err := c.read(ctx, "PRAGMA schema_version", func(row []driver.Value) error {
		version, _ = row[0].(int64)
		return nil
	})
	if err != nil || c.schema != nil && c.schema.version == version {
		return err
	}
	s := &schema{version: version, views: map[string]*scope{}, triggers: map[string][]*scope{}}
	err = c.read(ctx,
		"SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE type <> 'index' AND sql IS NOT NULL",
		func(row []driver.Value) error {
			kind, _ := row[0].(string)
			name, _ := row[1].(string)
			table, _ := row[2].(string)
			text, _ := row[3].(string)
			statement, err := sqltext.Single(sqltext.SQLite, text)
			if err != nil {
				return err
			}
			of, err := newScope(statement.Tokens)
			if err != nil {
				return err
			}
			switch kind {
			case "trigger":
				s.triggers[lower(table)] = append(s.triggers[lower(table)], of)
			case "view":
				s.views[lower(name)] = of
			case "table": // has generated columns, perhaps
				s.views[lower(name)] = &scope{weight: weight{tokens: of.tokens, makers: of.makers + 1}}
			}
			return nil
		})
	if err != nil {
		return err
	}
	c.schema = s
	return nil
}

// counter sums up a statement with all that is put in the places of names.
type counter struct {
	*schema
	known map[place]weight
	under map[place]bool
	fired map[string]bool // tables whose triggers are counted
	extra weight          // of triggers
}

// place is a name in a scope.
type place struct {
	in   *scope
	name string
}

// total returns the weight of a statement with all that is put in the places of names.
func (s *schema) total(of *scope) weight {
	c := counter{schema: s, known: map[place]weight{}, under: map[place]bool{}, fired: map[string]bool{}}
	total := c.of(of.weight, of)
	total.add(c.extra, 1)
	return total
}

func (c *counter) of(w weight, in *scope) weight {
	total := weight{tokens: w.tokens, selects: w.selects, makers: w.makers}
	for name, times := range w.names {
		total.add(c.named(name, in), times)
		if !c.fired[name] && len(c.triggers[name]) > 0 {
			c.fired[name] = true
			for _, trigger := range c.triggers[name] {
				c.extra.add(c.of(trigger.weight, trigger), 1)
			}
		}
	}
	return total
}

// named returns the weight of what is put in the place of a name: a common table expression, or a
// view.
func (c *counter) named(name string, in *scope) weight {
	at := place{in, name}
	if total, ok := c.known[at]; ok {
		return total
	}
	if c.under[at] { // itself, in a recursive expression: it is not put there again
		return weight{}
	}
	c.under[at] = true
	var total weight
	if expression, ok := in.expressions[name]; ok {
		total.add(c.of(expression, in), 1)
	}
	if view, ok := c.views[name]; ok && view != in {
		total.add(c.of(view.weight, view), 1)
	}
	c.under[at] = false
	c.known[at] = total
	return total
}

// bound refuses a statement that would take too much memory to prepare, and sets the length of
// values so that those that the statement can have at once are bounded.
func (c *conn) bound(ctx context.Context, s sqltext.Statement) error {
	if err := c.load(ctx); err != nil {
		return err
	}
	of, err := newScope(s.Tokens)
	if err != nil {
		return err
	}
	if len(s.Tokens) > 0 && s.Tokens[0].Is("ALTER") { // SQLite prepares all views then
		for name := range c.schema.views {
			if c.schema.total(&scope{weight: weight{names: map[string]int{name: 1}}}).selects > maxSelects {
				return errComplex("SELECTs", maxSelects)
			}
		}
	}
	length, err := c.schema.total(of).length()
	if err != nil {
		return err
	}
	c.setLength(length)
	return nil
}

// length returns how long values may be in a statement of a weight. It returns errs.Invalid for one
// that would take too much memory.
func (w weight) length() (int, error) {
	switch {
	case w.selects > maxSelects:
		return 0, errComplex("SELECTs", maxSelects)
	case w.tokens > 2*sqltext.MaxTokens:
		return 0, errComplex("words and signs", 2*sqltext.MaxTokens)
	case memory/(w.makers+1) < minLength:
		return 0, errComplex("functions and tables", memory/minLength)
	}
	return min(maxLength, memory/(w.makers+1)), nil
}

func errComplex(what string, most int) error {
	return errs.New(
		errs.Invalid,
		"The statement has more than %d %s, with those of the views and common table expressions that it uses: "+
			"part it.",
		most, what,
	)
}

func (c *conn) setLength(n int) {
	if c.length != n {
		_, _ = sqlite.Limit(c.sql, sqlite3.SQLITE_LIMIT_LENGTH, n) // has no error of its own
		c.length = n
	}
}
