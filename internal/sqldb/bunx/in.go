package bunx

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// In returns the list of an IN as fixed text: ($3,$4,…), n placeholders from number from on. n must
// be at least 1.
func In(from, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(",$")
		b.WriteString(strconv.Itoa(from + i))
	}
	return "(" + b.String()[1:] + ")"
}

// Args returns arguments: front, then one for each of some texts.
func Args(some []string, front ...any) []any {
	args := make([]any, 0, len(front)+len(some))
	args = append(args, front...)
	for _, s := range some {
		args = append(args, s)
	}
	return args
}

// inBatch is the number of values in one statement of ExecIn.
const inBatch = 500

// ExecIn runs fixed text that ends with IN for all values, some hundred in each statement, and
// returns the number of rows it changed. args precede the values.
func (c Conn) ExecIn(ctx context.Context, query string, values []string, args ...any) (n int, err error) {
	for some := range slices.Chunk(values, inBatch) {
		changed, err := c.Exec(ctx, query+In(len(args)+1, len(some)), Args(some, args...)...)
		if n += changed; err != nil {
			return n, err
		}
	}
	return n, nil
}
