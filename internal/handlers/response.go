package handlers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// Response is what a handler answers.
type Response struct {
	Status  int               // 200 to 599
	Headers map[string]string // lower-case names; none of those that are the service's
	Body    []byte
}

// The plain answers of handlers that failed. Why they failed is for the record alone.
var (
	failed   = problem(500, "Internal Server Error", "An internal server error occurred")
	timedOut = problem(504, "Gateway Timeout", "The app took too long to answer")
	evicted  = problem(503, "Service Unavailable", "The app was stopped: too much runs at the moment. Try again.")
)

func problem(status int, name, message string) Response {
	body, _ := json.Marshal(struct {
		StatusCode int    `json:"statusCode"`
		Error      string `json:"error"`
		Message    string `json:"message"`
	}{status, name, message})
	return Response{
		Status:  status,
		Headers: map[string]string{"content-type": "application/json; charset=utf-8"},
		Body:    body,
	}
}

// failure returns the answer of a handler that did not end well.
func failure(o jsvm.Outcome) Response {
	switch o {
	case jsvm.Timeout:
		return timedOut
	case jsvm.Evicted:
		return evicted
	}
	return failed
}

// reserved are headers that are the service's: they are left out of answers. So are those that
// begin with one of reservedPrefixes.
var reserved = map[string]bool{
	"connection": true, "keep-alive": true, "te": true,
	"trailer": true, "transfer-encoding": true, "upgrade": true, "content-length": true,
	"date": true, "server": true, "set-cookie": true,
	"set-cookie2": true, "clear-site-data": true, "content-security-policy": true,
	"content-security-policy-report-only": true, "strict-transport-security": true,
	"service-worker-allowed": true, "x-frame-options": true,
	"x-content-type-options": true, "x-request-id": true,
	"permissions-policy": true, "feature-policy": true, "referrer-policy": true,
	"public-key-pins": true, "alt-svc": true, "refresh": true,
	"report-to": true, "reporting-endpoints": true, "nel": true,
	"origin-agent-cluster": true, "document-policy": true,
	"speculation-rules": true, "www-authenticate": true, "host": true,
	"x-xss-protection": true, "x-dns-prefetch-control": true,
	"x-permitted-cross-domain-policies": true, "timing-allow-origin": true, "vary": true,
}

var reservedPrefixes = []string{
	"access-control-", "cross-origin-", "proxy-", "sec-", "x-forwarded-", ":",
	// With these a server directs the proxy in front of it, such as to send a file of the proxy's.
	"x-accel-", "x-sendfile", "x-lighttpd-", "x-litespeed-", "x-reproxy-", "x-envoy-",
}

// The bounds of an answer's headers.
const (
	maxHeaders     = 100
	maxHeaderBytes = 16 << 10
)

// responseOf returns the answer that a result of a script means, and the names of the headers that
// are left out, ordered. An error is one of the script.
//
// An object whose member status is a number is {status, headers, body, encoding}; anything else is
// 200 and JSON; no value is 204.
func responseOf(value json.RawMessage) (r Response, dropped []string, err error) {
	if value == nil {
		return Response{Status: 204}, nil, nil
	}
	plain := Response{Status: 200, Headers: map[string]string{"content-type": jsonType}, Body: value}
	if trimmed := bytes.TrimLeft(value, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return plain, nil, nil
	}
	var members map[string]json.RawMessage
	var status float64
	if err := json.Unmarshal(value, &members); err != nil {
		return r, nil, err
	}
	if raw := members["status"]; raw == nil || raw[0] == 'n' || json.Unmarshal(raw, &status) != nil {
		return plain, nil, nil
	}
	if status != math.Trunc(status) || status < 200 || status > 599 {
		return r, nil, fmt.Errorf("the status of a response must be a whole number from 200 to 599, not %v", status)
	}
	r.Status = int(status)
	if r.Headers, dropped, err = headersOf(members["headers"]); err != nil {
		return r, nil, err
	}
	contentType := ""
	if r.Body, contentType, err = bodyOf(members["body"], members["encoding"]); err != nil {
		return r, nil, err
	}
	if r.Status == 204 || r.Status == 205 || r.Status == 304 {
		r.Body = nil
		delete(r.Headers, "content-type")
	} else if r.Headers["content-type"] == "" && contentType != "" {
		r.Headers["content-type"] = contentType
	}
	return r, dropped, nil
}

const jsonType = "application/json; charset=utf-8"

// bodyOf returns the bytes of a member body, and their content type unless a header has it.
func bodyOf(body, encoding json.RawMessage) ([]byte, string, error) {
	name, text := "", ""
	if encoding != nil && string(encoding) != "null" && (json.Unmarshal(encoding, &name) != nil || name != "base64" &&
		name != "utf8" && name != "utf-8") {
		return nil, "", fmt.Errorf("the encoding of a response must be \"base64\" or left out, not %.50s", encoding)
	}
	isText := len(body) > 0 && body[0] == '"'
	if isText {
		if err := json.Unmarshal(body, &text); err != nil {
			return nil, "", err
		}
	}
	switch {
	case name == "base64" && !isText:
		return nil, "", fmt.Errorf("the body of a response with the encoding base64 must be a string")
	case name == "base64":
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			raw, err = base64.RawStdEncoding.DecodeString(text)
		}
		if err != nil {
			return nil, "", fmt.Errorf("the body of the response is no base64: %w", err)
		}
		return raw, "application/octet-stream", nil
	case body == nil:
		return nil, "", nil
	case isText:
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	return body, jsonType, nil
}

// headersOf returns the headers of an answer, and the names of those that are the service's.
func headersOf(raw json.RawMessage) (headers map[string]string, dropped []string, err error) {
	headers = map[string]string{}
	if raw == nil || string(raw) == "null" {
		return headers, nil, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil, nil, fmt.Errorf("the headers of a response must be an object")
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if string(members[name]) == "null" {
			continue
		}
		value, err := headerValue(name, members[name])
		if err != nil {
			return nil, nil, err
		}
		if !isToken(name) {
			return nil, nil, fmt.Errorf("%.100q is no name of a header", name)
		}
		lower := strings.ToLower(name)
		if reserved[lower] || slices.ContainsFunc(reservedPrefixes, func(p string) bool {
			return strings.HasPrefix(lower, p)
		}) {
			dropped = append(dropped, lower)
			continue
		}
		if _, twice := headers[lower]; twice {
			return nil, nil, fmt.Errorf("the header %s is there twice", lower)
		}
		headers[lower] = value
		size += len(lower) + len(value)
	}
	if len(headers) > maxHeaders || size > maxHeaderBytes {
		return nil, nil, fmt.Errorf("a response can have %d headers with %d bytes", maxHeaders, maxHeaderBytes)
	}
	return headers, dropped, nil
}

// headerValue returns the value of a header: a string, number or boolean, or an array of them,
// which are joined by ", ".
func headerValue(name string, raw json.RawMessage) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	values, several := v.([]any)
	if !several {
		values = []any{v}
	}
	texts := make([]string, len(values))
	for i, v := range values {
		switch v.(type) {
		case string, json.Number, bool:
			texts[i] = fmt.Sprint(v)
		default:
			return "", fmt.Errorf("the value of the header %.100q must be a string", name)
		}
	}
	text := strings.Trim(strings.Join(texts, ", "), " \t")
	for _, c := range text {
		if c < ' ' && c != '\t' || c == 0x7f || c > 0xff {
			return "", fmt.Errorf("the value of the header %.100q has a character that no header can have", name)
		}
	}
	return text, nil
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	if name == "" || len(name) > 100 {
		return false
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return true
}

// Failed returns the plain answer for a call whose handler could not be run.
func Failed() Response { return failed }
