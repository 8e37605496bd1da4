package bunx_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"
	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

func TestTimeScan(t *testing.T) {
	want := time.Date(2026, 11, 20, 20, 31, 7, 123456000, time.UTC)
	whole := time.Date(2026, 11, 20, 20, 31, 7, 0, time.UTC)
	for _, c := range []struct {
		from any
		want time.Time
	}{
		{"2026-11-20T20:31:07.123456Z", want}, {[]byte("2026-11-20T20:31:07.123456Z"), want},
		{"2026-11-20T21:31:07.123456+01:00", want},
		{"2026-11-20T20:31:07.123456789Z", want}, {"2026-11-20T20:31:07Z", whole},
		{"2026-11-20 20:31:07.123456+00", want},
		{"2026-11-20 21:31:07.123456+01", want}, {"2026-11-20 20:31:07+00", whole},
		{"2026-11-20 20:31:07.123456+00:00", want}, {"2026-11-21 02:01:07.123456+05:30", want},
		{want.In(time.FixedZone("x", 3600)).Add(789), want}, {nil, time.Time{}},
	} {
		t.Run(fmt.Sprint(c.from), func(t *testing.T) {
			is, got := is.New(t), bunx.At(time.Unix(1, 0))
			is.NoErr(got.Scan(c.from))
			is.Equal(got.Time, c.want)
		})
	}
	for _, bad := range []any{"", "yesterday", 7,
		7.5, "2026-11-20", "2026-13-20T20:31:07.123456Z", "2026-02-30T20:31:07.123456Z",
		"2026-11-20T24:31:07.123456Z", "2026-11-20T20:60:07.123456Z",
		"2026-11-20T20:31:60.123456Z", "2026-11x20T20:31:07.123456Z",
		"2026-00-00T00:00:00.000000Z", "2026-11-20T20:31:07.12345xZ"} {
		t.Run(fmt.Sprint("bad ", bad), func(t *testing.T) {
			var got bunx.Time
			is.New(t).True(got.Scan(bad) != nil)
		})
	}
}

func TestTimeNull(t *testing.T) {
	is := is.New(t)
	v, err := bunx.Time{}.Value()
	is.NoErr(err)
	is.Equal(v, nil)
	is.Equal(bunx.Time{}.Ptr(), nil)
	is.Equal(bunx.AtOrNull(nil), bunx.Time{})
	now := time.Now()
	is.True(bunx.AtOrNull(&now).Ptr().Equal(now.Truncate(time.Microsecond)))
}

var times = rapid.Custom(func(t *rapid.T) time.Time {
	s := rapid.Int64Range(-62135596799, 253402300799).Draw(t, "seconds") // the years 1 to 9999
	zone := time.FixedZone("x", rapid.IntRange(-50000, 50000).Draw(t, "zone"))
	return time.Unix(s, rapid.Int64Range(0, 999999999).Draw(t, "ns")).In(zone)
})

// TestTimeTextOrder: texts sort as times do, on which SQLite relies.
func TestTimeTextOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := bunx.At(times.Draw(t, "a")), bunx.At(times.Draw(t, "b"))
		if (a.String() < b.String()) != a.Before(b.Time) {
			t.Fatalf("%s %s", a, b)
		}
		v, err := a.Value()
		var back bunx.Time
		if err != nil || back.Scan(v) != nil || back != a {
			t.Fatalf("%v came back as %v", a, back)
		}
	})
}

func FuzzTimeScan(f *testing.F) {
	for _, s := range []string{
		"2026-11-20T20:31:07.123456Z", "2026-11-20 20:31:07.1+00", "0000-00-00T00:00:00.000000Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got bunx.Time
		err := got.Scan(s)
		want, wantErr := time.Parse("2006-01-02T15:04:05.000000Z", s)
		if wantErr == nil && (err != nil || !got.Equal(want)) {
			t.Errorf("%q is %v, %v", s, got, err)
		}
		if wantErr != nil && err == nil && len(s) == len("2006-01-02T15:04:05.000000Z") {
			if _, e := time.Parse(time.RFC3339Nano, s); e != nil && s[10] == 'T' {
				t.Errorf("%q was read as %v", s, got)
			}
		}
	})
}
