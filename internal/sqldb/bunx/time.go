package bunx

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// timeText is the format of times on SQLite. All texts have the same width, so they sort as the
// times do. PostgreSQL reads it, too.
const timeText = "2006-01-02T15:04:05.000000Z"

// Time is a column that holds a time in UTC with whole microseconds. It is timestamptz(6) on
// PostgreSQL and text on SQLite; as an argument it is the same text on both. The zero Time is NULL.
type Time struct{ time.Time }

// At returns a Time for t.
func At(t time.Time) Time { return Time{t.UTC().Truncate(time.Microsecond)} }

// AtOrNull returns a Time for *t, or NULL for nil.
func AtOrNull(t *time.Time) Time {
	if t == nil {
		return Time{}
	}
	return At(*t)
}

// Ptr returns the time, or nil for NULL.
func (t Time) Ptr() *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}

// String returns the time as a sort value for paging.Position.
func (t Time) String() string { return t.Format(timeText) }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.UTC().Format(timeText), nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = Time{}
		return nil
	case time.Time:
		*t = At(v)
		return nil
	case string:
		return t.parse(v)
	case []byte:
		return t.parse(string(v))
	}
	return fmt.Errorf("bunx: cannot read a time from %T", src)
}

// parse reads timeText by position, five times faster than time.Parse, because a list reads two
// times a row. It passes other text to time.Parse.
func (t *Time) parse(s string) error {
	if len(s) == len(timeText) && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && s[16] == ':' &&
		s[19] == '.' && s[26] == 'Z' {
		n, ok := digits(s)
		v := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1000, time.UTC)
		if ok && n[3] < 24 && n[4] < 60 && n[5] < 60 && v.Day() == n[2] && v.Month() == time.Month(n[1]) {
			*t = Time{v}
			return nil
		}
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z07",
	} {
		if v, err := time.Parse(layout, s); err == nil {
			*t = At(v)
			return nil
		}
	}
	return fmt.Errorf("bunx: %q is no time", s)
}

func digits(s string) (n [7]int, ok bool) {
	for i, at := range [7][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, 26}} {
		for _, c := range []byte(s[at[0]:at[1]]) {
			if c < '0' || c > '9' {
				return n, false
			}
			n[i] = n[i]*10 + int(c-'0')
		}
	}
	return n, true
}
