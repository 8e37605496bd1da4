// Package timetext parses and compares texts of times in the SQLite files of apps.
//
// The comparisons are collations of these files. Their indexes are sorted by them, so their results
// must never change.
package timetext

import (
	"bytes"
	"cmp"
	"strings"
	"time"
)

// The names of the collations.
const (
	Timestamp = "timestamp"
	Date      = "date"
)

// Parse parses a day, or a day and a time with a T or a space between them, with or without
// seconds, fraction and zone. Without a zone it is in UTC.
func Parse[T string | []byte](s T) (t time.Time, ok bool) {
	const longest = len("2006-01-02T15:04:05.999999999 +00:00")
	if len(s) < len(time.DateOnly) || len(s) > longest || s[4] != '-' || s[7] != '-' {
		return t, false
	}
	at := 0
	number := func(digits int) (n int) {
		if at+digits > len(s) {
			ok = false
			return 0
		}
		for _, c := range []byte(s[at : at+digits]) {
			ok = ok && '0' <= c && c <= '9'
			n = 10*n + int(c-'0')
		}
		at += digits
		return n
	}
	sign := func(any string) byte { // the next character if it is in any
		if at < len(s) && strings.IndexByte(any, s[at]) >= 0 {
			at++
			return s[at-1]
		}
		return 0
	}
	ok = true
	year := number(4)
	at++
	month := number(2)
	at++
	date := number(2)
	var hour, minute, second, nanos, offset int
	if sign("T ") != 0 {
		hour = number(2)
		ok = ok && sign(":") != 0
		minute = number(2)
		if sign(":") != 0 {
			second = number(2)
			if sign(".") != 0 {
				unit := 100_000_000
				for from := at; at < len(s) && '0' <= s[at] && s[at] <= '9'; at++ {
					nanos, unit = nanos+int(s[at]-'0')*unit, unit/10
					ok = ok && at-from < 9
				}
			}
		}
		spaced := sign(" ") != 0
		switch zone := sign("Zz+-"); zone {
		case 0:
			ok = ok && !spaced
		case '+', '-':
			offset = 3600 * number(2)
			if at < len(s) {
				sign(":")
				offset += 60 * number(2)
			}
			if zone == '-' {
				offset = -offset
			}
		}
	}
	if !ok || at != len(s) || hour > 23 || minute > 59 || second > 59 || offset > 86400 || offset < -86400 {
		return t, false
	}
	t = time.Date(year, time.Month(month), date, hour, minute, second, nanos, time.UTC)
	if t.Month() != time.Month(month) || t.Day() != date {
		return t, false
	}
	return t.Add(-time.Duration(offset) * time.Second), true
}

// CompareTimestamps compares two texts as the collation Timestamp does: texts that Parse accepts by
// their time, before all others, and others by their bytes.
func CompareTimestamps[T string | []byte](a, b T) int {
	return compare(a, b, func(s, t time.Time) int { return s.Compare(t) })
}

// CompareDates compares two texts as the collation Date does: like CompareTimestamps, but by the
// day in UTC.
func CompareDates[T string | []byte](a, b T) int {
	return compare(a, b, func(s, t time.Time) int { return cmp.Compare(dayOf(s), dayOf(t)) })
}

func compare[T string | []byte](a, b T, times func(s, t time.Time) int) int {
	s, first := Parse(a)
	t, second := Parse(b)
	switch {
	case first && second:
		return times(s, t)
	case first:
		return -1
	case second:
		return 1
	}
	return bytes.Compare([]byte(a), []byte(b))
}

// dayOf returns the number of days since 1970.
func dayOf(t time.Time) int64 {
	const seconds = 24 * 60 * 60
	n := t.Unix()
	if n < 0 {
		return (n - seconds + 1) / seconds
	}
	return n / seconds
}
