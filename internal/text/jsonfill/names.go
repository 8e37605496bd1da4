package jsonfill

import (
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// RefuseOptions returns errs.Invalid if an argument of a function has unknown members. The error
// names the first of them.
func (by *Filler) RefuseOptions(function string) error {
	if len(by.Unknown) == 0 {
		return nil
	}
	m := by.Unknown[0]
	if meant := Nearest(m.Name, m.Known); meant != "" {
		return errs.New(
			errs.Invalid, "%s: unknown option %s: did you mean %s?", function, Join(m.At, m.Name),
			Join(m.At, meant),
		)
	}
	return errs.New(
		errs.Invalid, "%s: unknown option %.64q: it has %s", function, Join(m.At, m.Name),
		strings.Join(m.Known, ", "),
	)
}

// UnknownName returns an errs.Invalid for a name that is unknown to a route, or to the object at a
// path of its body. The error suggests the nearest known name, or lists all known names.
func UnknownName(what, at, name string, known []string) error {
	meant := Nearest(name, known)
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "…"
	}
	name = Join(at, name)
	switch {
	case meant != "":
		return errs.New(errs.Invalid, "unknown %s %s: did you mean %s?", what, name, Join(at, meant))
	case len(known) == 0:
		return errs.New(errs.Invalid, "unknown %s %s: this route has none", what, name)
	case at != "":
		return errs.New(errs.Invalid, "unknown %s %s: %s has %s", what, name, at, strings.Join(known, ", "))
	}
	return errs.New(errs.Invalid, "unknown %s %s: this route has %s", what, name, strings.Join(known, ", "))
}

// Nearest returns the known name that is most similar to a name, or "". Case, hyphens and
// underscores are ignored. At most one letter or a third of the name's letters may differ.
func Nearest(name string, known []string) string {
	plain := []rune(plainName(name))
	best, least := "", max(2, len(plain)/3+1)
	for _, k := range known {
		other := []rune(plainName(k))
		if max(len(plain)-len(other), len(other)-len(plain)) >= least {
			continue // without comparing the letters of long names
		}
		if d := distance(plain, other); d < least {
			best, least = k, d
		}
	}
	return best
}

func plainName(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.ToUpper(s))) // also makes ſ an s
}

// distance returns the number of letters to add, remove or change to turn b into a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
