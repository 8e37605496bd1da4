package sqltext

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// MaxTokens is how many tokens a statement may have: a database keeps each in memory while it
// prepares a statement.
const MaxTokens = 100_000

// Single returns the only statement of a text. It returns errs.Invalid for other numbers of
// statements, and for text that Split refuses.
func Single(d Dialect, text string) (Statement, error) {
	all, err := Split(d, text)
	switch {
	case err != nil:
		return Statement{}, err
	case len(all) == 0:
		return Statement{}, errs.New(errs.Invalid, "The SQL has no statement.")
	case len(all) > 1:
		return Statement{}, errs.New(
			errs.Invalid,
			"The SQL has %d statements: a call runs one. Use several calls, or a file in migrations.", len(all),
		)
	}
	return all[0], nil
}

// Allowed returns errs.Invalid unless the statement is of a kind that tenants may run. It may read
// or change rows, or create, alter or drop an object of one of the given types, such as TABLE.
func (s Statement) Allowed(others []string, objects ...string) error {
	if len(s.Tokens) > MaxTokens {
		return errs.New(
			errs.Invalid,
			"The statement has more than %d words and signs: part it, and pass values as parameters.",
			MaxTokens,
		)
	}
	words := s.Keywords(5)
	if len(words) == 0 {
		return errs.New(errs.Invalid, "The statement does not begin with a keyword such as SELECT.")
	}
	switch words[0] {
	case "SELECT", "WITH", "VALUES", "INSERT", "UPDATE", "DELETE":
		return nil
	case "CREATE", "ALTER", "DROP":
		for _, w := range words[1:] {
			switch w {
			case "UNIQUE", "OR", "REPLACE", "RECURSIVE", "UNLOGGED":
				continue
			}
			if slices.Contains(objects, w) {
				return nil
			}
			break
		}
		what := words[0]
		if len(words) > 1 {
			what += " " + words[1]
		}
		return errs.New(
			errs.Invalid, "%s is not allowed in a workspace. %s can follow %s there.", what,
			strings.Join(objects, ", "), words[0],
		)
	case "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ABORT", "PREPARE":
		return errs.New(
			errs.Invalid,
			"%s is not allowed in a workspace: each statement, and each file in migrations, is a transaction of "+
				"its own.",
			words[0],
		)
	}
	if slices.Contains(others, words[0]) {
		return nil
	}
	return errs.New(
		errs.Invalid,
		"%s is not allowed in a workspace. A statement begins with SELECT, WITH, VALUES, INSERT, UPDATE, DELETE, "+
			"CREATE, ALTER or DROP.",
		words[0],
	)
}

// PlaceholderHint explains the form of placeholders in errors.
const PlaceholderHint = "Placeholders are $1, $2 and so on."

// Parameters returns errs.Invalid unless all placeholders are $1 to $n, each used at least once,
// for n values.
func (s Statement) Parameters(n int) error {
	used, highest := map[int]bool{}, 0
	for _, t := range s.Tokens {
		if t.Kind != Parameter {
			continue
		}
		number, err := strconv.Atoi(strings.TrimPrefix(t.Value, "$"))
		if err != nil || !strings.HasPrefix(t.Value, "$") || number < 1 || number > 32766 ||
			t.Value != "$"+strconv.Itoa(number) {
			return errs.New(errs.Invalid, "The statement has the placeholder %s. %s", t.Value, PlaceholderHint)
		}
		used[number] = true
		highest = max(highest, number)
	}
	if highest != n {
		if n < highest {
			return errs.New(
				errs.Invalid, "The statement has the placeholder $%d, but params has %s.", highest, values(n),
			)
		}
		if highest == 0 {
			return errs.New(
				errs.Invalid, "params has %s, but the statement has no placeholders. %s", values(n),
				PlaceholderHint,
			)
		}
		return errs.New(
			errs.Invalid, "params has %s, but the highest placeholder of the statement is $%d.", values(n),
			highest,
		)
	}
	for i := 1; i <= highest; i++ {
		if !used[i] {
			return errs.New(errs.Invalid, "The statement has no placeholder $%d, but params has a value for it.", i)
		}
	}
	return nil
}

func values(n int) string {
	if n == 1 {
		return "1 value"
	}
	return strconv.Itoa(n) + " values"
}
