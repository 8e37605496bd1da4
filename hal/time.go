package hal

import "time"

// Time is a time as the API writes it: UTC with milliseconds, always "2026-11-20T20:31:00.123Z".
type Time time.Time

const layout = "2006-01-02T15:04:05.000Z"

// OrNull makes a *Time, which encodes to null for nil.
func OrNull(t *time.Time) *Time { return (*Time)(t) }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) { return AppendTime(nil, time.Time(t)), nil }

// AppendTime appends a time as the API writes it. It does not use time.AppendFormat because a list
// writes two times a row.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, `"`+layout+`"`)
	}
	hour, minute, second := t.Clock()
	dst = append(dst, '"')
	dst = digits(dst, year, 4)
	dst = digits(append(dst, '-'), int(month), 2)
	dst = digits(append(dst, '-'), day, 2)
	dst = digits(append(dst, 'T'), hour, 2)
	dst = digits(append(dst, ':'), minute, 2)
	dst = digits(append(dst, ':'), second, 2)
	dst = digits(append(dst, '.'), t.Nanosecond()/1e6, 3)
	return append(dst, 'Z', '"')
}

// AppendTimeOrNull appends *t as the API writes it, null for nil.
func AppendTimeOrNull(dst []byte, t *time.Time) []byte {
	if t == nil {
		return append(dst, "null"...)
	}
	return AppendTime(dst, *t)
}

// digits appends n with leading zeros.
func digits(dst []byte, n, width int) []byte {
	for pow := [...]int{1, 10, 100, 1000}[width-1]; pow > 0; pow /= 10 {
		dst = append(dst, byte('0'+n/pow%10))
	}
	return dst
}
