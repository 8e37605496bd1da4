package cli

import (
	"cmp"
	"context"

	"github.com/tenantcontent/tenantcontent/database/sqlite"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

type backupCommand struct {
	storage
	File string `arg:"" help:"File to write, which must not exist; - is the output." placeholder:"FILE"`
}

// Run copies the files of an embedded server, which may be running.
func (b *backupCommand) Run(ctx context.Context, t terminal) error {
	files, err := engines.Files(b.url(), b.Workspaces)
	if err != nil {
		return err
	}
	if err := b.find(); err != nil {
		return err
	}
	shown := t.progress()
	if b.File == "-" {
		defer shown.finish()
		return sqlite.Backup(ctx, files, t.out, "", shown.show)
	}
	n, err := sqlite.BackupFile(ctx, files, b.File, shown.show)
	shown.finish()
	if err != nil {
		return err
	}
	return say(
		t, "Wrote %s, %s. The secret key is not in it: keep %s, too.", b.File, size(n).about(),
		cmp.Or(b.keyFile(), "TENANTCONTENT_SECRET_KEY"),
	)
}
