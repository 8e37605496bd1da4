package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// size is a number of bytes, parsed and printed as 64MiB.
type size int64

// units are the suffixes of a size, each 1024 times the one before.
var units = []string{"B", "KiB", "MiB", "GiB", "TiB"}

// UnmarshalText parses a whole number of at least 1, followed by one of units or, for bytes, by
// nothing.
func (s *size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "BKMGTi")
	factor, unit := int64(1), string(text[len(digits):])
	for _, u := range units {
		if unit == u || unit == "" {
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil || n < 1 || n > math.MaxInt64/factor {
				break
			}
			*s = size(n * factor)
			return nil
		}
		factor *= 1024
	}
	return fmt.Errorf(
		"%q is no size: it takes a whole number of at least 1 with B, KiB, MiB, GiB or TiB behind it, such as 64MiB",
		text,
	)
}

// String returns the size in the largest unit that divides it.
func (s size) String() string {
	unit := 0
	for s >= 1024 && s%1024 == 0 && unit < len(units)-1 {
		s /= 1024
		unit++
	}
	return strconv.FormatInt(int64(s), 10) + units[unit]
}

// about returns the size with one decimal, such as 12.3MiB.
func (s size) about() string {
	unit, n := 0, float64(s)
	for n >= 1024 && unit < len(units)-1 {
		n /= 1024
		unit++
	}
	if unit == 0 {
		return s.String()
	}
	return strconv.FormatFloat(n, 'f', 1, 64) + units[unit]
}

// count is a number of at least 1.
type count int64

// UnmarshalText parses a whole number of at least 1.
func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is no whole number between 1 and 2147483647", text)
	}
	*c = count(n)
	return nil
}

// lifetime is a duration of at least a second.
type lifetime time.Duration

// UnmarshalText parses a duration in the format of Go.
func (l *lifetime) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < time.Second {
		return fmt.Errorf("%q is no time of at least 1s, such as 12h or 90m", text)
	}
	*l = lifetime(d)
	return nil
}

// stopDelay is a duration of at most 10 minutes, which may be 0s.
type stopDelay time.Duration

// UnmarshalText parses a duration in the format of Go.
func (s *stopDelay) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > 10*time.Minute {
		return fmt.Errorf("%q is no time between 0s and 10m, such as 10s", text)
	}
	*s = stopDelay(d)
	return nil
}

// days is a number of days; 0 is unlimited.
type days int

// UnmarshalText parses a whole number followed by d, or 0.
func (d *days) UnmarshalText(text []byte) error {
	digits, ok := strings.CutSuffix(string(text), "d")
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || !ok && n != 0 || n > 36_500 {
		return fmt.Errorf("%q is no number of days, such as 400d, or 0 for ever", text)
	}
	*d = days(n)
	return nil
}

// String returns the number followed by d.
func (d days) String() string { return strconv.Itoa(int(d)) + "d" }
