package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/jsonfill"
)

// archiveType is the media type of archives.
const archiveType = "application/gzip"

// NoOptions is the declaration of an action route without options.
type NoOptions struct{}

// Options returns the options of an action route, of which T is the declaration in the route table.
// They come from the query, the JSON body and the form fields before the file alike. Errors:
// errs.Invalid naming an option of the wrong type, or a member of an option that this does not
// have.
func Options[T any](r *Request) (in T, err error) {
	var by jsonfill.Filler
	if err := by.FillMembers(r.options, reflect.ValueOf(&in).Elem(), ""); err != nil {
		return in, err
	}
	return in, r.RefuseUnknown(by.Unknown, nil)
}

// ReadOptions reads the options of an action route from everywhere. Of a route with a file it reads
// a form up to the file, and nothing of a file that is the body. Errors: errs.Invalid for an option
// that the route does not know, that is null, or that is given twice with different values;
// errs.Unsupported for another content type; errs.TooLarge.
func (r *Request) ReadOptions(route *Route) error {
	known := jsonfill.FieldTypes(reflect.TypeOf(route.Options))
	r.options = map[string]json.RawMessage{}
	query, err := ParseQuery(r.Request)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		for _, text := range query[name] {
			if err := r.addText(known, name, text); err != nil {
				return err
			}
		}
	}
	if route.File {
		_, byID := known["uploadId"]
		return r.readFileOptions(known, byID)
	}
	return r.readJSONOptions(known)
}

// readFileOptions reads the options of a request with a file. If byID is set, a JSON body may name
// a staged file instead.
func (r *Request) readFileOptions(known map[string]reflect.Type, byID bool) error {
	given := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(given)
	switch {
	case err != nil && given != "":
		return errs.Wrap(errs.Invalid, err, "The Content-Type header cannot be read.")
	case IsJSON(kind) && byID:
		return r.readJSONOptions(known)
	case kind == FormType && r.ContentLength != 0 && r.isGzip(): // the default of curl
		return nil
	case IsJSON(kind) || strings.HasPrefix(kind, "text/") || kind == FormType && r.ContentLength != 0:
		return errs.New(errs.Unsupported,
			"The body must be an archive, not JSON, text or a form without a file: send the .tgz with the "+
				"header Content-Type: %s, or as the multipart field file.", archiveType)
	case kind == "multipart/form-data":
		return r.readForm(known)
	}
	return nil
}

// isGzip reports whether the body begins as gzip does.
func (r *Request) isGzip() bool {
	body := bufio.NewReader(r.Body)
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	first, _ := body.Peek(2)
	return string(first) == "\x1f\x8b"
}

// IsJSON reports whether a content type is one of JSON.
func IsJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// readJSONOptions reads the members of a JSON body.
func (r *Request) readJSONOptions(known map[string]reflect.Type) error {
	if r.ContentLength == 0 {
		return nil
	}
	raw, err := r.JsonBody()
	if err != nil || raw == nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, _ := d.Token(); first != json.Delim('{') {
		return jsonfill.WrongType("", reflect.TypeFor[struct{}]())
	}
	for d.More() { // a map would keep one of two members with the same name
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := r.addOption(known, name.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// addText adds an option that is given as text.
func (r *Request) addText(known map[string]reflect.Type, name, text string) error {
	t, ok := known[name]
	if !ok {
		return jsonfill.UnknownName("option", "", name, slices.Sorted(maps.Keys(known)))
	}
	raw, err := jsonOf(t, name, text)
	if err != nil {
		return err
	}
	return r.addOption(known, name, raw)
}

// addOption adds an option. Errors: errs.Invalid for one that the route does not know, that has
// another value already, or that is null.
func (r *Request) addOption(known map[string]reflect.Type, name string, raw json.RawMessage) error {
	if _, ok := known[name]; !ok {
		return jsonfill.UnknownName("option", "", name, slices.Sorted(maps.Keys(known)))
	}
	if before, twice := r.options[name]; twice && !sameJSON(before, raw) {
		return errs.New(errs.Invalid, "%s is given twice with different values: give it once", name)
	}
	if jsonfill.IsNull(raw) { // which is not a value: it would be taken for a false dryRun
		return errs.New(errs.Invalid, "%s must not be null: give it a value, or leave it out", name)
	}
	r.options[name] = raw
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// jsonOf turns the text of a parameter or form field into JSON for an option of type t: a string as
// it is, an empty boolean as true, an array of strings with commas between them, and anything else
// as JSON.
func jsonOf(t reflect.Type, name, text string) (json.RawMessage, error) {
	switch {
	case t.Kind() == reflect.String:
		return json.Marshal(text)
	case t.Kind() == reflect.Bool && text == "":
		return json.RawMessage("true"), nil
	case t.Kind() == reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, jsonfill.WrongType(name, t)
		}
		return strconv.AppendBool(nil, v), nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return json.Marshal(strings.FieldsFunc(text, func(c rune) bool { return c == ',' }))
	}
	if raw := []byte(text); json.Valid(raw) && !escapes.Bad(raw) {
		return raw, nil
	}
	return nil, errs.New(errs.Invalid, "%s must be JSON", name)
}

// readForm reads a form up to its field file, which r.part then is. The fields before it are
// options. All of them together may have as many bytes as a JSON body. Errors: errs.Invalid for a
// form that cannot be read and for a field that is not known; errs.TooLarge; errs.Unavailable.
func (r *Request) readForm(known map[string]reflect.Type) error {
	_, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	r.form = multipart.NewReader(r.Body, params["boundary"])
	for left := r.MaxBody; ; {
		part, err := r.form.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			return errs.New(errs.Invalid, "The form has no field file.")
		case err != nil:
			return errs.Wrap(errs.Invalid, err, "The form cannot be read.")
		case part.FormName() == "file":
			r.Part = part
			return nil
		}
		name := part.FormName()
		if _, ok := known[name]; !ok { // before it is read: it may be the file
			return errs.New(
				errs.Invalid, "%s; the file must be the field file",
				errs.MessageOf(jsonfill.UnknownName("option", "", name, slices.Sorted(maps.Keys(known)))),
			)
		}
		value, err := r.take(io.LimitReader(part, left+1))
		switch left -= int64(len(value)); {
		case errs.CodeOf(err) == errs.Unavailable:
			return err
		case err != nil:
			return errs.Wrap(errs.Invalid, err, "The form cannot be read.")
		case left < 0:
			return errs.New(errs.TooLarge, "The form fields before the file must have at most %d bytes.", r.MaxBody)
		}
		if !escapes.Storable(string(value)) {
			return errs.New(errs.Invalid, "%s must be UTF-8 without NUL", name)
		}
		if err := r.addText(known, name, string(value)); err != nil {
			return err
		}
	}
}

// FormFile returns the field file of a form, which is its last one.
func (r *Request) FormFile() io.Reader {
	return cut{&lastField{file: r.Part, form: r.form, place: r.place}}
}

// lastField is the file of a form. Its Read returns errs.Invalid if another field follows, which
// would be read too late.
type lastField struct {
	file  io.Reader
	form  *multipart.Reader
	place *place
	end   error // what the end was
}

func (l *lastField) Read(p []byte) (n int, err error) {
	if l.end != nil {
		return 0, l.end
	}
	n, err = l.file.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	l.end = l.after()
	l.place.Resume() // the body may go on behind the form, and is not read to its end then
	return n, l.end
}

// after returns io.EOF when the form ends.
func (l *lastField) after() error {
	part, err := l.form.NextRawPart()
	if err == nil {
		return errs.New(errs.Invalid, "The form field %s comes after the file: send it before.", part.FormName())
	}
	return err
}

// Flag reads a query parameter that is true or false and nothing else; otherwise is its value when
// it is left out.
func (r *Request) Flag(name string, otherwise bool) (bool, error) {
	query, err := ParseQuery(r.Request)
	if err != nil {
		return false, err
	}
	given := query.Get(name)
	if query.Has(name) && given != "true" && given != "false" {
		return false, errs.New(errs.Invalid, "%s must be true or false", name)
	}
	return given == "true" || otherwise && !query.Has(name), nil
}

// CheckQuery refuses a query parameter that a list or a write does not know, or that is given
// twice; reads of single resources, and writes with AnyQuery, accept any. Errors: errs.Invalid
// naming it and those that the route has.
func (r *Request) CheckQuery(route *Route) error {
	if route.Public || route.AnyQuery || route.Query == nil && IsRead(r.Method) || r.URL.RawQuery == "" {
		return nil
	}
	query, err := ParseQuery(r.Request)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(route.Query, name) {
			return jsonfill.UnknownName("query parameter", "", name, route.Query)
		}
		if len(query[name]) > 1 {
			return errs.New(errs.Invalid, "The query parameter %s is given twice: give it once.", name)
		}
	}
	return nil
}
