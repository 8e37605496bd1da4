package datasets

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// Op is how a Condition compares.
type Op string

// The operators.
const (
	Equal    Op = "eq"
	NotEqual Op = "ne" // null is not equal to any other value
	Greater  Op = "gt"
	AtLeast  Op = "gte"
	Less     Op = "lt"
	AtMost   Op = "lte"
	In       Op = "in"
	Contains Op = "contains" // of texts, ignoring case
)

// Filter selects the rows that fit all its conditions.
type Filter []Condition

// Condition is a condition for one field. null fits Equal with nil, In with nil among the values,
// NotEqual with anything else than nil, and nothing else.
type Condition struct {
	Field string
	Op    Op
	// Value is nil, a string, float64, time.Time or bool, as the field's type has it. It is not
	// used by In.
	Value any
	// Values are those of In.
	Values []any

	folded string // of Contains
}

// Fits reports whether a value of the field's type fits.
func (c Condition) Fits(v any) bool {
	switch c.Op {
	case Equal:
		return same(v, c.Value)
	case NotEqual:
		return !same(v, c.Value)
	case In:
		return slices.ContainsFunc(c.Values, func(one any) bool { return same(v, one) })
	case Contains:
		text, ok := v.(string)
		return ok && strings.Contains(fold.Text(text), c.folded)
	}
	if v == nil || c.Value == nil {
		return false
	}
	n := compare(v, c.Value)
	switch c.Op {
	case Greater:
		return n > 0
	case AtLeast:
		return n >= 0
	case Less:
		return n < 0
	}
	return n <= 0
}

func same(a, b any) bool {
	if a == nil || b == nil {
		return a == b
	}
	return compare(a, b) == 0
}

// The bounds of filters.
const (
	maxConditions = 100
	maxValues     = 1_000 // of In
)

// readFilter reads a filter: {field: value} or {field: {operator: value, …}}, all of which must
// hold. Errors: errs.Invalid naming the field.
func readFilter(fields []Field, raw json.RawMessage) (Filter, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, errs.New(errs.Invalid, "filter must be an object: {field: value} or {field: {gt: value}}")
	}
	var filter Filter
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if at < 0 {
			return nil, errs.New(errs.Invalid, "filter.%s is no field of the dataset", name)
		}
		f := fields[at]
		if f.Type == Object {
			return nil, errs.New(errs.Invalid, "filter.%s: fields of the type object are not compared", name)
		}
		var some map[string]json.RawMessage
		if v := members[name]; len(v) == 0 || v[0] != '{' {
			some = map[string]json.RawMessage{string(Equal): v}
		} else if err := json.Unmarshal(v, &some); err != nil || len(some) == 0 {
			return nil, errs.New(
				errs.Invalid,
				"filter.%s must be a value or an object with gt, gte, lt, lte, in, contains, ne or eq", name,
			)
		}
		for _, op := range slices.Sorted(maps.Keys(some)) {
			place := fmt.Sprintf("filter.%s.%s", name, op)
			if members[name][0] != '{' {
				place = "filter." + name
			}
			c, err := condition(f, Op(op), some[op], place)
			if err != nil {
				return nil, err
			}
			filter = append(filter, c)
		}
	}
	if len(filter) > maxConditions {
		return nil, errs.New(errs.Invalid, "filter has %d conditions, where %d are allowed", len(filter), maxConditions)
	}
	return filter, nil
}

// condition reads a condition; place is where it is.
func condition(f Field, op Op, raw json.RawMessage, place string) (Condition, error) {
	c := Condition{Field: f.Name, Op: op}
	ok := true
	switch op {
	case Equal, NotEqual:
		c.Value, ok = valueOf(f.Type, raw)
	case Greater, AtLeast, Less, AtMost:
		if c.Value, ok = valueOf(f.Type, raw); c.Value == nil {
			ok = false
		}
	case In:
		var all []json.RawMessage
		if json.Unmarshal(raw, &all) != nil || len(all) > maxValues {
			return c, errs.New(errs.Invalid, "%s must be an array of at most %d values", place, maxValues)
		}
		for i, one := range all {
			v, ok := valueOf(f.Type, one)
			if !ok {
				return c, errs.New(errs.Invalid, "%s[%d] must be %s", place, i, described(f.Type))
			}
			c.Values = append(c.Values, v)
		}
	case Contains:
		if f.Type != String {
			return c, errs.New(errs.Invalid, "%s: only text contains something", place)
		}
		var text string
		c.Value, ok = valueOf(String, raw)
		if text, _ = c.Value.(string); c.Value == nil {
			ok = false
		}
		c.folded = fold.Text(text)
	default:
		return c, errs.New(errs.Invalid, "%s: the operators are gt, gte, lt, lte, in, contains, ne and eq", place)
	}
	if !ok {
		return c, errs.New(errs.Invalid, "%s must be %s", place, described(f.Type))
	}
	return c, nil
}
