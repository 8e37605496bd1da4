package sqlitesafe

import (
	"strconv"
	"strings"
)

// fewArgs is the number of arguments up to which the names of parameters cost little.
const fewArgs = 32

// positional returns the same statement with ? for $1, $2 and so on. The driver queries the name of
// each parameter, for which SQLite searches all names before it. For a bulk insert of 500 rows this
// took longer than the insert.
//
// The statement is returned unchanged unless it contains exactly $1 to $n, once each and in order.
// It must also contain no quote, comment or other character that could be next to a $.
func positional(query string, n int) string {
	if n <= fewArgs || strings.ContainsAny(query, "'\"`[?:@#") || strings.Contains(query, "--") ||
		strings.Contains(query, "/*") {
		return query
	}
	var out strings.Builder
	rest := query
	for i := 1; i <= n; i++ {
		before, after, found := strings.Cut(rest, "$"+strconv.Itoa(i))
		if !found || strings.Contains(before, "$") || !strings.ContainsAny(last(before), " \t\n(,=") || after != "" &&
			!strings.ContainsAny(after[:1], " \t\n),") {
			return query
		}
		out.WriteString(before)
		out.WriteByte('?')
		rest = after
	}
	if strings.Contains(rest, "$") {
		return query
	}
	return out.String() + rest
}

func last(s string) string { return s[max(0, len(s)-1):] }
