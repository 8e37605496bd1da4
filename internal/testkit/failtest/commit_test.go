package failtest_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestCommitWithoutAnswer: the answer to the COMMIT of a file is lost, and the server continues.
// The file has its bytes, and so have later files with equal bytes.
func TestCommitWithoutAnswer(t *testing.T) {
	is, u := is.New(t), plainURL(t)
	p := newProxy(t, u)
	var armed atomic.Bool
	whole, err := engines.Open(p.URL.String())
	is.NoErr(err)
	t.Cleanup(func() { _ = whole.Close() })
	w := newWorldOn(t, u, dbtest.Watched(t, whole, func(statement string) {
		if statement == "COMMIT" && armed.CompareAndSwap(true, false) {
			p.after.Store(1)
		}
	}))
	ctx := as(t.Context())
	library, err := w.app.Content.Create(ctx, content.Entity{Kind: "library", Name: "L"})
	is.NoErr(err)
	other, err := w.app.Content.Create(ctx, content.Entity{Kind: "library", Name: "M"})
	is.NoErr(err)
	put := func(id, path, text string) error {
		_, err := w.app.Content.PutFile(ctx, id, entity.File{Path: path}, strings.NewReader(text))
		return err
	}
	get := func(id, path string) string {
		_, r, err := w.app.Content.OpenFile(ctx, id, path)
		is.NoErr(err)
		defer func() { _ = r.Close() }()
		text, err := io.ReadAll(r)
		is.NoErr(err)
		return string(text)
	}
	is.NoErr(put(library.ID, "a", "old"))
	armed.Store(true)
	err = put(library.ID, "a", "new")
	is.Equal(errs.CodeOf(err), errs.Unconfirmed)
	is.Equal(p.cuts.Load(), int64(1))
	is.Equal(get(library.ID, "a"), "new")
	is.NoErr(put(library.ID, "a", "new"))
	is.NoErr(put(other.ID, "b", "new"))
	is.Equal(get(library.ID, "a"), "new")
	is.Equal(get(other.ID, "b"), "new")
}
