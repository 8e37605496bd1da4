package handlers

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
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
	Body        []byte              // as it was sent, which header content-encoding tells
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

// encode returns the request as the script gets it: the body is decoded, the raw one is as it was
// sent. Errors: errs.Unsupported, errs.TooLarge and errs.Invalid for a body that cannot be decoded.
func (r Request) encode(decode decoder) (requestBody, error) {
	b := requestBody{
		Method: r.Method, Path: r.Path, Params: r.Params,
		Headers: r.Headers, User: r.User, Roles: r.Roles, Replay: r.Replay,
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
	plain, err := decodedBody(decode, r.Headers["content-encoding"], r.Body)
	if err != nil {
		return b, err
	}
	if b.Body, b.BodyEncoding, err = parseBody(decode, r.ContentType, plain); err != nil {
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
