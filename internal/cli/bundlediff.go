package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/tenantcontent/tenantcontent/errs"
)

type bundleDiffCommand struct {
	importFlags
}

// Run returns the errors of an import, and adds that the rest was not compared.
func (d *bundleDiffCommand) Run(ctx context.Context, b *bundleCommands, t terminal) error {
	raw, c, err := d.send(ctx, b, t, url.Values{"dryRun": {"true"}, "changes": {"true"}})
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.code == http.StatusConflict {
		return errs.Wrap(
			errs.Conflict, err, "%v\nA diff stops at the first row that cannot be imported: there may be more.",
			err,
		)
	}
	if err != nil {
		return err
	}
	text := c.diff() + c.text()
	if d.UpdateRule == "fail" && c.Unchanged != nil && *c.Unchanged > 0 {
		text += "\nAn import with --update-rule=fail stops at the rows that are there, the unchanged ones too."
	}
	return b.answer(t, raw, text)
}

// diff returns a line for each row that would change: + is new, ~ is overwritten by a different
// one, - is removed.
func (c counts) diff() string {
	var out bytes.Buffer
	for _, change := range c.Changes {
		sign, ok := map[string]string{"created": "+", "updated": "~", "deleted": "-"}[change.Action]
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "%s %s %s", sign, change.Type, change.ID)
		if change.Name != "" && change.Name != change.ID {
			fmt.Fprintf(&out, ` "%s"`, change.Name)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
