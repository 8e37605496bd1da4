package drafts

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// Sealer encrypts secrets so that a value opens only in the place it was sealed for. *keyring.Ring
// implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Secrets keeps the secrets of the entities of a noun: names with values, which are encrypted
// together and bound to the row.
type Secrets struct {
	Keys          Sealer
	Table, Column string // where they are sealed
	Field         string // as errors name it
	Things        string // what they are, in the plural
}

// The most that the secrets of an entity may have.
const (
	maxSecrets  = 200
	maxValue    = 64 << 10  // bytes of a value
	maxAllBytes = 256 << 10 // bytes of all values
)

var secretName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// Open returns the secrets of an entity.
func (s Secrets) Open(f Fields) (map[string]string, error) {
	values := map[string]string{}
	if *f.Sealed == "" {
		return values, nil
	}
	plain, err := s.Keys.Open(*f.Tenant, s.Table, s.Column, *f.ID, *f.Sealed)
	if err != nil {
		return nil, err
	}
	return values, json.Unmarshal(plain, &values)
}

// Names returns the names of the secrets of an entity, ordered.
func (s Secrets) Names(f Fields) ([]string, error) {
	values, err := s.Open(f)
	return slices.Sorted(maps.Keys(values)), err
}

// AcceptNames checks the names of secrets, which come without values, and returns them ordered and
// each once. Errors: as Accept.
func (s Secrets) AcceptNames(names []string) ([]string, error) {
	none := make(map[string]string, len(names))
	for _, name := range names {
		none[name] = ""
	}
	return slices.Sorted(maps.Keys(none)), s.Accept(none)
}

// Split returns those of some secrets that have names, and the names that none has, in their order.
func (s Secrets) Split(values map[string]string, names []string) (named map[string]string, without []string) {
	named = map[string]string{}
	for _, name := range names {
		if value, ok := values[name]; ok {
			named[name] = value
		} else {
			without = append(without, name)
		}
	}
	return named, without
}

// Seal sets the secrets of an entity.
func (s Secrets) Seal(f Fields, values map[string]string) error {
	if len(values) == 0 {
		*f.Sealed = ""
		return nil
	}
	plain, err := json.Marshal(values)
	if err != nil {
		return err
	}
	*f.Sealed, err = s.Keys.Seal(*f.Tenant, s.Table, s.Column, *f.ID, plain)
	return err
}

// Copy sets the secrets of an entity to those of another one.
func (s Secrets) Copy(f, of Fields) error {
	values, err := s.Open(of)
	if err != nil {
		return err
	}
	return s.Seal(f, values)
}

// Change changes secrets of an entity, and returns what it has then: nil removes one, and
// entity.Mask keeps its value.
// Errors: errs.Invalid.
func (s Secrets) Change(f Fields, changed map[string]*string) (map[string]string, error) {
	values, err := s.Open(f)
	if err != nil {
		return nil, err
	}
	different := false
	for name, value := range changed {
		old, there := values[name]
		switch {
		case value == nil:
			delete(values, name)
			different = different || there
		case *value == entity.Mask && there:
		case *value == entity.Mask:
			return nil, errs.New(
				errs.Invalid, "%s.%s: %s stands for a value that is there already, and there is none", s.Field,
				short(name), entity.Mask,
			)
		default:
			values[name] = *value
			different = different || !there || old != *value
		}
	}
	if err := s.Accept(values); err != nil || !different {
		return values, err
	}
	return values, s.Seal(f, values)
}

// Accept checks secrets. Errors: errs.Invalid naming the field.
func (s Secrets) Accept(values map[string]string) error {
	if len(values) > maxSecrets {
		return errs.New(errs.Invalid, "%s must have at most %d %s", s.Field, maxSecrets, s.Things)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !secretName.MatchString(name) {
			return errs.New(
				errs.Invalid,
				"%s: %q must be 1 to 128 letters, digits and underscores and not begin with a digit", s.Field,
				short(name),
			)
		}
		if len(values[name]) > maxValue || !escapes.StorableWithin(values[name], maxValue) {
			return errs.New(
				errs.Invalid, "%s.%s must be UTF-8 without NUL and have at most %d bytes", s.Field, name,
				maxValue,
			)
		}
		total += len(values[name])
	}
	if total > maxAllBytes {
		return errs.New(errs.Invalid, "%s must have at most %d bytes in all", s.Field, maxAllBytes)
	}
	return nil
}

func short(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}
