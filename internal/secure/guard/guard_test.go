package guard_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

type row string

func (r row) Version() string { return string(r) }

func TestCheck(t *testing.T) {
	is, ctx := is.New(t), t.Context()
	is.NoErr(guard.Check(ctx, "color", row("2"))) // without a guard
	fits := func(version string, exists bool) bool { return exists && version == "1" }
	with := func() (*guard.Guard, context.Context) {
		g := &guard.Guard{Row: "color", Fits: fits}
		return g, guard.With(ctx, g)
	}
	g, guarded := with()
	is.NoErr(guard.Check(guarded, "bundle", row("2"))) // of another noun
	is.Equal(errs.CodeOf(guard.Check(guarded, "color", row("2"))), errs.Stale)
	is.Equal(errs.CodeOf(g.Missing()), errs.Stale) // no row has met the condition
	is.NoErr(guard.Check(guarded, "color", row("1")))
	is.NoErr(guard.Check(guarded, "color", row("2"))) // the first row is decisive
	is.NoErr(g.Missing())
	is.Equal(guard.Of(guarded, "color"), nil)
}

func TestVersionTellsFieldsApart(t *testing.T) {
	is, at := is.New(t), time.UnixMicro(1)
	a, b := "a", "ab"
	long := strings.Repeat("x", 5000)
	all := map[string][]any{
		"1": {"a", "b"}, "2": {"ab", ""}, "3": {"", "ab"},
		"4": {&a, &b}, "5": {(*string)(nil), &b}, "6": {&b, (*string)(nil)},
		"7": {true, false}, "8": {false, true}, "9": {1, 2},
		"10": {int64(1), int64(3)}, "11": {at}, "12": {at.Add(time.Microsecond)},
		"13": {&at, 1}, "14": {(*time.Time)(nil), 1}, "15": {json.RawMessage(`{"a":1}`)}, "16": {json.RawMessage(long)},
		"17": {json.RawMessage(long + "y")}, "18": {long},
		"19": {[]string{"a", "b"}}, "20": {[]string{"ab"}}, "21": {[]string{}, "a"},
	}
	seen := map[string]string{}
	for name, fields := range all {
		v := guard.Version(fields...)
		is.Equal(len(v), 16)
		is.Equal(v, guard.Version(fields...)) // equal for equal fields
		if other := seen[v]; other != "" {
			t.Errorf("%s and %s have the same version", name, other)
		}
		seen[v] = name
	}
}
