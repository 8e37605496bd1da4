package tenantcontent

import (
	"fmt"
	"net/netip"
	"reflect"

	"github.com/tenantcontent/tenantcontent/errs"
)

// check returns errs.Invalid naming the first field that no App can work with: a driver, or other
// implementation of an interface, that is nil; a negative number; an empty network; Resume without
// Authenticate. What only a package knows is checked there.
func (c Config) check() error {
	if c.DB == nil {
		return errs.New(errs.Invalid, "Config.DB is required")
	}
	for i := range reflect.TypeFor[Config]().NumField() {
		name := reflect.TypeFor[Config]().Field(i).Name
		if name == "KeepActivities" { // for ever if it is negative
			continue
		}
		if err := checkField("Config."+name, reflect.ValueOf(c).Field(i), true); err != nil {
			return err
		}
	}
	if c.Resume != nil && c.Authenticate == nil {
		return errs.New(
			errs.Invalid,
			"Config.Resume is set and Config.Authenticate is not: Resume returns the users whom Authenticate has "+
				"returned. Set both, or neither",
		)
	}
	return nil
}

// checkField checks a field of a Config and what is in it. One that is optional may be nil.
func checkField(name string, v reflect.Value, optional bool) error {
	if network, ok := v.Interface().(netip.Prefix); ok {
		if !network.IsValid() {
			return errs.New(
				errs.Invalid, "%s is not a network: write it as netip.MustParsePrefix(\"10.0.0.0/8\")", name,
			)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() && !optional {
			return errs.New(errs.Invalid, "%s is nil: leave it out", name)
		}
		if in := v.Elem(); !v.IsNil() && in.Kind() == reflect.Pointer && in.IsNil() {
			return errs.New(
				errs.Invalid, "%s is a nil %s: leave it out, or set it to one that is not nil", name, in.Type(),
			)
		}
	case reflect.Int, reflect.Int64: // time.Duration, too
		if v.Int() < 0 {
			return errs.New(
				errs.Invalid, "%s must not be negative: it is %v, and 0 is its default", name, v.Interface(),
			)
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkField(fmt.Sprintf("%s[%d]", name, i), v.Index(i), false); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if err := checkField(name+"."+f.Name, v.Field(i), true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
