package limiter

import "context"

type yieldKey struct{}

// WithYield returns a context whose caller holds something that others wait for and that release gives up while the caller
// waits for something else.
func WithYield(ctx context.Context, release func()) context.Context {
	return context.WithValue(ctx, yieldKey{}, release)
}

// Yield calls the function that WithYield put into the context, if any. Who may wait for long calls it before.
func Yield(ctx context.Context) {
	if release, ok := ctx.Value(yieldKey{}).(func()); ok {
		release()
	}
}
