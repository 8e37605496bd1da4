package spool_test

import (
	"io"
	"os"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/limits/spool"
)

func TestFile(t *testing.T) {
	is, dir := is.New(t), t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // for Windows
	f, err := spool.New()
	is.NoErr(err)
	_, err = io.WriteString(f, "kept")
	is.NoErr(err)
	b := make([]byte, 4)
	_, err = f.ReadAt(b, 0)
	is.NoErr(err)
	is.Equal(string(b), "kept")
	is.NoErr(f.Close())
	left, err := os.ReadDir(dir)
	is.NoErr(err)
	is.Equal(len(left), 0)
}

// TestNoFolder: New returns an error if the file cannot be created.
func TestNoFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	t.Setenv("TMP", t.TempDir()+"/none")
	_, err := spool.New()
	is.New(t).True(err != nil)
}
