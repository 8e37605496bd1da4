package entity

import (
	"context"
	"errors"
)

// ErrMore is the error of a sweep that has done its number of steps and has more to do.
var ErrMore = errors.New("there is more to sweep")

type stepsKey struct{}

// WithSteps returns a context in which a sweep may do n steps.
func WithSteps(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, stepsKey{}, &n)
}

// Step counts a step of a sweep. A sweep calls it before each further step. If it returns ErrMore,
// the sweep must return that error; it is called again after the sweeps of other tenants. Outside
// of a sweep Step returns nil.
func Step(ctx context.Context) error {
	n, ok := ctx.Value(stepsKey{}).(*int)
	if !ok {
		return nil
	}
	if *n--; *n <= 0 {
		return ErrMore
	}
	return nil
}
