package cli

import (
	"context"
	"net/url"
	"strconv"
)

type bundleImportCommand struct {
	importFlags
	DryRun bool `help:"Change nothing, only count."`
}

func (i *bundleImportCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	raw, c, err := i.send(ctx, b, t, url.Values{"dryRun": {strconv.FormatBool(i.DryRun)}})
	if err != nil {
		return err
	}
	return b.answer(t, raw, c.text())
}
