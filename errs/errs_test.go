package errs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

func TestCodeAndMessageSurviveWrapping(t *testing.T) {
	is := is.New(t)
	cause := errors.New("dial tcp 10.0.0.1: secret")
	err := fmt.Errorf("loading: %w", errs.Wrap(errs.Unavailable, cause, "The database is away."))

	is.Equal(errs.CodeOf(err), errs.Unavailable)
	is.Equal(errs.MessageOf(err), "The database is away.") // the cause is not in it
	is.True(errors.Is(err, cause))
	is.True(errors.Is(err, errs.Unavailable))
	is.True(!errors.Is(err, errs.Invalid))
	is.Equal(err.Error(), "loading: The database is away.: dial tcp 10.0.0.1: secret")
}

func TestForeignErrorIsInternal(t *testing.T) {
	is := is.New(t)
	is.Equal(errs.CodeOf(errors.New("x")), errs.Internal)
	is.Equal(errs.MessageOf(errors.New("x")), "")
	is.Equal(errs.CodeOf(nil), errs.Code(""))
}

func TestNewFormats(t *testing.T) {
	is := is.New(t)
	is.Equal(
		errs.MessageOf(errs.New(errs.Conflict, "A color named %q exists already.", "red")),
		`A color named "red" exists already.`,
	)
}
