package pgsafe

import (
	"database/sql/driver"
	"fmt"
	"strings"
)

// check returns an error for statements and arguments that pgdriver would send in a changed form.
func check(query string, args []driver.NamedValue) error {
	if strings.IndexByte(query, 0) >= 0 {
		return refusal("a statement must not contain NUL")
	}
	switch keyword(query) {
	case "copy":
		return refusal("COPY is not supported: use multi-row VALUES")
	case "listen":
		return refusal("LISTEN needs a connection of its own")
	}
	if len(args) > 65535 {
		return refusal("a statement can have 65535 arguments at most")
	}
	for _, a := range args {
		if a.Name != "" {
			return refusal("named arguments are not supported")
		}
		if s, ok := a.Value.(string); ok && !clean(s) {
			return refusal(fmt.Sprintf("argument $%d is not UTF-8 text without NUL", a.Ordinal))
		}
	}
	return nil
}

// keyword returns the first word of a statement in lower case, or "". It skips white space,
// comments, empty statements and opening parentheses before it.
func keyword(query string) string {
	q := skip(query)
	n := 0
	for n < len(q) && (q[n]|0x20 >= 'a' && q[n]|0x20 <= 'z') {
		n++
	}
	return strings.ToLower(q[:n])
}

// skip removes what may precede a statement's first word.
func skip(q string) string {
	for {
		q = strings.TrimLeft(q, " \t\r\n\f\v;(")
		switch {
		case strings.HasPrefix(q, "--"):
			_, q, _ = strings.Cut(q, "\n")
		case strings.HasPrefix(q, "/*"):
			q = skipComment(q)
		default:
			return q
		}
	}
}

// skipComment removes one comment with its nested comments.
func skipComment(q string) string {
	depth := 0
	for i := 0; i+1 < len(q); i++ {
		switch q[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return q[i+1:]
			}
		}
	}
	return ""
}
