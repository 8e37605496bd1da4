package limiter

import "context"

type (
	yieldKey  struct{}
	resumeKey struct{}
)

// WithYield returns a context for a caller that holds a place of a limiter. release frees the place
// while the caller waits for something else.
func WithYield(ctx context.Context, release func()) context.Context {
	return context.WithValue(ctx, yieldKey{}, release)
}

// Yield calls the function that WithYield put into the context, if any. It is called before a wait
// that may be long.
func Yield(ctx context.Context) {
	if release, ok := ctx.Value(yieldKey{}).(func()); ok {
		release()
	}
}

// WithResume returns a context whose caller begins with waiting for something else: acquire waits
// for what it needs after that.
func WithResume(ctx context.Context, acquire func()) context.Context {
	return context.WithValue(ctx, resumeKey{}, acquire)
}

// Resume calls the function that WithResume put into the context, if any. Who has waited for long,
// and computes now, calls it before.
func Resume(ctx context.Context) {
	if acquire, ok := ctx.Value(resumeKey{}).(func()); ok {
		acquire()
	}
}
