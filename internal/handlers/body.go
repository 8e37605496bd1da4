package handlers

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
)

// The bounds of what is parsed.
const (
	maxFields  = 1000 // of a form
	maxLevels  = 1000 // of JSON: an engine that parses much more overflows its stack
	maxDecoded = 10 << 20
	maxRatio   = 100     // of the bytes of a decoded body to those that were sent
	anyRatio   = 1 << 20 // bytes that a decoded body has whatever the ratio is
	maxCodings = 2       // of one body
)

// decodedBody returns a body without its codings, a Content-Encoding header. Errors:
// errs.Unsupported for another coding than gzip, deflate and br; errs.TooLarge for one that grows
// beyond the bounds; errs.Invalid for one that is damaged.
func decodedBody(decode decoder, codings string, body []byte) ([]byte, error) {
	names := strings.Split(codings, ",")
	if len(names) > maxCodings {
		return nil, errs.New(errs.Unsupported, "The body has more than %d codings in Content-Encoding.", maxCodings)
	}
	most := min(maxDecoded, max(anyRatio, maxRatio*len(body)))
	for i := len(names) - 1; i >= 0; i-- {
		var r io.Reader
		var err error
		name := strings.ToLower(strings.TrimSpace(names[i]))
		in := bufio.NewReader(bytes.NewReader(body))
		switch name {
		case "gzip", "x-gzip":
			r, err = gzip.NewReader(in)
		case "deflate": // zlib, but some send bare deflate
			if head, _ := in.Peek(2); len(head) == 2 && head[0]&0xf == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
				r, err = zlib.NewReader(in)
			} else {
				r = flate.NewReader(in)
			}
		case "br":
			r = brotli.NewReader(in)
		case "", "identity":
			continue
		default:
			if _, ok := decode(name, nil); ok { // some send their charset there
				continue
			}
			return nil, errs.New(
				errs.Unsupported,
				"The Content-Encoding %.50q is not supported: send the body with gzip, deflate or br, or as it is.",
				name,
			)
		}
		var plain []byte
		if err == nil {
			plain, err = io.ReadAll(io.LimitReader(r, int64(most)+1))
		}
		switch {
		case err != nil:
			return nil, errs.Wrap(
				errs.Invalid, err, "The body is not %s, as its Content-Encoding says, or it is damaged.", name,
			)
		case len(plain) > most:
			return nil, errs.New(
				errs.TooLarge,
				"The body has more than %d bytes once it is decoded: %d MiB are allowed, and beyond 1 MiB %d "+
					"times what was sent.",
				most, maxDecoded>>20, maxRatio,
			)
		}
		body = plain
	}
	return body, nil
}

// decoder returns the text of bytes in a character encoding: see Options.Decode.
type decoder func(charset string, b []byte) (text string, ok bool)

// utf8Only is the decoder of a Service that has no other.
func utf8Only(charset string, b []byte) (text string, ok bool) {
	return string(b), strings.EqualFold(charset, "utf-8") && utf8.Valid(b)
}

// assumed is the character encoding of texts that are not UTF-8 and whose own is not known: of
// every byte it makes a character.
const assumed = "windows-1252"

// textOf returns the text of bytes in the first of the encodings that fits, else in the assumed
// one. An encoding that is empty or not known does not fit.
func textOf(decode decoder, b []byte, charsets ...string) (text string, guessed bool) {
	for _, charset := range charsets {
		if text, ok := decode(charset, b); ok {
			return text, false
		}
	}
	text, ok := decode(assumed, b)
	if !ok {
		text = eachByte(decode, b)
	}
	return text, true
}

// eachByte returns the text of bytes in the assumed encoding as browsers read it: a byte that the
// encoding does not define becomes the character with that number.
func eachByte(decode decoder, b []byte) string {
	var table [256]string
	for i := range table {
		text, ok := decode(assumed, []byte{byte(i)})
		if !ok {
			text = string(rune(i))
		}
		table[i] = text
	}
	var text strings.Builder
	for _, c := range b {
		text.WriteString(table[c])
	}
	return text.String()
}

// parseBody returns the JSON of a body: null for none; the value of JSON; an object of the fields
// of a form; else its text, or base64 with the encoding "base64" if it has no character encoding
// that is known. JSON and forms that are malformed, or too deep or wide, are text. The encoding is
// the assumed one if texts of a form were read in it.
func parseBody(
	decode decoder, contentType string, body []byte,
) (value json.RawMessage, encoding string, err error) {
	if len(body) == 0 {
		return json.RawMessage("null"), "", nil
	}
	mediaType, params, _ := mime.ParseMediaType(contentType)
	charset := params["charset"]
	switch {
	case mediaType == "application/json" || strings.HasSuffix(mediaType, "+json"):
		text := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		if !utf8.Valid(text) || strings.HasPrefix(strings.ToLower(charset), "utf-16") {
			if decoded, ok := decode(charset, body); ok {
				text = []byte(decoded)
			}
		}
		if utf8.Valid(text) && rawjson.Valid(text) && levels(text) <= maxLevels {
			return text, "", nil
		}
	case mediaType == "application/x-www-form-urlencoded":
		if form := parseForm(body); form != nil {
			return form.json(decode, charset)
		}
	case mediaType == "multipart/form-data":
		if form := parseMultipart(body, params["boundary"]); form != nil {
			return form.json(decode, charset)
		}
	}
	text, ok := decode(charset, body)
	switch {
	case ok:
	case utf8.Valid(body):
		text = string(body)
	default:
		text, encoding = base64.StdEncoding.EncodeToString(body), "base64"
	}
	value, err = json.Marshal(text)
	return value, encoding, err
}

// levels returns how deep JSON is nested.
func levels(valid []byte) int {
	deep, _ := rawjson.Shape(valid)
	return deep
}

// form is the fields of a form in their order.
type form []formField

// formField is a field of a form.
type formField struct {
	name, value []byte
	charset     string // of the value, "" if it does not say
	file        *formFile
}

// formFile is a file in a form.
type formFile struct {
	Filename    string `json:"filename"`
	ContentType string `json:"contentType"`
	Size        int    `json:"size"`
	Encoding    string `json:"encoding"` // "base64"
	Content     string `json:"content"`
}

// json returns the object of a form's fields: one value by itself, several as an array. Their
// character encoding is the one that the browser has put into the field _charset_, else the given
// one, else UTF-8, else that of the field charset, as some services send it.
func (f form) json(decode decoder, charset string) (value json.RawMessage, encoding string, err error) {
	named := func(name string) string {
		for _, field := range f {
			if string(field.name) == name && field.file == nil {
				return strings.TrimSpace(string(field.value))
			}
		}
		return ""
	}
	charsets := []string{named("_charset_"), charset, "utf-8", named("charset")}
	text := func(b []byte, own string) string {
		s, guessed := textOf(decode, b, append([]string{own}, charsets...)...)
		if guessed {
			encoding = assumed
		}
		return s
	}
	fields := map[string][]any{}
	for _, field := range f {
		name := text(field.name, "")
		if field.file != nil {
			fields[name] = append(fields[name], field.file)
		} else {
			fields[name] = append(fields[name], text(field.value, field.charset))
		}
	}
	object := make(map[string]any, len(fields))
	for name, values := range fields {
		if len(values) == 1 {
			object[name] = values[0]
		} else {
			object[name] = values
		}
	}
	value, err = json.Marshal(object)
	return value, encoding, err
}

// parseForm returns the fields of a form as browsers send it, as the URL standard reads them: a
// percent sign without two digits after it stands for itself. It returns nil for more than
// maxFields.
func parseForm(body []byte) form {
	f := form{}
	for part := range bytes.SplitSeq(body, []byte("&")) {
		if len(part) == 0 {
			continue
		}
		if len(f) == maxFields {
			return nil
		}
		name, value, _ := bytes.Cut(part, []byte("="))
		f = append(f, formField{name: unescapeForm(name), value: unescapeForm(value)})
	}
	return f
}

// unescapeForm returns the bytes that a part of a form stands for.
func unescapeForm(part []byte) []byte {
	b := make([]byte, 0, len(part))
	for i := 0; i < len(part); i++ {
		c := part[i]
		switch {
		case c == '+':
			c = ' '
		case c == '%' && i+2 < len(part):
			var one [1]byte
			if _, err := hex.Decode(one[:], part[i+1:i+3]); err == nil {
				c = one[0]
				i += 2
			}
		}
		b = append(b, c)
	}
	return b
}

// parseMultipart returns the fields of a form: texts, and a formFile for each part with a file
// name. It returns nil for a body that is none, or has more than maxFields.
func parseMultipart(body []byte, boundary string) form {
	if boundary == "" {
		return nil
	}
	f, r := form{}, multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFields + 1 {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return f
		}
		if err != nil {
			return nil
		}
		content, err := io.ReadAll(part)
		if err != nil {
			return nil
		}
		field := formField{name: []byte(part.FormName())}
		if name := part.FileName(); name != "" {
			field.file = &formFile{
				name, part.Header.Get("Content-Type"), len(content), "base64",
				base64.StdEncoding.EncodeToString(content),
			}
		} else {
			_, params, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
			field.value, field.charset = content, params["charset"]
		}
		f = append(f, field)
	}
	return nil
}
