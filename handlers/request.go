package handlers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/internal/rawjson"
)

// User is who a handler runs for.
type User struct {
	ID          string `json:"id"`   // username, or id of the team
	Type        string `json:"type"` // "User" or "Team"
	Name        string `json:"name"` // for people
	Username    string `json:"username,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Email       string `json:"email,omitempty"`
}

// Request is the handler's request.
type Request struct {
	Method      string
	Path        string // below the area, escaped as in the URL
	Params      map[string]string
	Query       map[string][]string // one value: a string for the script, several: an array
	Headers     map[string]string   // lower-case names; several values joined by ", "
	Body        []byte
	ContentType string
	RawBody     bool  // the script gets rawBody
	User        *User // nil: null
	Roles       []string
	Replay      bool
}

// JoinHeaders returns headers as a Request has them, without those that are named in lower case.
func JoinHeaders(all map[string][]string, without ...string) map[string]string {
	joined := make(map[string]string, len(all))
	for name, values := range all {
		joined[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\ufffd")
	}
	for _, name := range without {
		delete(joined, name)
	}
	return joined
}

// requestBody is the property request of a handler's context.
type requestBody struct {
	Method          string            `json:"method"`
	Path            string            `json:"path"`
	Params          map[string]string `json:"params"`
	Query           map[string]any    `json:"query"`
	Headers         map[string]string `json:"headers"`
	Body            json.RawMessage   `json:"body"`
	BodyEncoding    string            `json:"bodyEncoding,omitempty"`
	RawBody         *string           `json:"rawBody,omitempty"`
	RawBodyEncoding string            `json:"rawBodyEncoding,omitempty"`
	User            *User             `json:"user"`
	Roles           []string          `json:"roles"`
	Replay          bool              `json:"replay,omitempty"`
}

// encode returns the request as the script gets it.
func (r Request) encode() (requestBody, error) {
	b := requestBody{
		Method: r.Method, Path: r.Path, Params: r.Params, Headers: r.Headers, User: r.User, Roles: r.Roles, Replay: r.Replay,
		Query: make(map[string]any, len(r.Query)),
	}
	if b.Params == nil {
		b.Params = map[string]string{}
	}
	if b.Headers == nil {
		b.Headers = map[string]string{}
	}
	if b.Roles == nil {
		b.Roles = []string{}
	}
	for name, values := range r.Query {
		if len(values) == 1 {
			b.Query[name] = values[0]
		} else {
			b.Query[name] = values
		}
	}
	var err error
	if b.Body, b.BodyEncoding, err = parseBody(r.ContentType, r.Body); err != nil {
		return b, err
	}
	if r.RawBody {
		text := string(r.Body)
		if !utf8.ValidString(text) {
			text, b.RawBodyEncoding = latin1(r.Body), "binary"
		}
		b.RawBody = &text
	}
	return b, nil
}

// latin1 returns a text with a character for each byte.
func latin1(b []byte) string {
	text := make([]byte, 0, 2*len(b))
	for _, c := range b {
		text = utf8.AppendRune(text, rune(c))
	}
	return string(text)
}

// parseBody returns the JSON of a body: null for none; the value of JSON; an object of the fields of a form; else its text, or base64 with
// the encoding "base64" if it is not UTF-8. JSON and forms that are malformed, or too deep or wide, are text.
func parseBody(contentType string, body []byte) (value json.RawMessage, encoding string, err error) {
	if len(body) == 0 {
		return json.RawMessage("null"), "", nil
	}
	mediaType, params, _ := mime.ParseMediaType(contentType)
	switch {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		if trimmed := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")); utf8.Valid(trimmed) && rawjson.Valid(trimmed) && levels(trimmed) <= maxLevels {
			return trimmed, "", nil
		}
	case mediaType == "application/x-www-form-urlencoded":
		if fields, err := url.ParseQuery(string(body)); err == nil && len(fields) <= maxFields {
			form := map[string][]any{}
			for name, values := range fields {
				for _, v := range values {
					form[name] = append(form[name], v)
				}
			}
			return formJSON(form)
		}
	case mediaType == "multipart/form-data":
		if form, ok := parseMultipart(body, params["boundary"]); ok {
			return formJSON(form)
		}
	}
	if !utf8.Valid(body) {
		value, err = json.Marshal(base64.StdEncoding.EncodeToString(body))
		return value, "base64", err
	}
	value, err = json.Marshal(string(body))
	return value, "", err
}

// The bounds of what is parsed.
const (
	maxFields = 1000 // of a form
	maxLevels = 1000 // of JSON: an engine that parses much more overflows its stack
)

// levels returns how deep JSON is nested.
func levels(valid []byte) int {
	deep, _ := rawjson.Shape(valid)
	return deep
}

// formJSON returns the object of a form's fields: one value by itself, several as an array.
func formJSON(form map[string][]any) (json.RawMessage, string, error) {
	object := make(map[string]any, len(form))
	for name, values := range form {
		if len(values) == 1 {
			object[name] = values[0]
		} else {
			object[name] = values
		}
	}
	value, err := json.Marshal(object)
	return value, "", err
}

// formFile is a file in a form.
type formFile struct {
	Filename    string `json:"filename"`
	ContentType string `json:"contentType"`
	Size        int    `json:"size"`
	Encoding    string `json:"encoding"` // "base64"
	Content     string `json:"content"`
}

// parseMultipart returns the fields of a form: texts, and a formFile for each part with a file name.
func parseMultipart(body []byte, boundary string) (map[string][]any, bool) {
	if boundary == "" {
		return nil, false
	}
	form, r := map[string][]any{}, multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFields + 1 {
		part, err := r.NextPart()
		if err == io.EOF {
			return form, true
		}
		if err != nil {
			return nil, false
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil, false
		}
		name := part.FormName()
		if file := part.FileName(); file != "" {
			form[name] = append(form[name], formFile{file, part.Header.Get("Content-Type"), len(content), "base64", base64.StdEncoding.EncodeToString(content)})
		} else {
			form[name] = append(form[name], strings.ToValidUTF8(string(content), "\ufffd"))
		}
	}
	return nil, false
}
