package sqlitesafe

import (
	"strconv"
	"strings"
)

// fewArgs is how many arguments a statement may have before the names of its parameters cost
// anything.
const fewArgs = 32

// positional returns the same statement with ? for $1, $2 and so on. The driver asks for the name
// of each parameter, and SQLite goes through the names of all those before it: binding them took
// longer than a bulk insert of 500 rows itself.
//
// A statement stays as it is unless it names exactly $1 to $n, once each and in order, and has no
// quote, comment or other sign that a $ could be a part of.
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
