package workspacestest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// testMove checks a Mover: a workspace arrives as it was, while it is used, in the place of one
// that is there; what is cut, changed or too large leaves nothing.
func testMove(t *testing.T, open Open) {
	is, ctx := is.New(t), t.Context()
	from, to := open(t, Options{}), open(t, Options{Quota: 1 << 20})
	source, ok := from.(workspaces.Mover)
	if !ok {
		return // it is moved by other means
	}
	target := to.(workspaces.Mover)
	var file bytes.Buffer
	there, err := source.Export(ctx, one.Tenant, one.App, &file)
	is.NoErr(err)
	is.True(!there)
	is.Equal(file.Len(), 0)

	c := connect(t, from, one)
	c.query("CREATE TABLE t (k integer PRIMARY KEY, s text NOT NULL)")
	c.query("CREATE INDEX t_s ON t (s)")
	c.query("INSERT INTO t (k, s) VALUES (1, $1), (2, $2)", "ü", strings.Repeat("x", 100_000))
	there, err = source.Export(ctx, one.Tenant, one.App, &file)
	is.NoErr(err)
	is.True(there)
	c.query("INSERT INTO t (k, s) VALUES (3, 'after')")
	whole := file.Bytes()

	other := connect(t, to, two)
	other.query("CREATE TABLE old (k integer)")
	is.NoErr(other.c.Close())
	damaged := bytes.Clone(whole)
	copy(damaged[len(damaged)/2:], bytes.Repeat([]byte{0xff}, 8192))
	for name, bad := range map[string]io.Reader{
		"cut":     bytes.NewReader(whole[:len(whole)/2]),
		"changed": bytes.NewReader(damaged), "text": strings.NewReader(strings.Repeat("no database ", 1000)),
	} {
		if err := target.Import(ctx, two.Tenant, two.App, bad); errs.CodeOf(err) != errs.Invalid ||
			!strings.Contains(errs.MessageOf(err), two.App) || strings.Contains(errs.MessageOf(err), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = target.Import(
		ctx, two.Tenant, two.App, io.MultiReader(bytes.NewReader(whole), bytes.NewReader(make([]byte, 1<<20))),
	)
	is.Equal(errs.CodeOf(err), errs.TooLarge)
	there, err = target.Export(ctx, two.Tenant, two.App, io.Discard)
	is.NoErr(err)
	is.True(!there)

	for range 2 { // the second one in the place of the first
		is.NoErr(target.Import(ctx, two.Tenant, two.App, bytes.NewReader(whole)))
		c = connect(t, to, two)
		is.Equal(c.query("SELECT k, length(s) AS n FROM t ORDER BY k"), `[{"k":1,"n":1},{"k":2,"n":100000}]`)
		c.fails(errs.Invalid, "INSERT INTO t (k) VALUES (4)")
		c.query("INSERT INTO t (k, s) VALUES (4, 'new')")
		is.NoErr(c.c.Close())
	}
	is.NoErr(to.DropTenant(ctx, two.Tenant))
	there, err = target.Export(ctx, two.Tenant, two.App, io.Discard)
	is.NoErr(err)
	is.True(!there)
}
