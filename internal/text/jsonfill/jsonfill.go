// Package jsonfill decodes JSON into structs. Its errors name the field of an invalid value. It
// also reports members without a field, and suggests similar names.
//
// Package httpapi decodes request bodies with it. Package internal/scripts decodes the arguments of
// the functions of scripts.
package jsonfill

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Field is a field of a body that may be absent, null or a value, if null has a meaning. A field
// that may be absent but not null is a pointer. A partial PUT changes only fields that are Set.
type Field[T any] struct {
	Set   bool
	Value *T // nil for null
}

// Apply sets dst to the value if the field is set, and to the zero value for null.
func (f Field[T]) Apply(dst *T) {
	if !f.Set {
		return
	}
	var zero T
	if *dst = zero; f.Value != nil {
		*dst = *f.Value
	}
}

// ApplyOrNull sets dst to the value if the field is set, and to nil for null.
func (f Field[T]) ApplyOrNull(dst **T) {
	if f.Set {
		*dst = f.Value
	}
}

// FillField implements fieldFiller.
func (f *Field[T]) FillField(by *Filler, raw json.RawMessage, path string) error {
	f.Set = true
	if IsNull(raw) {
		return nil
	}
	f.Value = new(T)
	return by.Fill(raw, f.Value, path)
}

type fieldFiller interface {
	FillField(by *Filler, raw json.RawMessage, path string) error
}

// Filler decodes JSON into values and collects the members without a field, at any depth.
type Filler struct {
	Unknown []UnknownMember
}

// UnknownMember is a member of an object for which the struct has no field.
type UnknownMember struct {
	At    string // the path of the object; "" for the body
	Name  string
	Known []string // the members that the object may have
}

// Fill decodes JSON into a value as json.Unmarshal does, with two differences for structs. Names
// must match exactly; json.Unmarshal accepts "TENANT" for "tenant". The error for a value of the
// wrong type names its field.
func (by *Filler) Fill(raw json.RawMessage, into any, path string) error {
	if f, ok := into.(fieldFiller); ok {
		return f.FillField(by, raw, path)
	}
	v := reflect.ValueOf(into).Elem()
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
		return by.fillSlice(raw, v, path)
	}
	if _, own := into.(json.Unmarshaler); own || v.Kind() != reflect.Struct {
		return by.fillPlain(raw, v, path)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return WrongType(path, v.Type())
	}
	return by.FillMembers(members, v, path)
}

// FillMembers decodes the members of an object into the fields of a struct, as Fill does.
func (by *Filler) FillMembers(members map[string]json.RawMessage, v reflect.Value, path string) error {
	left := maps.Clone(members)
	if err := by.FillFields(left, v, path); err != nil || len(left) == 0 {
		return err
	}
	known := slices.Sorted(maps.Keys(FieldTypes(v.Type())))
	for _, name := range slices.Sorted(maps.Keys(left)) {
		by.Unknown = append(by.Unknown, UnknownMember{path, name, known})
	}
	return nil
}

// FillFields decodes the members with a field, and removes them from members.
func (by *Filler) FillFields(members map[string]json.RawMessage, v reflect.Value, path string) error {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous { // its fields are members of the same object
			if err := by.FillFields(members, v.Field(i), path); err != nil {
				return err
			}
			continue
		}
		name := v.Type().Field(i).Tag.Get("json")
		member, given := members[name]
		if !given {
			continue
		}
		delete(members, name)
		if err := by.Fill(member, v.Field(i).Addr().Interface(), Join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// FieldTypes returns the types of a struct's fields by the names that Fill uses.
func FieldTypes(t reflect.Type) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	fieldTypes(t, types)
	return types
}

func fieldTypes(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fieldTypes(f.Type, into)
			continue
		}
		of := f.Type
		if of.Kind() == reflect.Struct {
			if value, is := of.FieldByName("Value"); is { // a Field[T]
				of = value.Type
			}
		}
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		into[f.Tag.Get("json")] = of
	}
}

// fillSlice decodes an array of structs. Its error names the element.
func (by *Filler) fillSlice(raw json.RawMessage, v reflect.Value, path string) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || elements == nil {
		return WrongType(path, v.Type())
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if err := by.Fill(element, v.Index(i).Addr().Interface(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// fillPlain decodes a value that is not a struct. null is a wrong type, except for raw JSON.
func (by *Filler) fillPlain(raw json.RawMessage, v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return by.Fill(raw, v.Interface(), path)
	}
	if IsNull(raw) && v.Type() != reflect.TypeFor[json.RawMessage]() {
		return WrongType(path, v.Type())
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return WrongType(path, v.Type())
	}
	return nil
}

// IsNull reports whether a JSON value is null.
func IsNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// Join returns the path of a member of the value at a path.
func Join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// WrongType returns an errs.Invalid that names a field and the type it must have.
func WrongType(path string, t reflect.Type) error {
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "an array", reflect.Map: "an object",
		reflect.Struct: "an object", reflect.Int: "a whole number",
		reflect.Int64: "a whole number", reflect.Float64: "a number",
	}[t.Kind()]
	switch {
	case t == reflect.TypeFor[Timestamp]():
		want = "a time such as 2026-11-20T20:31:00.123Z"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		want = "an array of strings"
	}
	if path == "" {
		return errs.New(errs.Invalid, "The body must be a JSON object.")
	}
	return errs.New(errs.Invalid, "%s must be %s", path, want)
}

// Timestamp is a time in a body, in the format of RFC 3339. Its year in UTC is from 1 to 9999,
// which every database can store.
type Timestamp struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Timestamp) UnmarshalJSON(raw []byte) error {
	if err := t.Time.UnmarshalJSON(raw); err != nil {
		return err
	}
	if year := t.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("the year %d", year)
	}
	return nil
}
