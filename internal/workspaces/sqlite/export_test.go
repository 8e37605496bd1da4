package sqlite

import (
	"context"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
)

// Faulty is faulty.
func Faulty(ctx context.Context, app string, err error) error { return faulty(ctx, app, err) }

// Collated returns a statement with the collations of its columns.
func Collated(s sqltext.Statement) string { return collated(s) }
