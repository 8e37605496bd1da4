package timetext_test

import (
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/text/timetext"
)

// FuzzCompare checks that the collations order all texts, of both types.
func FuzzCompare(f *testing.F) {
	f.Add("2026-11-26", "2026-11-26T00:00:00Z", "x")
	f.Add("2026-02-30", "2026-11-26 10:00:00.1234567890", "2026-11-26 10:00 +01:00")
	f.Add("1969-12-31 23:59", "1970-01-01", "0000-01-01")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, compare := range []func(a, b string) int{
			timetext.CompareTimestamps[string], timetext.CompareDates[string],
		} {
			ab, ba, bc, ac := compare(a, b), compare(b, a), compare(b, c), compare(a, c)
			if ab != -ba || compare(a, a) != 0 || ab <= 0 && bc <= 0 && ac > 0 || ab == 0 && bc != ac {
				t.Errorf("%q, %q, %q: %d %d %d %d", a, b, c, ab, ba, bc, ac)
			}
		}
		if timetext.CompareTimestamps(a, b) != timetext.CompareTimestamps([]byte(a), []byte(b)) {
			t.Errorf("%q, %q: as bytes otherwise", a, b)
		}
	})
}

// TestCompare checks the results of the collations, by which files are sorted.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b             string
		timestamps, days int
	}{
		{"2026-11-26 10:00:00", "2026-11-26T10:00:00.000Z", 0, 0},
		{"2026-11-26 10:00:00", "2026-11-26T11:00+01:00", 0, 0},
		{"2026-11-26", "2026-11-26 00:00", 0, 0},
		{"2026-11-26 10:00:00", "2026-11-26T09:59:59.999Z", 1, 0},
		{"2026-11-26T23:30:00-01:00", "2026-11-27", 1, 0},
		{"1969-12-31 23:59", "1970-01-01", -1, -1},
		{"9999-12-31", "2026-02-30", -1, -1}, // which is not a day
		{"a", "b", -1, -1},
		{"", "", 0, 0},
	} {
		is := is.New(t)
		is.Equal(timetext.CompareTimestamps(c.a, c.b), c.timestamps)
		is.Equal(timetext.CompareDates(c.a, c.b), c.days)
		is.Equal(timetext.CompareTimestamps(c.b, c.a), -c.timestamps)
	}
}
