package engines_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

func TestOpenWorkspaces(t *testing.T) {
	is, folder := is.New(t), t.TempDir()
	file := filepath.Join(folder, "main.db")
	for text, in := range map[string]string{
		"":                              file + ".workspaces",
		filepath.Join(folder, "a", "b"): filepath.Join(folder, "a", "b"),
	} {
		d, err := engines.OpenWorkspaces(text, "sqlite:"+file, 1<<20)
		is.NoErr(err)
		_, err = os.Stat(in)
		is.True(os.IsNotExist(err)) // until one is used
		c, err := d.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: "a"})
		is.NoErr(err)
		is.NoErr(c.Close())
		is.NoErr(d.Close())
		there, err := os.Stat(in)
		is.NoErr(err)
		is.Equal(there.Mode().Perm(), os.FileMode(0o700))
	}
	none, err := engines.OpenWorkspaces("", "postgres://localhost/x", 0)
	is.NoErr(err)
	is.True(none == nil)
	is.NoErr(os.WriteFile(file, nil, 0o600))
	for _, bad := range [][2]string{
		{file, "sqlite:" + file}, {"mysql://localhost/x", "sqlite:" + file},
		{"postgres://a:secret@db/main", "postgres://b:secret@db:5432/main?sslmode=require"},
		{"postgres://a:secret@db:x/", ""},
	} {
		_, err := engines.OpenWorkspaces(bad[0], bad[1], 0)
		is.Equal(errs.CodeOf(err), errs.Invalid)
		is.True(!strings.Contains(err.Error(), "secret"))
	}
	d, err := engines.OpenWorkspaces("postgres://a@db/workspaces", "postgres://a@db/main", 0)
	is.NoErr(err)
	is.Equal(d.Engine(), "postgres")
	is.NoErr(d.Close())
}
