package bunx

import (
	"strconv"
	"strings"
)

// In returns the list of an IN as fixed text: ($3,$4,…), n arguments that start at number from. n is at least 1.
func In(from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(",$")
		b.WriteString(strconv.Itoa(from + i))
	}
	return "(" + b.String()[1:] + ")"
}

// Args returns arguments: those in front, then one for each of some texts.
func Args(some []string, front ...any) []any {
	args := make([]any, 0, len(front)+len(some))
	args = append(args, front...)
	for _, s := range some {
		args = append(args, s)
	}
	return args
}
