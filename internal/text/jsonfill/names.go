package jsonfill

import (
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// RefuseOptions returns errs.Invalid for a member of an argument that a function of handlers does
// not know.
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

// UnknownName returns an errs.Invalid for a name that a route does not know, or the object at a
// path of its body, with the known names and the nearest of them.
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

// Nearest returns the name that another one is a misspelling of, "" for none: apart from case and
// hyphens, one letter or at most a third of its letters differ.
func Nearest(name string, known []string) string {
	plain := []rune(plainName(name))
	best, least := "", max(2, len(plain)/3+1)
	for _, k := range known {
		other := []rune(plainName(k))
		if max(len(plain)-len(other), len(other)-len(plain)) >= least {
			continue // before the letters of a long name are compared
		}
		if d := distance(plain, other); d < least {
			best, least = k, d
		}
	}
	return best
}

func plainName(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(strings.ToUpper(s))) // ſ is an s then, too
}

// distance is the number of letters to add, drop or change to make a of b.
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
