package sqlite

import "context"

// Faulty is faulty.
func Faulty(ctx context.Context, app string, err error) error { return faulty(ctx, app, err) }
