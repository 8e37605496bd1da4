package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// field is a field of a body that may be left out, null or a value, where null means something. One that may be left out and
// must not be null is a pointer. A partial PUT changes only fields that are Set.
type field[T any] struct {
	Set   bool
	Value *T // nil for null
}

// apply writes a given value over dst, and the zero value for null.
func (f field[T]) apply(dst *T) {
	if !f.Set {
		return
	}
	var zero T
	if *dst = zero; f.Value != nil {
		*dst = *f.Value
	}
}

// applyOrNull writes a given value over dst, nil for null.
func (f field[T]) applyOrNull(dst **T) {
	if f.Set {
		*dst = f.Value
	}
}

// fillField implements fieldFiller.
func (f *field[T]) fillField(raw json.RawMessage, path string) error {
	f.Set = true
	if isNull(raw) {
		return nil
	}
	f.Value = new(T)
	return fill(raw, f.Value, path)
}

type fieldFiller interface {
	fillField(raw json.RawMessage, path string) error
}

// fill reads JSON into a value as json.Unmarshal does, with two differences for structs: names must match exactly
// (json.Unmarshal takes "TENANT" for "tenant"), and a value of the wrong type is an error that names its field.
func fill(raw json.RawMessage, into any, path string) error {
	if f, ok := into.(fieldFiller); ok {
		return f.fillField(raw, path)
	}
	v := reflect.ValueOf(into).Elem()
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct {
		return fillSlice(raw, v, path)
	}
	if _, own := into.(json.Unmarshaler); own || v.Kind() != reflect.Struct {
		return fillPlain(raw, v, path)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return wrongType(path, v.Type())
	}
	return fillStruct(members, v, path)
}

func fillStruct(members map[string]json.RawMessage, v reflect.Value, path string) error {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous { // its fields are members of the same object
			if err := fillStruct(members, v.Field(i), path); err != nil {
				return err
			}
			continue
		}
		name := v.Type().Field(i).Tag.Get("json")
		member, given := members[name]
		if !given {
			continue
		}
		if err := fill(member, v.Field(i).Addr().Interface(), join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// fillSlice reads a list of structs. An error names the element.
func fillSlice(raw json.RawMessage, v reflect.Value, path string) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil || elements == nil {
		return wrongType(path, v.Type())
	}
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if err := fill(element, v.Index(i).Addr().Interface(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// fillPlain reads a value that is no struct. null is the wrong type, except for raw JSON.
func fillPlain(raw json.RawMessage, v reflect.Value, path string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		return fill(raw, v.Interface(), path)
	}
	if isNull(raw) && v.Type() != reflect.TypeFor[json.RawMessage]() {
		return wrongType(path, v.Type())
	}
	if err := json.Unmarshal(raw, v.Addr().Interface()); err != nil {
		return wrongType(path, v.Type())
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

// wrongType returns an errs.Invalid that names a field and the type it must have.
func wrongType(path string, t reflect.Type) error {
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "an array", reflect.Map: "an object",
		reflect.Struct: "an object", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
	}[t.Kind()]
	switch {
	case t == reflect.TypeFor[timestamp]():
		want = "a time such as 2026-11-20T20:31:00.123Z"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		want = "an array of strings"
	}
	if path == "" {
		return errs.New(errs.Invalid, "The body must be a JSON object.")
	}
	return errs.New(errs.Invalid, "%s must be %s", path, want)
}
