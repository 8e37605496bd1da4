package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/tenantcontent/tenantcontent"
)

type rekeyCommand struct {
	storage
}

func (r *rekeyCommand) Run(ctx context.Context, t terminal) error {
	if err := r.find(); err != nil {
		return err
	}
	lib := tenantcontent.Config{Log: slog.New(slog.NewTextHandler(t.err, nil))}
	if err := r.open(&lib); err != nil {
		return err
	}
	defer func() { _ = shut(&lib) }()
	n, err := tenantcontent.Rekey(ctx, lib)
	if interruption(ctx, err) != nil {
		return interrupted("some secrets may be under the new key already, and nothing is lost: run rekey again")
	}
	if err != nil {
		return err
	}
	secrets := fmt.Sprintf("%d secrets", n)
	if n == 1 {
		secrets = "1 secret"
	}
	switch {
	case n == 0:
		return say(t, "No secret is encrypted under another key than the first: nothing was changed.")
	case r.keyFile() != "":
		return say(t, "Encrypted %s again. The key in %s was replaced; keep a new copy of it.", secrets, r.keyFile())
	}
	return say(
		t,
		"Encrypted %s again under the first key: the keys behind it are needed no more. Keep a copy of the first.",
		secrets,
	)
}
