// Package fieldtest makes tests notice new fields. Only tests import it.
package fieldtest

import (
	"reflect"
	"slices"
	"testing"
)

// Full fails for each exported field of a struct that is zero, unless it is in except. A round trip
// of the struct only checks fields that have a value.
func Full(t testing.TB, row any, except ...string) {
	t.Helper()
	v := reflect.ValueOf(row)
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.IsExported() && v.Field(i).IsZero() && !slices.Contains(except, f.Name) {
			t.Errorf("%s.%s is zero: give it a value here, so that the round trip checks its column", v.Type(), f.Name)
		}
	}
}
