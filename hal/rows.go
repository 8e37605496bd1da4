package hal

import (
	"iter"
	"maps"
	"slices"
)

// Rows are resources inside a collection that are made and encoded one by one.
type Rows iter.Seq[Resource]

// MarshalJSON implements json.Marshaler.
func (r Rows) MarshalJSON() ([]byte, error) {
	return r.stream(nil, func(dst []byte) ([]byte, error) { return dst, nil })
}

// Stream appends v as Append does, but calls flush after each of the Rows that are embedded in it: flush may write dst and
// return it emptied.
func Stream(dst []byte, v any, flush func(dst []byte) ([]byte, error)) ([]byte, error) {
	r, ok := v.(Resource)
	if !ok || !r.hasRows() {
		return Append(dst, v)
	}
	embedded := r.Embedded
	r.Embedded = nil
	dst, err := r.AppendJSON(dst)
	if err != nil {
		return nil, err
	}
	dst = append(dst[:len(dst)-1], `,"_embedded":`...)
	before := byte('{')
	for _, rel := range slices.Sorted(maps.Keys(embedded)) {
		dst = append(AppendString(append(dst, before), rel), ':')
		before = ','
		if rows, ok := embedded[rel].(Rows); ok {
			dst, err = rows.stream(dst, flush)
		} else {
			dst, err = Append(dst, embedded[rel])
		}
		if err != nil {
			return nil, err
		}
	}
	return append(dst, "}}"...), nil
}

func (r Resource) hasRows() bool {
	for _, v := range r.Embedded {
		if _, ok := v.(Rows); ok {
			return true
		}
	}
	return false
}

func (r Rows) stream(dst []byte, flush func([]byte) ([]byte, error)) (_ []byte, err error) {
	before := byte('[')
	for row := range r {
		if dst, err = row.AppendJSON(append(dst, before)); err != nil {
			return nil, err
		}
		if dst, err = flush(dst); err != nil {
			return nil, err
		}
		before = ','
	}
	if before == '[' {
		dst = append(dst, '[')
	}
	return append(dst, ']'), nil
}
