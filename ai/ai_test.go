package ai_test

import (
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestNone(t *testing.T) {
	is := is.New(t)
	_, err := ai.None{}.Chat(t.Context(), ai.Request{}, nil)
	is.True(errors.Is(err, errs.Unavailable))
	is.Equal(ai.Configured(nil), err)
	is.Equal(ai.Configured(ai.None{}), err)
	is.NoErr(ai.Configured(struct{ ai.Provider }{}))
}

func TestObject(t *testing.T) {
	for arguments, want := range map[string]string{
		"":           "{}",
		" ":          "{}",
		` {"n": 1} `: `{"n": 1}`,
		"null":       "",
		"[1]":        "",
		`"a"`:        "",
		"{":          "",
		"{} {}":      "",
	} {
		got, err := ai.ToolCall{Arguments: arguments}.Object()
		is.New(t).Equal(string(got), want)
		is.New(t).Equal(errors.Is(err, errs.Invalid), want == "")
	}
}

func TestRetryAfterOf(t *testing.T) {
	is := is.New(t)
	err := errs.Wrap(errs.Unavailable, errors.Join(errors.New("busy"), errs.RetryAfter(3*time.Second)), "Later.")
	is.Equal(errs.RetryAfterOf(err), 3*time.Second)
	is.Equal(errs.RetryAfterOf(errors.New("x")), time.Duration(0))
}
