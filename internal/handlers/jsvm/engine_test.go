package jsvm_test

import (
	"errors"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// TestOpen: without an Engine all work is refused, and what was wrong when an Engine was made is
// returned.
func TestOpen(t *testing.T) {
	is := is.New(t)
	for _, s := range []jsvm.Scripts{nil, jsvm.NewEngine(jsvm.Parts{Runtime: jsvm.None{}}, nil)} {
		p, err := jsvm.Open(s)
		is.NoErr(err)
		_, err = p.Runtime.Compile(t.Context(), jsvm.Source{})
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		_, err = p.Markdown(t.Context(), "a")
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		_, err = p.Extract(t.Context(), "application/pdf", "a.pdf", nil)
		is.Equal(errs.CodeOf(err), errs.Unavailable)
		text, err := p.Extract(t.Context(), "text/plain; charset=utf-8", "a", []byte("\ufeffgrün"))
		is.NoErr(err)
		is.Equal(text, "grün")
		_, err = p.Extract(t.Context(), "text/plain", "a", []byte("gr\xfcn"))
		is.Equal(errs.CodeOf(err), errs.Unavailable)
	}
	broken := jsvm.NewEngine(jsvm.Parts{}, errors.New("no children"))
	_, err := jsvm.Open(broken)
	is.Equal(err.Error(), "no children")
	is.NoErr(broken.Close())
}
