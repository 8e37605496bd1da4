package doctext

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

func TestMain(m *testing.M) {
	Child()
	m.Run()
}

func by(t testing.TB) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "ann"})
}

// makePDF returns a document with compressed pages.
func makePDF(pages ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	object := func(format string, args ...any) {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n", len(offsets))
		fmt.Fprintf(&b, format, args...)
		b.WriteString("\nendobj\n")
	}
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 4+2*i))
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	for i, content := range pages {
		object(
			"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 "+
				"R >> >> >>",
			5+2*i,
		)
		var packed bytes.Buffer
		z := zlib.NewWriter(&packed)
		z.Write([]byte(content))
		z.Close()
		object("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream", packed.Len(), packed.String())
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, xref)
	return b.Bytes()
}

// makeZip returns an archive of pairs of name and content.
func makeZip(parts ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, _ := z.Create(parts[i])
		w.Write([]byte(parts[i+1]))
	}
	z.Close()
	return b.Bytes()
}

const wordSpace = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"`

func makeWord(body string) []byte {
	return makeZip("[Content_Types].xml", "<Types/>", "word/document.xml",
		`<?xml version="1.0" encoding="UTF-8"?><w:document `+wordSpace+`><w:body>`+body+`</w:body></w:document>`,
		"word/footnotes.xml",
		`<w:footnotes `+wordSpace+`><w:footnote><w:p><w:r><w:t>A note.</w:t></w:r></w:p></w:footnote></w:footnotes>`)
}

func makeExcel(rows string) []byte {
	return makeZip(
		"xl/workbook.xml",
		`<workbook xmlns:r="http://r"><sheets><sheet name="Sales" sheetId="1" r:id="rId2"/><sheet name="Empty" `+
			`sheetId="2" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels",
		`<Relationships><Relationship Id="rId1" Target="/xl/worksheets/b.xml"/><Relationship Id="rId2" `+
			`Target="worksheets/a.xml"/></Relationships>`,
		"xl/sharedStrings.xml",
		`<sst><si><t>Name</t></si><si><r><t xml:space="preserve">two `+
			`</t></r><r><t>runs</t></r><rPh><t>never</t></rPh></si></sst>`,
		"xl/styles.xml",
		`<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/><numFmt numFmtId="165" `+
			`formatCode="0.00 &quot;days&quot;"/></numFmts>`+
			`<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf `+
			`numFmtId="164"/><xf numFmtId="22"/><xf numFmtId="165"/></cellXfs></styleSheet>`,
		"xl/worksheets/a.xml", `<worksheet><sheetData>`+rows+`</sheetData></worksheet>`,
		"xl/worksheets/b.xml", `<worksheet><sheetData/></worksheet>`)
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name, contentType string
		data              []byte
		want              string
	}{
		{"a.txt", "text/plain", []byte("a\nä\n"), "a\nä\n"},
		{"a.txt", "text/plain; charset=iso-8859-1", []byte("\xe4"), "ä"},
		{"a.txt", "", []byte("\xe4 \x80"), "ä €"},
		{"a.txt", "", []byte("\xef\xbb\xbfa"), "a"},
		{"a.txt", "text/plain", []byte("\xff\xfea\x00\xac\x20"), "a€"},
		{"a", "application/octet-stream", []byte("just text"), "just text"},
		{"data.json", "application/json", []byte(`{"a":1}`), `{"a":1}`},
		{"a", "", []byte{}, ""},

		{"a.html",
			"text/html",
			[]byte("<title>T &amp; x</title><style>p{}</style><h1>Head</h1><p>one <b>two</b>\n " +
				"three<br>four<script>let a = '<p>'</script></p>" +
				"<table><tr><td>1</td><td>2</td></tr><tr><td>3</table><pre>a\n  b</pre><ul><li>x<li>y</ul>"),
			"T & x\nHead\none two three\nfour\n1\t2\n3\na\n  b\nx\ny\n"},
		{"a.html", "text/html; charset=windows-1252", []byte("<p>\xe4"), "ä\n"},
		{"a", "", []byte(" <!DOCTYPE html><meta charset=utf-8><p>ä"), "ä\n"},
		{"a.html", "", []byte(strings.Repeat("<div>", 100_000) + "deep"), "deep\n"},
		{"a.html", "", []byte("<svg><svg><p>no</svg>no</svg>yes<script>"), "yes\n"},

		{"a.docx",
			"",
			makeWord(`<w:p><w:r><w:t>One</w:t></w:r><w:r><w:tab/><w:t xml:space="preserve"> ` +
				`&lt;two&gt;</w:t><w:instrText>never</w:instrText></w:r></w:p><w:p/>` +
				`<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>`),
			"One\t <two>\n\na\tb\nA note.\n"},
		{
			"x", "application/vnd.openxmlformats-officedocument.wordprocessingml.document; charset=binary",
			makeWord(`<w:p><w:r><w:t>ä</w:t></w:r></w:p>`), "ä\nA note.\n",
		},
		{"x", "application/octet-stream", makeWord(``), "A note.\n"},

		{"a.xlsx",
			"",
			makeExcel(`<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row><c><v>1.5</v></c><c t="b"><v>1</v></c><c t="inlineStr"><is><t>in
line</t></is></c><c t="str"><f>A1</f><v>made</v></c><c t="e"><v>#N/A</v></c></row>` +
				`<row><c s="1"><v>45000</v></c><c s="2"><v>1</v></c><c s="3"><v>45000.75</v></c><c ` +
				`s="4"><v>2</v></c><c s="1"><v>0.5</v></c><c t="s"><v>99</v></c></row>`),
			"Sales\nName\t\ttwo runs\n1.5\tTRUE\tin line\tmade\t#N/A\n2023-03-15\t1899-12-31\t2023-03-15 " +
				"18:00:00\t2\t12:00:00\nEmpty\n"},
		{"x", "", makeExcel(``), "Sales\nEmpty\n"},

		{"a.pdf",
			"application/pdf",
			makePDF(
				"BT /F1 12 Tf 72 720 Td (Hello, w\\344rld) Tj 0 -20 Td [(Ne) 20 (xt) -300 (line)] TJ ET",
				"BT /F1 12 Tf 1 0 0 1 72 720 Tm (Page) Tj 1 0 0 1 99 720 Tm (two) Tj ET BT (end) ' ET",
			),
			"Hello, wärld\nNext line\nPage two\nend\n"},
		{"x", "", makePDF("BT /F1 12 Tf (x) Tj ET"), "x\n"},
		{"x.pdf", "", makePDF(""), ""},
	} {
		t.Run(c.name+c.contentType, func(t *testing.T) {
			is := is.New(t)
			got, err := Extract(by(t), c.contentType, c.name, c.data)
			is.NoErr(err)
			is.Equal(got, c.want)
		})
	}
}

// refusal is a document that must be refused.
type refusal struct {
	name, contentType string
	data              []byte
	code              errs.Code
	message           string
}

func (c refusal) check(t *testing.T) {
	t.Helper()
	text, err := Extract(by(t), c.contentType, c.name, c.data)
	if text != "" || errs.CodeOf(err) != c.code || !strings.Contains(errs.MessageOf(err), c.message) {
		t.Errorf("%s: %v, want %s with %q", c.name, err, c.code, c.message)
	}
}

func TestRefused(t *testing.T) {
	deep := strings.Repeat("<w:p>", 1000)
	for _, c := range []refusal{
		{"a.png", "image/png", []byte("x"), errs.Unsupported, "none of them"},
		{"a", "", []byte("a\x00b"), errs.Unsupported, "none of them"},
		{"a.zip", "application/zip", makeZip("a.txt", "x"), errs.Unsupported, "none of them"},
		{"a.pdf", "", []byte("no PDF"), errs.Invalid, "damaged"},
		{"a.docx", "", []byte("no zip"), errs.Invalid, "damaged"},
		{"a.docx", "", []byte("\xd0\xcf\x11\xe0\xa1\xb1"), errs.Invalid, "without a password"},
		{"a.docx", "", makeZip("a", "x"), errs.Invalid, "no Word document"},
		{"a.xlsx", "", makeZip("a", "x"), errs.Invalid, "no Excel file"},
		{"a.docx", "", makeWord("<w:p>"), errs.Invalid, "damaged"},
		{"a.docx", "", makeWord(deep), errs.Invalid, "nested too deeply"},
		{
			"a.docx", "",
			makeZip(
				"word/document.xml",
				`<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><w:t xmlns:w="w">&b;</w:t>`,
			),
			errs.Invalid, "damaged",
		},
		{
			"a.docx", "",
			makeZip(
				"word/document.xml",
				`<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:t xmlns:w="w">&a;</w:t>`,
			),
			errs.Invalid, "damaged",
		},
	} {
		c.check(t)
	}
	_, err := Extract(t.Context(), "", "", nil)
	is.New(t).Equal(errs.CodeOf(err), errs.Unauthenticated)
}

func TestRefusedSize(t *testing.T) {
	bomb := strings.Repeat(" ", 20<<20)
	for _, c := range []refusal{
		{"a.docx", "", makeWord(bomb), errs.Invalid, "too large when it is unpacked"},
		{"a.xlsx", "", makeExcel(bomb), errs.Invalid, "too large when it is unpacked"},
		{
			"a.docx", "", makeWord("<w:p><w:r><w:t>" + strings.Repeat("text", 3<<19) + "</w:t></w:r></w:p>"),
			errs.Invalid, "more than 4 MiB of text",
		},
		{"a.txt", "text/plain", bytes.Repeat([]byte("x"), MaxText+1), errs.Invalid, "more than 4 MiB of text"},
		{"a.txt", "text/plain", make([]byte, MaxDocument+1), errs.TooLarge, "where 33554432 are allowed"},
		{
			"a.pdf", "", makePDF("BT /F1 12 Tf (" + strings.Repeat("text", 3<<19) + ") Tj ET"), errs.Invalid,
			"more than 4 MiB of text",
		},
	} {
		c.check(t)
	}
}

// TestMutated: documents with random changes are read or refused, and do no damage.
func TestMutated(t *testing.T) {
	limit := worker.Time
	worker.Time = 2 * time.Second
	defer func() { worker.Time = limit }()
	random := rand.New(rand.NewPCG(1, 2))
	originals := map[string][]byte{
		"a.pdf":  makePDF("BT /F1 12 Tf 72 720 Td (Hello) Tj ET", "BT [(a) -300 (b)] TJ ET"),
		"a.docx": makeWord("<w:p><w:r><w:t>x</w:t></w:r></w:p>"),
		"a.xlsx": makeExcel(`<row><c t="s"><v>1</v></c></row>`),
	}
	for name, original := range originals {
		for range 100 {
			data := bytes.Clone(original)
			for range 1 + random.IntN(8) {
				data[random.IntN(len(data))] = byte(random.IntN(256))
			}
			if random.IntN(4) == 0 {
				data = data[:random.IntN(len(data))]
			}
			if _, err := Extract(by(t), "", name, data); err != nil && errs.CodeOf(err) != errs.Invalid {
				t.Fatalf("%s: %v: %q", name, err, data)
			}
		}
	}
	worker.Time = limit
	if text, err := Extract(by(t), "", "a.docx", originals["a.docx"]); err != nil || text != "x\nA note.\n" {
		t.Errorf("afterwards: %q, %v", text, err)
	}
}

// FuzzOffice reads archives in this process: they must not panic.
func FuzzOffice(f *testing.F) {
	f.Add([]byte("<w:p><w:r><w:t>x</w:t></w:r></w:p>"))
	f.Add([]byte(`<row><c r="C1" s="2" t="s"><v>1</v></c></row>`))
	f.Fuzz(func(t *testing.T, inner []byte) {
		if len(inner) > 4<<10 {
			return
		}
		for _, x := range []struct {
			read func(*text, []byte) error
			data []byte
		}{{fromWord, makeWord(string(inner))},
			{fromExcel, makeExcel(string(inner))}, {func(out *text, data []byte) error {
				return fromHTML(out, data, "")
			}, inner}} {
			out := &text{}
			if err := x.read(out, x.data); err == nil && len(out.b) > MaxText {
				t.Errorf("%d bytes of text", len(out.b))
			}
		}
	})
}
