package hal

import (
	"iter"
	"maps"
	"slices"
)

// Rows are resources inside a collection that are made and encoded one at a time.
type Rows iter.Seq[Resource]

// MarshalJSON implements json.Marshaler.
func (r Rows) MarshalJSON() ([]byte, error) { return r.stream(nil, nil) }

// Stream appends v as Append does, but calls flush after each resource of the Rows in it. flush may
// write dst and return it emptied.
func Stream(dst []byte, v any, flush func(dst []byte) ([]byte, error)) ([]byte, error) {
	if r, ok := v.(Resource); ok {
		return r.stream(dst, flush)
	}
	return Append(dst, v)
}

func (r Resource) stream(dst []byte, flush func([]byte) ([]byte, error)) (_ []byte, err error) {
	if dst, err = r.members(dst); err != nil {
		return nil, err
	}
	if r.Last != nil {
		dst = append(AppendString(append(dst, ','), r.Last.Name), ':')
		if dst, err = r.Last.Rows.stream(dst, flush); err != nil {
			return nil, err
		}
	}
	if r.Embedded != nil {
		dst = append(dst, `,"_embedded":{`...)
		for i, rel := range slices.Sorted(maps.Keys(r.Embedded)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(AppendString(dst, rel), ':')
			if rows, ok := r.Embedded[rel].(Rows); ok {
				dst, err = rows.stream(dst, flush)
			} else {
				dst, err = embedded(dst, r.Embedded[rel])
			}
			if err != nil {
				return nil, err
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, '}'), nil
}

// embedded appends what is embedded.
func embedded(dst []byte, v any) ([]byte, error) {
	if v == nil {
		return append(dst, "null"...), nil
	}
	return Append(dst, v)
}

func (r Rows) stream(dst []byte, flush func([]byte) ([]byte, error)) (_ []byte, err error) {
	before := byte('[')
	for row := range r {
		if dst, err = row.stream(append(dst, before), flush); err != nil {
			return nil, err
		}
		if flush != nil {
			if dst, err = flush(dst); err != nil {
				return nil, err
			}
		}
		before = ','
	}
	if before == '[' {
		dst = append(dst, '[')
	}
	return append(dst, ']'), nil
}
