package cli

import (
	"context"
	"errors"
)

// interrupted is the error of a command that Ctrl-C has ended. It describes what was done.
type interrupted string

// Error implements error.
func (i interrupted) Error() string { return "interrupted: " + string(i) }

// exitInterrupted is the exit code with which shells report a program that Ctrl-C has ended.
const exitInterrupted = 130

// interruption returns the interrupted error for err, or nil if Ctrl-C is not its cause. Commands
// without a more specific error work in one transaction.
func interruption(ctx context.Context, err error) error {
	if own, ok := errors.AsType[interrupted](err); ok {
		return own
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return interrupted("nothing was changed")
	}
	return nil
}
