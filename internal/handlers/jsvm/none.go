package jsvm

import (
	"context"

	"github.com/tenantcontent/tenantcontent/errs"
)

// None is a Runtime for programs that run no scripts: it refuses them all with errs.Unavailable.
type None struct{}

var _ Runtime = None{}

var errNone = errs.New(errs.Unavailable, "This service runs no scripts.")

// Compile implements Runtime.
func (None) Compile(context.Context, Source) (*Program, error) { return nil, errNone }

// Run implements Runtime.
func (None) Run(context.Context, *Program, Call) (Result, error) { return Result{}, errNone }

// Close implements Runtime.
func (None) Close() error { return nil }
