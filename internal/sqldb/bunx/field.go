package bunx

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
)

// TimeOf is the Field of a column that holds a Time.
func TimeOf(t *time.Time) any { return timeField{t} }

// TimeOrNull is TimeOf for a column that stores nil as NULL.
func TimeOrNull(t **time.Time) any { return nullTimeField{t} }

type timeField struct{ t *time.Time }

// Scan implements sql.Scanner.
func (f timeField) Scan(src any) error {
	var t Time
	err := t.Scan(src)
	*f.t = t.Time
	return err
}

// Value implements driver.Valuer.
func (f timeField) Value() (driver.Value, error) { return At(*f.t).Value() }

type nullTimeField struct{ t **time.Time }

// Scan implements sql.Scanner.
func (f nullTimeField) Scan(src any) error {
	var t Time
	err := t.Scan(src)
	*f.t = t.Ptr()
	return err
}

// Value implements driver.Valuer.
func (f nullTimeField) Value() (driver.Value, error) { return AtOrNull(*f.t).Value() }

// TextOrNull is the Field of a column that stores "" as NULL.
func TextOrNull(s *string) any { return textField{s} }

type textField struct{ s *string }

// Scan implements sql.Scanner.
func (f textField) Scan(src any) (err error) {
	*f.s, err = text(src)
	return err
}

// Value implements driver.Valuer.
func (f textField) Value() (driver.Value, error) {
	if *f.s == "" {
		return nil, nil
	}
	return *f.s, nil
}

func (f textField) size() int { return len(*f.s) }

// JSON is the Field of a column of text that holds JSON.
func JSON(raw *json.RawMessage) any { return jsonField{raw} }

// JSONOrNull is JSON for a column that stores nil as NULL.
func JSONOrNull(raw *json.RawMessage) any { return nullJSONField{jsonField{raw}} }

type jsonField struct{ raw *json.RawMessage }

// Scan implements sql.Scanner.
func (f jsonField) Scan(src any) error {
	s, err := text(src)
	*f.raw = nil
	if src != nil {
		*f.raw = json.RawMessage(s)
	}
	return err
}

// Value implements driver.Valuer.
func (f jsonField) Value() (driver.Value, error) { return string(*f.raw), nil }

func (f jsonField) size() int { return len(*f.raw) }

type nullJSONField struct{ jsonField }

// Value implements driver.Valuer.
func (f nullJSONField) Value() (driver.Value, error) {
	if len(*f.raw) == 0 {
		return nil, nil
	}
	return f.jsonField.Value()
}

// JSONArray is the Field of a column of text that holds a JSON array. An empty array is read as
// nil.
func JSONArray[T any](all *[]T) any { return &arrayField[T]{all: all} }

type arrayField[T any] struct {
	all   *[]T
	bytes int // that were scanned
}

// Scan implements sql.Scanner.
func (f *arrayField[T]) Scan(src any) error {
	s, err := text(src)
	*f.all, f.bytes = nil, len(s)
	if err != nil || s == "" || s == "[]" {
		return err
	}
	return json.Unmarshal([]byte(s), f.all)
}

// Value implements driver.Valuer.
func (f *arrayField[T]) Value() (driver.Value, error) {
	if len(*f.all) == 0 {
		return "[]", nil
	}
	raw, err := json.Marshal(*f.all)
	return string(raw), err
}

func (f *arrayField[T]) size() int { return f.bytes }

// text returns the text of a column, "" for NULL.
func text(src any) (string, error) {
	switch v := src.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("bunx: cannot read text from %T", src)
}
