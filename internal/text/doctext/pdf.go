package doctext

import (
	"bytes"
	"errors"
	"strings"

	"github.com/ledongthuc/pdf"

	"github.com/tenantcontent/tenantcontent/errs"
)

// maxPages is the most pages of a document.
const maxPages = 10_000

// fromPDF appends the text of the pages.
func fromPDF(out *text, data []byte) error {
	r, err := pdf.NewReader(bytes.NewReader(data), int64(len(data)))
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword):
		return errs.New(errs.Invalid, "The document is encrypted with a password.")
	case err != nil:
		return errBroken
	}
	n := r.NumPage()
	if n > maxPages {
		return errs.New(errs.Invalid, "The document has %d pages, where %d are allowed.", n, maxPages)
	}
	for i := 1; i <= n; i++ {
		p := r.Page(i)
		if p.V.IsNull() {
			continue
		}
		if err := page(out, p); err != nil {
			return err
		}
		out.line()
		if out.full {
			return errLong
		}
	}
	return nil
}

// spaceWidth is the distance between two parts of a text, in thousandths of its size, from which a
// space is written between them.
const spaceWidth = 180

// page appends the text of a page in the order of its content. A text at another height begins a
// new line.
func page(out *text, p pdf.Page) (err error) {
	defer func() {
		if recover() != nil {
			err = errBroken
		}
	}()
	if p.V.Key("Contents").Kind() == pdf.Null {
		return nil
	}
	fonts := map[string]pdf.TextEncoding{}
	var encoding pdf.TextEncoding
	height := 0.0
	show := func(raw string) {
		if encoding != nil {
			raw = encoding.Decode(raw)
		}
		out.write(strings.ReplaceAll(clean(raw), "\n", " "))
	}
	space := func() {
		if n := len(out.b); n > 0 && !endsWithSpace(out.b) {
			out.write(" ")
		}
	}
	pdf.Interpret(p.V.Key("Contents"), func(stack *pdf.Stack, op string) {
		if out.full {
			panic(errLong) // Interpret can only be ended by a panic
		}
		args := make([]pdf.Value, stack.Len())
		for i := len(args) - 1; i >= 0; i-- {
			args[i] = stack.Pop()
		}
		last := pdf.Value{}
		if len(args) > 0 {
			last = args[len(args)-1]
		}
		switch op {
		case "BT":
			height = 0
			out.line()
		case "ET", "T*":
			out.line()
		case "Td", "TD":
			if last.Float64() != 0 {
				out.line()
			} else {
				space()
			}
		case "Tm":
			if y := last.Float64(); y != height {
				height = y
				out.line()
			} else {
				space()
			}
		case "Tf":
			if len(args) != 2 {
				return
			}
			name := args[0].Name()
			if _, ok := fonts[name]; !ok {
				f := p.Font(name)
				fonts[name] = f.Encoder()
			}
			encoding = fonts[name]
		case "'", "\"":
			out.line()
			show(last.RawString())
		case "Tj":
			show(last.RawString())
		case "TJ":
			for i := range last.Len() {
				switch x := last.Index(i); x.Kind() {
				case pdf.String:
					show(x.RawString())
				case pdf.Integer, pdf.Real:
					if x.Float64() < -spaceWidth {
						space()
					}
				}
			}
		}
	})
	return nil
}
