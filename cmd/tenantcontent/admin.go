package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"

	"github.com/uptrace/bun"
	"golang.org/x/term"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/tenants"
)

type migrateCommand struct {
	storage
	Partitions       count `help:"Make the tables of an empty PostgreSQL with partitions by tenant: see docs/scale.md." placeholder:"NUMBER"`
	RowLevelSecurity bool  `help:"Also make PostgreSQL keep tenants apart by policies; then open it with row_level_security=on in the URL."`
}

// Run makes the database and its key file where they are missing. On PostgreSQL it needs no key.
func (m *migrateCommand) Run(ctx context.Context, t terminal) error {
	if err := m.make(); err != nil {
		return err
	}
	lib := tenantcontent.Config{Log: slog.New(slog.NewTextHandler(t.err, nil))}
	if err := m.openWithoutKey(&lib); err != nil {
		return err
	}
	defer func() { _ = shut(&lib) }()
	if err := database.Check(ctx, lib.DB); err != nil {
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

// isolate switches row-level security on, and says so where it was not.
func (m *migrateCommand) isolate(ctx context.Context, t terminal, db *bun.DB) error {
	tables, err := tenantcontent.EnableRowLevelSecurity(ctx, db)
	switch {
	case err != nil:
		return err
	case len(tables) == 0:
		return say(t, "Row-level security was on already.")
	}
	return say(t, "Switched on row-level security for %d tables. From now on the database URL needs row_level_security=on and a role that is no superuser: a server without them does not start.", len(tables))
}

type tenantAddCommand struct {
	storage
	ID            string `arg:"" help:"Id: lower-case letters, digits and hyphens."`
	Name          string `help:"Name (default: the id)." placeholder:"NAME"`
	AdminPassword string `env:"TENANTCONTENT_ADMIN_PASSWORD" help:"Password of the superuser admin (default: a random one, printed once)." placeholder:"PASSWORD"`
}

func (a *tenantAddCommand) Run(ctx context.Context, t terminal) error {
	return a.with(ctx, t, func(app *tenantcontent.App) error {
		if err := app.Lock(ctx, "tenant add"); err != nil { // it encrypts
			return err
		}
		defer func() { _ = app.Unlock() }()
		generated, err := app.AddTenant(ctx, tenants.Tenant{ID: a.ID, Name: a.Name}, a.AdminPassword)
		if err != nil {
			return err
		}
		if generated == "" {
			return say(t, "Added the tenant %s with the superuser admin.", a.ID)
		}
		return say(t, "Added the tenant %s with the superuser admin, password %s (shown only now).", a.ID, generated)
	})
}

// who names a user and where the password comes from.
type who struct {
	storage
	Username string `arg:"" help:"Username."`
	Tenant   string `default:"default" help:"Id of the tenant." placeholder:"ID"`
	Password string `env:"TENANTCONTENT_PASSWORD" help:"Password (default: asked for, or the first line of the input). Better set in the environment." placeholder:"PASSWORD"`
}

type userAddCommand struct {
	who
}

func (u *userAddCommand) Run(ctx context.Context, t terminal) error {
	return u.run(ctx, t, "Added the superuser %s to the tenant %s.", func(app *tenantcontent.App, password string) error {
		_, err := app.Principals.Unchecked().AddSuperuser(ctx, u.Tenant, u.Username, password)
		return err
	})
}

type userPasswdCommand struct {
	who
}

func (u *userPasswdCommand) Run(ctx context.Context, t terminal) error {
	return u.run(ctx, t, "Set the password of %s in the tenant %s.", func(app *tenantcontent.App, password string) error {
		return app.Principals.Unchecked().SetPassword(ctx, u.Tenant, u.Username, password)
	})
}

func (w *who) run(ctx context.Context, t terminal, done string, do func(*tenantcontent.App, string) error) error {
	password := w.Password
	if password == "" {
		var err error
		if password, err = t.ask(ctx, "Password: "); err != nil {
			return err
		}
	}
	return w.with(ctx, t, func(app *tenantcontent.App) error {
		if err := do(app, password); err != nil {
			return err
		}
		return say(t, done, w.Username, w.Tenant)
	})
}

// keyboard returns the file descriptor of the terminal that a person types at, false when the input is none.
func (t terminal) keyboard() (fd int, ok bool) {
	f, ok := t.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	return int(f.Fd()), true
}

// ask reads a password: a line that is not shown while it is typed on a terminal.
func (t terminal) ask(ctx context.Context, prompt string) (string, error) {
	fd, ok := t.keyboard()
	if !ok {
		line, err := t.line(ctx, "")
		if err == nil && line == "" {
			err = errs.New(errs.Invalid, "no password: set TENANTCONTENT_PASSWORD or write it to the input")
		}
		return line, err
	}
	shown, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	_, _ = fmt.Fprint(t.err, prompt)
	line, err := await(ctx, func() (string, error) {
		line, err := term.ReadPassword(fd)
		return string(line), err
	})
	_, _ = fmt.Fprintln(t.err)
	if ctx.Err() != nil {
		return "", errors.Join(err, term.Restore(fd, shown)) // who reads still has the echo off
	}
	return line, err
}

// line reads a line, "" at the end of the input.
func (t terminal) line(ctx context.Context, prompt string) (string, error) {
	_, _ = fmt.Fprint(t.err, prompt)
	return await(ctx, func() (string, error) {
		line, err := bufio.NewReader(t.in).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// await returns what read returns, or the error of ctx when that ends first: a read from a terminal cannot be ended.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := read()
		got <- result{line, err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

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
	return say(t, "Encrypted %s again under the first key: the keys behind it are needed no more. Keep a copy of the first.", secrets)
}

type versionCommand struct{}

func (*versionCommand) Run(t terminal) error { return say(t, "tenantcontent %s", version()) }

// version returns the version that the program was built as.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}

func say(t terminal, format string, args ...any) error {
	_, err := fmt.Fprintf(t.out, format+"\n", args...)
	return err
}
