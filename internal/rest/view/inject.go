package view

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"html"
	"io"

	nethtml "golang.org/x/net/html"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/tenantcontent/tenantcontent/errs"
)

// window is how much of a page is searched for the place where its head begins.
const window = 64 << 10

// links makes links to places in the page, such as #top, lead there: beside a base they would lead
// to the base.
//
//go:embed links.js
var links string

// ended tells the page and its viewer when a call that the page makes is refused because its view
// token has ended: it fires the event viewended and, unless that is prevented, shows a bar with a
// link that opens the app again.
//
//go:embed ended.js
var ended string

// Orientation is that of the sheets that a page is printed on.
type Orientation string

// The orientations. With AnyOrientation it is up to the page and who prints it.
const (
	AnyOrientation Orientation = ""
	Portrait       Orientation = "portrait"
	Landscape      Orientation = "landscape"
)

// Inject copies an HTML page and adds, as the first elements of its head, <base href>, a script
// that sets window.informer to context, which must be JSON, and tells the viewer when the view has
// ended, and a style for the orientation in print. A base of the page's own then has no href that
// counts. base is an absolute URL that ends in a slash.
//
// A page may be anything: without a head, with a byte order mark (the copy is in UTF-8 then), or no
// HTML at all. The rest of it is copied byte by byte. Inject holds at most 64 KiB of the page; if
// more than that comes before its first element, such as one long comment, the elements come before
// that. Errors: errs.Internal for a context that is not JSON, and those of r and w.
func Inject(r io.Reader, w io.Writer, base string, context json.RawMessage, print Orientation) error {
	if !json.Valid(context) {
		return errs.New(errs.Internal, "The context of the page is not JSON.")
	}
	r = transform.NewReader(r, unicode.BOMOverride(transform.Nop))
	start := make([]byte, window)
	n, err := io.ReadFull(r, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	start = start[:n]
	at := place(start)
	for _, part := range [][]byte{start[:at], elements(base, context, print), start[at:]} {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	_, err = io.Copy(w, r)
	return err
}

// elements returns what Inject adds. In the text of a JavaScript string the context is data and
// nothing else: it neither ends the script element nor sets a prototype.
func elements(base string, context json.RawMessage, print Orientation) []byte {
	text, _ := json.Marshal(string(context)) // a string always marshals; it escapes <, >, &, U+2028 and U+2029
	style := ""
	if print == Portrait || print == Landscape {
		style = "<style>@page{size:" + string(print) + "}</style>"
	}
	return []byte(`<base href="` + html.EscapeString(base) + `"><script>window.informer=JSON.parse(` + string(text) +
		");" + ended + links + "</script>" + style)
}

// place returns the index in the beginning of a page where the first element of its head can stand:
// behind the tags html and head, and before anything else but white space, comments and the
// doctype. What is not complete does not count.
func place(page []byte) int {
	// the space shows what is complete
	z := nethtml.NewTokenizer(io.MultiReader(bytes.NewReader(page), bytes.NewReader([]byte{' '})))
	at, end := 0, 0
	for {
		kind := z.Next()
		end += len(z.Raw())
		if end > len(page) {
			return at
		}
		switch kind {
		case nethtml.CommentToken, nethtml.DoctypeToken:
		case nethtml.TextToken:
			if len(bytes.Trim(z.Raw(), " \t\r\n\f")) > 0 {
				return at
			}
		case nethtml.StartTagToken, nethtml.SelfClosingTagToken:
			switch name, _ := z.TagName(); string(name) {
			case "html":
			case "head":
				return end
			default:
				return at
			}
		default:
			return at
		}
		at = end
	}
}
