package workspaces

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Limits bound the result of a statement.
type Limits struct {
	Rows  int // default 10,000
	Bytes int // of JSON; default 4 MiB
}

// WithDefaults returns the limits with the defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	if l.Rows <= 0 {
		l.Rows = 10_000
	}
	if l.Bytes <= 0 {
		l.Bytes = 4 << 20
	}
	return l
}

// Rows encodes the rows of a result as a JSON array of objects. Drivers use it.
type Rows struct {
	limits Limits
	names  [][]byte // with quotes and colon; nil for a column whose name a later one has
	out    []byte
	n      int
}

// NewRows returns the encoder of a result with some columns. Of columns with one name the last
// counts.
func NewRows(columns []string, l Limits) *Rows {
	r := &Rows{limits: l.WithDefaults(), names: make([][]byte, len(columns)), out: []byte{'['}}
	last := map[string]int{}
	for i, name := range columns {
		last[name] = i
	}
	for i, name := range columns {
		if last[name] == i {
			r.names[i] = append(appendText(nil, name), ':')
		}
	}
	return r
}

// NumberDigits is how many decimal digits JavaScript's numbers hold of any value.
const NumberDigits = 15

// safe is the largest integer that JavaScript's numbers hold exactly.
const safe = 1<<53 - 1

// Add adds a row of values: nil, bool, int64, float64, string, []byte, time.Time and
// json.RawMessage. It returns errs.TooLarge if the result has too many rows or bytes then.
func (r *Rows) Add(values []any) error {
	if r.n++; r.n > r.limits.Rows {
		return errs.New(errs.TooLarge, "The result has more than %d rows: add a LIMIT or a condition.", r.limits.Rows)
	}
	if r.n > 1 {
		r.out = append(r.out, ',')
	}
	r.out = append(r.out, '{')
	first := true
	for i, v := range values {
		if r.names[i] == nil {
			continue
		}
		if !first {
			r.out = append(r.out, ',')
		}
		first = false
		r.out = append(r.out, r.names[i]...)
		if size(v)+len(r.out) > r.limits.Bytes {
			return errs.New(
				errs.TooLarge, "The result is larger than %d bytes: read fewer rows or columns.",
				r.limits.Bytes,
			)
		}
		r.out = appendValue(r.out, v)
	}
	r.out = append(r.out, '}')
	if len(r.out) > r.limits.Bytes {
		return errs.New(
			errs.TooLarge, "The result is larger than %d bytes: read fewer rows or columns.", r.limits.Bytes,
		)
	}
	return nil
}

// JSON returns the array.
func (r *Rows) JSON() json.RawMessage { return append(r.out, ']') }

// size returns how many bytes a large value has at least as JSON.
func size(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return base64.StdEncoding.EncodedLen(len(v))
	case json.RawMessage:
		return len(v)
	}
	return 0
}

func appendValue(out []byte, v any) []byte {
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(out, v)
	case int64:
		if v > safe || v < -safe {
			return append(strconv.AppendInt(append(out, '"'), v, 10), '"')
		}
		return strconv.AppendInt(out, v, 10)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return append(strconv.AppendFloat(append(out, '"'), v, 'g', -1, 64), '"')
		}
		text, _ := json.Marshal(v)
		return append(out, text...)
	case string:
		return appendText(out, v)
	case []byte:
		out = base64.StdEncoding.AppendEncode(append(out, '"'), v)
		return append(out, '"')
	case time.Time:
		return append(append(append(out, '"'), Time(v)...), '"')
	case json.RawMessage:
		return append(out, v...)
	}
	return append(out, "null"...)
}

// Time returns a time as it is in results: in UTC, with three digits of a second or, if it has
// more, six.
func Time(t time.Time) string {
	layout := "2006-01-02T15:04:05.000Z"
	if t.Nanosecond()%1_000_000 != 0 {
		layout = "2006-01-02T15:04:05.000000Z"
	}
	return t.UTC().Format(layout)
}

func appendText(out []byte, s string) []byte {
	if strings.IndexFunc(s, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) < 0 {
		return append(append(append(out, '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string cannot fail
	return append(out, bytes.TrimRight(b.Bytes(), "\n")...)
}

// Params returns the values of a JSON array: nil, bool, int64, float64, string, []byte for an
// object of the form {"base64": "…"}, and json.RawMessage for other objects and for arrays. An
// integer that int64 cannot hold is a string. Errors: errs.Invalid.
func Params(raw json.RawMessage) ([]any, error) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, errs.New(errs.Invalid, "params must be an array of the values of $1, $2 and so on.")
	}
	values := make([]any, len(all))
	for i, one := range all {
		v, err := Param(one)
		if err != nil {
			return nil, errs.New(errs.Invalid, "params[%d]: %s", i, errs.MessageOf(err))
		}
		values[i] = v
	}
	return values, nil
}

// Param returns a value of JSON as Params does.
func Param(raw json.RawMessage) (any, error) {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		if err == nil && strings.ContainsRune(s, 0) {
			return nil, errs.New(errs.Invalid, "a text cannot have a NUL character; pass bytes as {\"base64\": \"…\"}.")
		}
		return s, err
	case '{':
		var bytes struct {
			Base64 *string `json:"base64"`
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err == nil && len(members) == 1 && members["base64"] != nil &&
			json.Unmarshal(raw, &bytes) == nil && bytes.Base64 != nil {
			b, err := base64.StdEncoding.DecodeString(*bytes.Base64)
			if err != nil {
				return nil, errs.New(errs.Invalid, "the text of base64 is not base64.")
			}
			return b, nil
		}
		return raw, nil
	case '[':
		return raw, nil
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return text, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, errs.New(errs.Invalid, "%s is no number that a database holds.", text)
	}
	return f, nil
}
