package doctext

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Limits of the archives of Word and Excel files.
const (
	maxEntries   = 10_000
	maxUnpacked  = 256 << 20 // bytes of all parts that are read
	maxRatio     = 200       // unpacked to packed bytes, for more than freeUnpacked bytes
	freeUnpacked = 8 << 20
	maxDepth     = 256 // of nested elements
)

var (
	errBroken = errs.New(errs.Invalid, "The document is damaged and cannot be read.")
	errBomb   = errs.New(errs.Invalid, "The document is too large when it is unpacked.")
	errDeep   = errs.New(errs.Invalid, "The document is nested too deeply.")
)

// archive is a Word or Excel file.
type archive struct {
	parts map[string]*zip.File
	left  int64 // bytes that may still be unpacked
}

func open(data []byte) (*archive, error) {
	if bytes.HasPrefix(data, []byte("\xd0\xcf\x11\xe0")) {
		return nil, errs.New(
			errs.Invalid,
			"The document is encrypted, or in a format before 2007: save it as .docx or .xlsx without a password.",
		)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, errBroken
	}
	if len(z.File) > maxEntries {
		return nil, errs.New(errs.Invalid, "The document has more than %d parts.", maxEntries)
	}
	a := &archive{parts: map[string]*zip.File{}, left: maxUnpacked}
	for _, f := range z.File {
		if a.parts[f.Name] == nil {
			a.parts[f.Name] = f
		}
	}
	return a, nil
}

// office returns the format of an archive by the names of its parts.
func office(data []byte) format {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(z.File) > maxEntries {
		return unknown
	}
	for _, f := range z.File {
		switch f.Name {
		case "word/document.xml":
			return word
		case "xl/workbook.xml":
			return excel
		}
	}
	return unknown
}

// A part is the content of a part of an archive, read one element after the other.
type part struct {
	*xml.Decoder
	a     *archive
	src   io.ReadCloser
	file  *zip.File
	read  int64
	depth int
}

// part opens a part. It returns nil if the part does not exist.
func (a *archive) part(name string) (*part, error) {
	f := a.parts[name]
	if f == nil {
		return nil, nil
	}
	src, err := f.Open()
	if err != nil {
		return nil, errBroken
	}
	p := &part{a: a, src: src, file: f}
	p.Decoder = xml.NewDecoder(p)
	return p, nil
}

// Read reads the unpacked bytes and counts them.
func (p *part) Read(b []byte) (int, error) {
	n, err := p.src.Read(b)
	p.read += int64(n)
	p.a.left -= int64(n)
	if p.a.left < 0 || p.read > freeUnpacked && p.read > maxRatio*int64(p.file.CompressedSize64) {
		return 0, errBomb
	}
	return n, err
}

// next returns the next start, end or text, or nil at the end of the part.
func (p *part) next() (xml.Token, error) {
	for {
		t, err := p.Token()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.Is(err, errBomb):
			return nil, errBomb
		case err != nil:
			return nil, errBroken
		}
		switch t.(type) {
		case xml.StartElement:
			if p.depth++; p.depth > maxDepth {
				return nil, errDeep
			}
			return t, nil
		case xml.EndElement:
			p.depth--
			return t, nil
		case xml.CharData:
			return t, nil
		}
	}
}

// each calls f for each start, end and text in a part, with the name of the element or the text. It
// does nothing if the part does not exist.
func (a *archive) each(
	name string, f func(start *xml.StartElement, end string, text []byte) error,
) (found bool, err error) {
	p, err := a.part(name)
	if p == nil || err != nil {
		return false, err
	}
	defer p.src.Close()
	for {
		t, err := p.next()
		if t == nil || err != nil {
			return true, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			err = f(&t, "", nil)
		case xml.EndElement:
			err = f(nil, t.Name.Local, nil)
		case xml.CharData:
			err = f(nil, "", t)
		}
		if err != nil {
			return true, err
		}
	}
}

// attribute returns the value of an attribute by its local name, or "".
func attribute(e *xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// fromWord appends the text of a Word document: its body, then its footnotes and endnotes.
func fromWord(out *text, data []byte) error {
	a, err := open(data)
	if err != nil {
		return err
	}
	for i, name := range []string{"word/document.xml", "word/footnotes.xml", "word/endnotes.xml"} {
		inText, fallback := false, 0
		found, err := a.each(name, func(start *xml.StartElement, end string, s []byte) error {
			switch {
			case start != nil && start.Name.Local == "Fallback": // a copy of the same for old readers
				fallback++
			case end == "Fallback":
				fallback--
			case fallback > 0:
			case start != nil:
				switch start.Name.Local {
				case "t":
					inText = true
				case "tab":
					out.write("\t")
				case "br", "cr":
					out.write("\n")
				case "noBreakHyphen":
					out.write("-")
				}
			case end == "t":
				inText = false
			case end == "p":
				out.write("\n")
			case end == "tc": // the paragraph in a cell has already ended the line
				if n := len(out.b); n > 0 && out.b[n-1] == '\n' {
					out.b = out.b[:n-1]
				}
				out.write("\t")
			case end == "tr":
				out.line()
			case inText:
				out.write(string(s))
			}
			if out.full {
				return errLong
			}
			return nil
		})
		if err != nil {
			return err
		}
		if i == 0 && !found {
			return errs.New(errs.Invalid, "The document is no Word document.")
		}
	}
	return nil
}

// workbook has what the sheets of an Excel file share.
type workbook struct {
	shared []string
	dates  []bool // by cell format
	date0  time.Time
}

// fromExcel appends the text of an Excel file: the name and the rows of each sheet.
func fromExcel(out *text, data []byte) error {
	a, err := open(data)
	if err != nil {
		return err
	}
	w := &workbook{date0: time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)}
	type sheet struct{ name, id string }
	var sheets []sheet
	found, err := a.each("xl/workbook.xml", func(start *xml.StartElement, _ string, _ []byte) error {
		switch {
		case start == nil:
		case start.Name.Local == "sheet":
			sheets = append(sheets, sheet{attribute(start, "name"), attribute(start, "id")})
		case start.Name.Local == "workbookPr" && (attribute(start, "date1904") == "1" ||
			attribute(start, "date1904") == "true"):
			w.date0 = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		return errs.New(errs.Invalid, "The document is no Excel file.")
	}
	targets := map[string]string{}
	if _, err := a.each("xl/_rels/workbook.xml.rels", func(start *xml.StartElement, _ string, _ []byte) error {
		if start != nil && start.Name.Local == "Relationship" {
			target := attribute(start, "Target")
			if !strings.HasPrefix(target, "/") {
				target = "xl/" + target
			}
			targets[attribute(start, "Id")] = strings.TrimPrefix(path.Clean(target), "/")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := w.read(a); err != nil {
		return err
	}
	for _, s := range sheets {
		out.line()
		out.write(clean(s.name) + "\n")
		if err := w.sheet(out, a, targets[s.id]); err != nil {
			return err
		}
	}
	return nil
}

// read reads the shared texts and the cell formats.
func (w *workbook) read(a *archive) error {
	var b strings.Builder
	inText, phonetic := false, false
	size := 0
	if _, err := a.each("xl/sharedStrings.xml", func(start *xml.StartElement, end string, s []byte) error {
		switch {
		case start != nil && start.Name.Local == "si":
			b.Reset()
		case start != nil && start.Name.Local == "rPh", end == "rPh":
			phonetic = start != nil
		case start != nil && start.Name.Local == "t", end == "t":
			inText = start != nil && !phonetic
		case end == "si":
			w.shared = append(w.shared, b.String())
			size += 16 + b.Len()
		case inText:
			b.Write(s)
		}
		if size+b.Len() > 16*MaxText {
			return errBomb
		}
		return nil
	}); err != nil {
		return err
	}
	formats := map[string]bool{}
	inCells := false
	_, err := a.each("xl/styles.xml", func(start *xml.StartElement, end string, _ []byte) error {
		switch {
		case end == "cellXfs":
			inCells = false
		case start == nil:
		case start.Name.Local == "numFmt":
			formats[attribute(start, "numFmtId")] = isDateFormat(attribute(start, "formatCode"))
		case start.Name.Local == "cellXfs":
			inCells = true
		case start.Name.Local == "xf" && inCells:
			id := attribute(start, "numFmtId")
			n, _ := strconv.Atoi(id)
			w.dates = append(w.dates, formats[id] || n >= 14 && n <= 22 || n >= 27 && n <= 36 || n >= 45 && n <= 47 ||
				n >= 50 && n <= 58)
		}
		return nil
	})
	return err
}

// isDateFormat reports whether a number format shows a date or time.
func isDateFormat(code string) bool {
	quoted, bracket := false, false
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\\' || c == '_' || c == '*':
			i++
		case c == '[':
			bracket = true
		case c == ']':
			bracket = false
		case bracket:
		case strings.IndexByte("yYmMdDhHsS", c) >= 0:
			return true
		}
	}
	return false
}

// maxColumn is the last column of a sheet, XFD.
const maxColumn = 16384

// sheet appends the rows of a sheet.
func (w *workbook) sheet(out *text, a *archive, name string) error {
	var value strings.Builder
	var kind, style string
	inValue, phonetic := false, false
	column, at := 0, 0 // of the cell, and how many columns have been written
	_, err := a.each(name, func(start *xml.StartElement, end string, s []byte) error {
		switch {
		case start != nil:
			switch start.Name.Local {
			case "row":
				column, at = 0, 0
			case "c":
				value.Reset()
				kind, style = attribute(start, "t"), attribute(start, "s")
				column++
				if n := columnOf(attribute(start, "r")); n > 0 {
					column = n
				}
			case "v", "t":
				inValue = !phonetic
			case "rPh":
				phonetic = true
			}
		case end == "v" || end == "t":
			inValue = false
		case end == "rPh":
			phonetic = false
		case end == "c":
			if v := w.value(kind, style, value.String()); v != "" {
				out.write(strings.Repeat("\t", max(column-1-at, 0)))
				at = max(column-1, at)
				out.write(v)
			}
		case end == "row":
			out.line()
		case inValue:
			if value.Len()+len(s) > MaxText {
				return errLong
			}
			value.Write(s)
		}
		if out.full {
			return errLong
		}
		return nil
	})
	return err
}

// columnOf returns the number of a cell's column from its reference, such as 28 for AB7, or 0.
func columnOf(reference string) int {
	n := 0
	for i := 0; i < len(reference) && reference[i] >= 'A' && reference[i] <= 'Z'; i++ {
		if n = n*26 + int(reference[i]-'A') + 1; n > maxColumn {
			return 0
		}
	}
	return n
}

// value returns what a cell shows, on one line.
func (w *workbook) value(kind, style, v string) string {
	switch kind {
	case "s":
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < 0 || n >= len(w.shared) {
			return ""
		}
		v = w.shared[n]
	case "b":
		if v == "1" {
			return "TRUE"
		}
		return "FALSE"
	case "", "n":
		if n, err := strconv.Atoi(style); err == nil && n >= 0 && n < len(w.dates) && w.dates[n] {
			return w.date(v)
		}
	}
	return strings.Join(strings.Fields(clean(v)), " ")
}

// date formats a number of days as a date, a time or both.
func (w *workbook) date(v string) string {
	days, err := strconv.ParseFloat(v, 64)
	if err != nil || days < 0 || days > 2958466 { // the year 10000
		return v
	}
	t := w.date0.Add(
		time.Duration(int64(days)) * 24 * time.Hour,
	).Add(time.Duration((days - float64(int64(days))) * 24 * float64(time.Hour))).Round(time.Second)
	switch {
	case days < 1:
		return t.Format(time.TimeOnly)
	case t.Equal(t.Truncate(24 * time.Hour)):
		return t.Format(time.DateOnly)
	}
	return t.Format(time.DateTime)
}
