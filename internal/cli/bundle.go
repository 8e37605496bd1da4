package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"sync/atomic"

	"github.com/tenantcontent/tenantcontent/errs"
)

// bundleCommands transfer bundles between files and a running server.
type bundleCommands struct {
	client

	Export bundleExportCommand `cmd:"" help:"Write a bundle to a file."`
	Import bundleImportCommand `cmd:"" help:"Import a file into the token's tenant."`
	Diff   bundleDiffCommand   `cmd:"" help:"Print what an import would change, and change nothing. It stops at the first row that cannot be imported."`
}

// importFlags are the options that import and diff share.
type importFlags struct {
	File       string `arg:"" help:"Archive to read; - is the input." placeholder:"FILE"`
	UpdateRule string `default:"skip" enum:"skip,overwrite,fail" help:"What happens to rows that are there: skip, overwrite or fail." placeholder:"RULE"`
	Owner      string `help:"User or team that gets the rows whose owner is not known (default: you)." placeholder:"ID"`
}

// tally counts rows by what was done to them. Only a diff counts unchanged ones.
type tally struct {
	Created   int  `json:"created"`
	Updated   int  `json:"updated"`
	Unchanged *int `json:"unchanged"`
	Skipped   int  `json:"skipped"`
	Deleted   int  `json:"deleted"`
}

func (n tally) String() string {
	same := ""
	if n.Unchanged != nil {
		same = fmt.Sprintf(" %d unchanged,", *n.Unchanged)
	}
	return fmt.Sprintf(
		"%d created, %d updated,%s %d skipped, %d deleted", n.Created, n.Updated, same, n.Skipped, n.Deleted,
	)
}

// counts is the answer of the server to an import.
type counts struct {
	tally
	Warnings []foreign         `json:"warnings"`
	ByType   map[foreign]tally `json:"byType"`
	Changes  []struct {
		Action string  `json:"action"`
		Type   foreign `json:"type"`
		ID     foreign `json:"id"`
		Name   foreign `json:"name"`
	} `json:"changes"`
}

// open returns the archive and its size, -1 if it is not known.
func (a importFlags) open(ctx context.Context, t terminal) (io.ReadCloser, int64, error) {
	if a.File == "-" {
		return stream(ctx, func() (io.ReadCloser, error) { return io.NopCloser(t.in), nil }), -1, nil
	}
	open := func() (io.ReadCloser, error) {
		f, err := os.Open(a.File)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "cannot read %s: %v", a.File, err)
		}
		return f, nil
	}
	info, err := os.Stat(a.File)
	switch {
	case err != nil:
		return nil, 0, errs.Wrap(errs.Invalid, err, "cannot read %s: %v", a.File, err)
	case info.IsDir():
		return nil, 0, errs.New(errs.Invalid, "cannot read %s: it is a folder", a.File)
	case !info.Mode().IsRegular(): // such as the output of another command
		return stream(ctx, open), -1, nil
	}
	f, err := open()
	return f, info.Size(), err
}

// stream returns a reader of open's result that ends with ctx. Opening and reading a pipe may wait
// for its writer for any time.
func stream(ctx context.Context, open func() (io.ReadCloser, error)) io.ReadCloser {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() {
		f, err := open()
		if err == nil {
			_, err = io.Copy(w, f)
			err = errors.Join(err, f.Close())
		}
		_ = w.CloseWithError(err) // io.EOF if nil
	}()
	return r
}

// send uploads the archive and returns the server's response, raw and decoded.
func (a importFlags) send(
	ctx context.Context, b *bundleCommands, t terminal, more url.Values,
) (raw []byte, c counts, err error) {
	f, size, err := a.open(ctx, t)
	if err != nil {
		return nil, c, err
	}
	defer func() { _ = f.Close() }()
	more.Set("updateRule", a.UpdateRule)
	if a.Owner != "" {
		more.Set("owner", a.Owner)
	}
	shown := t.progress()
	defer shown.finish()
	shown.begin("sending", size)
	body := &upload{Reader: io.TeeReader(f, shown), left: size, progress: shown}
	res, err := b.client.send(ctx, outgoing{
		"POST", "/api/_import-bundle?" + more.Encode(), body, size, "application/gzip",
	})
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		raw, err = io.ReadAll(res.Body)
	}
	if err != nil {
		return nil, c, body.outcome(ctx, err, more.Get("dryRun") == "true")
	}
	return raw, c, json.Unmarshal(raw, &c)
}

// outcome adds to err whether anything was imported.
func (u *upload) outcome(ctx context.Context, err error, dry bool) error {
	stopped := interruption(ctx, err) != nil
	switch {
	case stopped && dry:
		return interrupted("a dry run changes nothing")
	case stopped && u.sent.Load():
		return interrupted("the server has the whole archive, and may have imported it: `bundle diff` shows " +
			"whether it has")
	case stopped:
		return interrupted("nothing was imported")
	case !dry && u.sent.Load() && errs.CodeOf(err) == errs.Unavailable:
		return errs.Wrap(
			errs.Unavailable, err,
			"the server has the whole archive and did not answer: `bundle diff` shows whether it was imported",
		)
	}
	return err
}

// upload is an archive that is being sent.
type upload struct {
	io.Reader
	left     int64 // negative if unknown
	sent     atomic.Bool
	progress *progress
}

// Read records when the server reads the last byte. From then on its progress is unknown.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	u.left -= int64(n)
	if (u.left == 0 || errors.Is(err, io.EOF)) && !u.sent.Swap(true) {
		u.progress.begin("sent; the server checks and imports", 0)
	}
	return n, err
}

// text returns the counts as text, one line for each type.
func (c counts) text() string {
	var out bytes.Buffer
	for _, kind := range slices.Sorted(maps.Keys(c.ByType)) {
		fmt.Fprintf(&out, "%-14s %s\n", kind, c.ByType[kind])
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	fmt.Fprintf(&out, "%-14s %s", "total", c.tally)
	return out.String()
}
