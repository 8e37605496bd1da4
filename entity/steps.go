package entity

import (
	"context"
	"errors"
)

// ErrMore is the error of a sweep that has done as many steps as it may at once, and has more to
// do.
var ErrMore = errors.New("there is more to sweep")

type stepsKey struct{}

// WithSteps returns a context in which a sweep may do a number of steps.
func WithSteps(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, stepsKey{}, &n)
}

// Step counts a step of a sweep, which calls it when there may be another one. It returns ErrMore
// when the sweep is to return, with that error: it is called again when the sweeps of other tenants
// have had their turn. Outside of a sweep it returns nil.
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
