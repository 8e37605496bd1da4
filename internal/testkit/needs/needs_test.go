package needs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
)

// verdict is a test that only records how it ended.
type verdict struct {
	testing.TB
	text string
}

func (v *verdict) Helper()                  {}
func (v *verdict) Fatal(args ...any)        { v.end("failed: " + fmt.Sprint(args...)) }
func (v *verdict) Skipf(f string, a ...any) { v.end("skipped: " + fmt.Sprintf(f, a...)) }
func (v *verdict) end(text string)          { v.text = text; panic(v) }
func (v *verdict) of(err, missing error) string {
	defer func() { _ = recover() }()
	needs.Start(v, err, missing)
	return "went on"
}

func TestStart(t *testing.T) {
	missing := errors.New("no server: install one")
	there, broken := fmt.Errorf("start: %w", missing), errors.New("broken")
	for _, env := range []struct{ ci, require, verdict string }{
		{"", "", "skipped: NOT TESTED: start: no server: install one"},
		{"true", "", "failed: start: no server: install one"},
		{"", "1", "failed: start: no server: install one"},
	} {
		t.Setenv("CI", env.ci)
		t.Setenv(needs.Require, env.require)
		for err, want := range map[error]string{nil: "", broken: "failed: broken", there: env.verdict} {
			v := &verdict{TB: t}
			went := v.of(err, missing)
			is := is.New(t)
			is.Equal(v.text, want)
			is.Equal(went == "went on", err == nil)
		}
	}
}
