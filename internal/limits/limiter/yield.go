package limiter

import "context"

type (
	yieldKey  struct{}
	resumeKey struct{}
)

// WithYield returns a context for a caller that was admitted by a limiter. release frees its weight
// while the caller waits for something else.
func WithYield(ctx context.Context, release func()) context.Context {
	return context.WithValue(ctx, yieldKey{}, release)
}

// Yield calls the function of WithYield in the context, if any. It must be called before a wait
// that may be long.
func Yield(ctx context.Context) {
	if release, ok := ctx.Value(yieldKey{}).(func()); ok {
		release()
	}
}

// WithResume returns a context for a caller that waits for something else first. acquire waits for
// what the caller needs after that.
func WithResume(ctx context.Context, acquire func()) context.Context {
	return context.WithValue(ctx, resumeKey{}, acquire)
}

// Resume calls the function of WithResume in the context, if any. It must be called after a long
// wait and before computing.
func Resume(ctx context.Context) {
	if acquire, ok := ctx.Value(resumeKey{}).(func()); ok {
		acquire()
	}
}
