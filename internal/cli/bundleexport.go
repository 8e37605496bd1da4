package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

type bundleExportCommand struct {
	File   string `arg:"" help:"File to write; - is the output." placeholder:"FILE"`
	Bundle string `required:"" help:"Id or slug of the bundle." placeholder:"BUNDLE"`
}

// Run downloads to a temporary file and renames it at the end, so that an incomplete archive never
// has the name.
func (e *bundleExportCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	if err := e.check(); err != nil {
		return err
	}
	n, err := e.download(ctx, b, t)
	switch {
	case interruption(ctx, err) != nil && e.File == "-":
		return interrupted("the output is not whole")
	case interruption(ctx, err) != nil:
		return interrupted("nothing was written")
	case err != nil || e.File == "-":
		return err
	}
	raw, err := json.Marshal(map[string]any{"file": e.File, "bytes": n})
	if err != nil {
		return err
	}
	return b.answer(t, raw, fmt.Sprintf("Wrote %s (%d bytes).", e.File, n))
}

// download writes the answer of the server, and returns its size.
func (e *bundleExportCommand) download(ctx context.Context, b *bundleCommands, t terminal) (int64, error) {
	shown := t.progress()
	defer shown.finish()
	shown.begin("the server packs", 0)
	res, err := b.client.send(ctx, outgoing{method: "POST", path: hal.Href("bundles", e.Bundle, "_export")})
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	shown.begin("receiving", res.ContentLength)
	body := io.TeeReader(res.Body, shown)
	if e.File == "-" {
		return io.Copy(t.out, body)
	}
	return e.save(body)
}

// check refuses to replace anything but a regular file.
func (e *bundleExportCommand) check() error {
	info, err := os.Stat(e.File)
	switch {
	case e.File == "-" || err != nil || info.Mode().IsRegular(): // a missing file is created
		return nil
	case info.IsDir():
		return errs.New(errs.Invalid, "cannot write %s: it is a folder", e.File)
	}
	return errs.New(errs.Invalid, "cannot write %s: it is no plain file; - is the output", e.File)
}

// save writes the file and returns its size.
func (e *bundleExportCommand) save(body io.Reader) (int64, error) {
	f, err := os.CreateTemp(filepath.Dir(e.File), ".bundle-*.part") // a name that is not in use
	if err != nil {
		return 0, errs.Wrap(errs.Invalid, err, "cannot write %s: %v", e.File, err)
	}
	n, err := io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), e.File)
	}
	if err != nil {
		return 0, errors.Join(err, os.Remove(f.Name()))
	}
	return n, nil
}
