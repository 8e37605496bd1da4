package sqlite

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/sqltext"
)

// Faulty is faulty.
func Faulty(ctx context.Context, app string, err error) error { return faulty(ctx, app, err) }

// Collated returns a statement with the collations of its columns.
func Collated(s sqltext.Statement) string { return collated(s) }

// CompareTimes compares texts as a column of instants or days does.
func CompareTimes(days bool, a, b string) int {
	if days {
		return compareTimes(day, []byte(a), []byte(b))
	}
	return compareTimes(instant, []byte(a), []byte(b))
}
