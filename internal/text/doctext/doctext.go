// Package doctext extracts the text of documents of tenants: PDF, Word, Excel, HTML and plain text.
package doctext

import (
	"bytes"
	"context"
	"encoding/binary"
	"mime"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// MaxDocument is the most bytes of a document. MaxText is the most bytes of its text.
const (
	MaxDocument = 32 << 20
	MaxText     = 4 << 20
)

// worker reads documents in a process that can be killed, because a parser of these formats can
// fail in any way.
var worker = subprocess.Worker{
	Name: "doctext", What: "The document", Work: work,
	Time: 20 * time.Second, Memory: 384 << 20, Input: MaxDocument + 1<<10, Output: MaxText,
}

// Child must be called first in the main function of a program that calls Extract.
func Child() { worker.Child() }

// format is the format of a document.
type format byte

const (
	unknown format = iota
	plain
	markup
	pdfDocument
	word
	excel
)

// Extract returns the text of a document in UTF-8. Paragraphs and rows end with a newline, and the
// cells of a row are separated by tabs. The format is determined by the content type, else by the
// extension of the name, else by the data.
//
// It returns errs.Unsupported for another format, and errs.TooLarge for a document of more than
// MaxDocument bytes. It returns errs.Invalid for a document that is damaged or encrypted, has more
// text than MaxText, or takes too much time or memory. It returns errs.Unavailable if too many
// documents are read at the same time. They are limited by the tenant of the actor in ctx.
func Extract(ctx context.Context, contentType, name string, data []byte) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	if len(data) > MaxDocument {
		return "", errs.New(errs.TooLarge, "The document has %d bytes, where %d are allowed.", len(data), MaxDocument)
	}
	f := formatOf(contentType, name, data)
	if f == unknown {
		return "", errs.New(
			errs.Unsupported,
			"Text is extracted from PDF, Word (.docx), Excel (.xlsx), HTML and text. The document is none of them.",
		)
	}
	if f == plain && len(data) <= MaxText && utf8.Valid(data) {
		return string(bytes.TrimPrefix(data, []byte("\ufeff"))), nil
	}
	if len(contentType) > 512 {
		contentType = ""
	}
	head := binary.AppendUvarint([]byte{byte(f)}, uint64(len(contentType)))
	text, err := worker.Do(ctx, a.Tenant, append(append(head, contentType...), data...))
	return string(text), err
}

// formatOf returns the format of a document: that of its content type or, if that can be any, of
// its name, or of its bytes.
func formatOf(contentType, name string, data []byte) format {
	f, known := formatOfType(contentType)
	if !known {
		f, known = formatOfName(name)
	}
	if !known {
		return formatOfBytes(data)
	}
	return f
}

// formatOfType returns the format of a content type, and whether it names one.
func formatOfType(contentType string) (f format, known bool) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(strings.ToLower(contentType), ";")
		kind = strings.TrimSpace(kind)
	}
	switch kind {
	case "application/pdf", "application/x-pdf":
		return pdfDocument, true
	case "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"application/vnd.ms-word.document.macroenabled.12":
		return word, true
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
		"application/vnd.ms-excel.sheet.macroenabled.12":
		return excel, true
	case "text/html", "application/xhtml+xml":
		return markup, true
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/javascript",
		"application/sql", "application/csv", "application/x-ndjson":
		return plain, true
	case "", "application/octet-stream", "binary/octet-stream", "application/zip", "application/x-zip-compressed":
		return unknown, false
	}
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") {
		return plain, true
	}
	return unknown, true
}

// formatOfName returns the format of a file name's extension, and whether it is known.
func formatOfName(name string) (f format, known bool) {
	switch strings.ToLower(path.Ext(name)) {
	case ".pdf":
		return pdfDocument, true
	case ".docx", ".docm":
		return word, true
	case ".xlsx", ".xlsm":
		return excel, true
	case ".html", ".htm", ".xhtml":
		return markup, true
	case ".txt", ".text", ".md", ".csv", ".tsv", ".json", ".xml", ".yaml", ".yml", ".log", ".sql", ".js", ".css":
		return plain, true
	}
	return unknown, false
}

func formatOfBytes(data []byte) format {
	start := data[:min(len(data), 1<<10)]
	switch {
	case bytes.Contains(start, []byte("%PDF-")):
		return pdfDocument
	case bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return office(data)
	case bytes.IndexByte(start, 0) >= 0:
		return unknown
	case looksLikeHTML(start):
		return markup
	case utf8.Valid(data):
		return plain
	}
	return unknown
}

func looksLikeHTML(start []byte) bool {
	lower := bytes.ToLower(bytes.TrimLeft(start, " \t\r\n\ufeff"))
	return bytes.HasPrefix(lower, []byte("<!doctype html")) || bytes.HasPrefix(lower, []byte("<html"))
}

// errLong is the error for more text than MaxText.
var errLong = errs.New(errs.Invalid, "The document has more than 4 MiB of text.")

// work implements Extract in the child process.
func work(in []byte) ([]byte, error) {
	f := format(in[0])
	n, size := binary.Uvarint(in[1:])
	contentType, data := string(in[1+size:1+size+int(n)]), in[1+size+int(n):]
	out := &text{}
	var err error
	switch f {
	case plain:
		var b []byte
		if b, err = decoded(data, contentType); err == nil {
			out.write(string(b))
		}
	case markup:
		err = fromHTML(out, data, contentType)
	case word:
		err = fromWord(out, data)
	case excel:
		err = fromExcel(out, data)
	case pdfDocument:
		err = fromPDF(out, data)
	}
	if out.full {
		err = errLong
	}
	if err != nil {
		return nil, err
	}
	return bytes.ToValidUTF8(out.b, []byte("\ufffd")), nil
}

// decoded returns text in UTF-8. Its encoding is that of its byte order mark, of the content type
// or of a meta element. Otherwise it is UTF-8 if the text is valid, else windows-1252.
func decoded(data []byte, contentType string) ([]byte, error) {
	e, name, _ := charset.DetermineEncoding(data, contentType)
	if name == "utf-8" || name == "windows-1252" && !strings.Contains(strings.ToLower(contentType), "charset") &&
		utf8.Valid(data) {
		return bytes.TrimPrefix(data, []byte("\ufeff")), nil
	}
	b, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return nil, errs.New(errs.Invalid, "The text is not in the encoding %s.", name)
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), nil
}

// text collects at most MaxText bytes of text.
type text struct {
	b    []byte
	full bool
}

// write appends s and reports whether it fits.
func (t *text) write(s string) bool {
	if t.full = t.full || len(t.b)+len(s) > MaxText; !t.full {
		t.b = append(t.b, s...)
	}
	return !t.full
}

// line ends the line unless it is empty. Spaces at its end are removed.
func (t *text) line() {
	t.trim()
	if n := len(t.b); n > 0 && t.b[n-1] != '\n' {
		t.write("\n")
	}
}

// trim removes spaces and tabs at the end.
func (t *text) trim() {
	for n := len(t.b); n > 0 && (t.b[n-1] == ' ' || t.b[n-1] == '\t'); n-- {
		t.b = t.b[:n-1]
	}
}

// collapsed appends the text of an element with each run of white space replaced by one space.
func (t *text) collapsed(s string) {
	for i, part := range strings.Fields(s) {
		if i > 0 || startsWithSpace(s) && len(t.b) > 0 && !endsWithSpace(t.b) {
			t.write(" ")
		}
		t.write(part)
	}
	if s != "" && isSpace(s[len(s)-1]) && len(t.b) > 0 && !endsWithSpace(t.b) {
		t.write(" ")
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func startsWithSpace(s string) bool { return s != "" && isSpace(s[0]) }

func endsWithSpace(b []byte) bool { return isSpace(b[len(b)-1]) }
