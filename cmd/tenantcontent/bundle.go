package main

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
	"strconv"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// bundleCommands move bundles between files and a running server.
type bundleCommands struct {
	client

	Export bundleExportCommand `cmd:"" help:"Write a bundle to a file."`
	Import bundleImportCommand `cmd:"" help:"Import a file into the token's tenant."`
	Diff   bundleDiffCommand   `cmd:"" help:"Print what an import would change, and change nothing."`
}

type bundleExportCommand struct {
	File   string `arg:"" help:"File to write; - is the output." placeholder:"FILE"`
	Bundle string `required:"" help:"Id or slug of the bundle." placeholder:"BUNDLE"`
}

// Run downloads to a file beside the wanted one and renames it at the end, so that half an archive never has its name.
func (e *bundleExportCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	res, err := b.send(ctx, "POST", hal.Href("bundles", e.Bundle, "_export"), nil, 0)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	body, finish := t.progress(res.Body, res.ContentLength, "export")
	if e.File == "-" {
		_, err := io.Copy(t.out, body)
		return errors.Join(unfinished(err), finish())
	}
	part := e.File + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "cannot write %s: %v", part, err)
	}
	n, err := io.Copy(f, body)
	if err = errors.Join(unfinished(err), f.Close(), finish()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, e.File); err != nil {
		return err
	}
	return b.answer(t, fmt.Appendf(nil, `{"file":%q,"bytes":%d}`, e.File, n), fmt.Sprintf("Wrote %s (%d bytes).", e.File, n))
}

func unfinished(err error) error {
	if err == nil {
		return nil
	}
	return errs.Wrap(errs.Unavailable, err, "the export was cut off: try again")
}

// arrivalFlags are the options that import and diff share.
type arrivalFlags struct {
	File       string `arg:"" help:"Archive to read." placeholder:"FILE"`
	UpdateRule string `default:"skip" enum:"skip,overwrite,fail" help:"What happens to rows that are there: skip, overwrite or fail."`
	Owner      string `help:"User or team that gets the rows whose owner is not known (default: you)." placeholder:"ID"`
}

// counts is the server's answer to an import.
type counts struct {
	Created  int      `json:"created"`
	Updated  int      `json:"updated"`
	Skipped  int      `json:"skipped"`
	Deleted  int      `json:"deleted"`
	Warnings []string `json:"warnings"`
	ByType   map[string]struct {
		Created int `json:"created"`
		Updated int `json:"updated"`
		Skipped int `json:"skipped"`
		Deleted int `json:"deleted"`
	} `json:"byType"`
	Changes []struct {
		Action string `json:"action"`
		Type   string `json:"type"`
		ID     string `json:"id"`
	} `json:"changes"`
}

// send uploads the file and gives the server's answer as it came, and read.
func (a arrivalFlags) send(ctx context.Context, b *bundleCommands, t terminal, more url.Values) (raw []byte, c counts, err error) {
	f, err := os.Open(a.File)
	if err != nil {
		return nil, c, errs.Wrap(errs.Invalid, err, "cannot read %s: %v", a.File, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, c, err
	}
	if !info.Mode().IsRegular() {
		return nil, c, errs.New(errs.Invalid, "%s is not a file", a.File)
	}
	more.Set("updateRule", a.UpdateRule)
	if a.Owner != "" {
		more.Set("owner", a.Owner)
	}
	body, finish := t.progress(f, info.Size(), "upload")
	res, err := b.client.send(ctx, "POST", "/api/_import-bundle?"+more.Encode(), body, info.Size())
	if err = errors.Join(err, finish()); err != nil {
		return nil, c, err
	}
	defer func() { _ = res.Body.Close() }()
	if raw, err = io.ReadAll(res.Body); err != nil {
		return nil, c, err
	}
	return raw, c, json.Unmarshal(raw, &c)
}

type bundleImportCommand struct {
	arrivalFlags
	DryRun bool `help:"Change nothing, only count."`
}

func (i *bundleImportCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	raw, c, err := i.send(ctx, b, t, url.Values{"dryRun": {strconv.FormatBool(i.DryRun)}})
	if err != nil {
		return err
	}
	return b.answer(t, raw, c.text())
}

type bundleDiffCommand struct {
	arrivalFlags
}

func (d *bundleDiffCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	raw, c, err := d.send(ctx, b, t, url.Values{"dryRun": {"true"}, "changes": {"true"}})
	if err != nil {
		return err
	}
	return b.answer(t, raw, c.diff()+c.text())
}

// diff is a line for each row that would change: + is new, ~ is overwritten, - is removed.
func (c counts) diff() string {
	var out bytes.Buffer
	for _, change := range c.Changes {
		sign, ok := map[string]string{"created": "+", "updated": "~", "deleted": "-"}[change.Action]
		if ok {
			fmt.Fprintf(&out, "%s %s %s\n", sign, change.Type, change.ID)
		}
	}
	return out.String()
}

// text is the counts for people, a line for each type.
func (c counts) text() string {
	var out bytes.Buffer
	for _, kind := range slices.Sorted(maps.Keys(c.ByType)) {
		n := c.ByType[kind]
		fmt.Fprintf(&out, "%-14s %d created, %d updated, %d skipped, %d deleted\n", kind, n.Created, n.Updated, n.Skipped, n.Deleted)
	}
	for _, w := range c.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	fmt.Fprintf(&out, "%-14s %d created, %d updated, %d skipped, %d deleted", "total", c.Created, c.Updated, c.Skipped, c.Deleted)
	return out.String()
}
