package limiter

import "context"

type yieldKey struct{}

// WithYield returns a context for a caller that holds a place of a limiter. release frees the place while the caller waits for
// something else.
func WithYield(ctx context.Context, release func()) context.Context {
	return context.WithValue(ctx, yieldKey{}, release)
}

// Yield calls the function that WithYield put into the context, if any. It is called before a wait that may be long.
func Yield(ctx context.Context) {
	if release, ok := ctx.Value(yieldKey{}).(func()); ok {
		release()
	}
}
