package cli

import (
	"context"
	"log/slog"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
)

type migrateCommand struct {
	storage
	Partitions       count `help:"Make the tables of an empty PostgreSQL with partitions by tenant: see docs/scale.md." placeholder:"NUMBER"`
	RowLevelSecurity bool  `help:"Also make PostgreSQL keep tenants apart by policies; then open it with row_level_security=on in the URL."`
}

// Run creates the database and its key file if they do not exist. On PostgreSQL it does not need a
// key.
func (m *migrateCommand) Run(ctx context.Context, t terminal) error {
	if err := m.make(); err != nil {
		return err
	}
	lib := tenantcontent.Config{Log: slog.New(slog.NewTextHandler(t.err, nil))}
	if err := m.openWithoutKey(&lib); err != nil {
		return err
	}
	defer func() { _ = shut(&lib) }()
	if err := engines.Check(ctx, lib.DB); err != nil {
		return err
	}
	if err := tenantcontent.CheckSecretKeyFile(ctx, lib); err != nil {
		return err
	}
	if lib.SecretKey != "" || lib.SecretKeyFile != "" {
		if _, err := tenantcontent.Open(lib); err != nil {
			return err
		}
	}
	migrate := tenantcontent.Migrate
	if m.Partitions > 0 {
		migrate = func(ctx context.Context, db *bun.DB) error {
			return tenantcontent.MigratePartitioned(ctx, db, int(m.Partitions))
		}
	}
	if err := migrate(ctx, lib.DB); err != nil {
		return err
	}
	if m.RowLevelSecurity {
		if err := m.isolate(ctx, t, lib.DB); err != nil {
			return err
		}
	}
	return say(t, "The database is up to date.")
}

// isolate enables row-level security, and prints that if it was not enabled.
func (m *migrateCommand) isolate(ctx context.Context, t terminal, db *bun.DB) error {
	tables, err := tenantcontent.EnableRowLevelSecurity(ctx, db)
	switch {
	case err != nil:
		return err
	case len(tables) == 0:
		return say(t, "Row-level security was on already.")
	}
	return say(
		t,
		"Switched on row-level security for %d tables. From now on the database URL needs row_level_security=on "+
			"and a role that is no superuser: a server without them does not start.",
		len(tables),
	)
}
