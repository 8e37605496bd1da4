package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/secure/keyring"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/javascript"
)

// storage has the locations of the database and its secret key.
type storage struct {
	Database  string `env:"TENANTCONTENT_DATABASE" help:"sqlite:<path> or postgres://… (default: a file in the data folder)." placeholder:"URL"`
	Data      string `env:"TENANTCONTENT_DATA" default:"./data" help:"Folder of the embedded database and its secret key." placeholder:"FOLDER"`
	SecretKey string `env:"TENANTCONTENT_SECRET_KEY" help:"Encrypts secrets at rest: 32 bytes in base64 or hex; more keys behind it, parted by commas, still decrypt (default, embedded: the file secret.key in the data folder). Better set in the environment." placeholder:"KEY"`

	Workspaces     string `env:"TENANTCONTENT_WORKSPACES" help:"Where the SQL databases of apps are: a folder, or postgres://… of a database of its own (default, embedded: the folder beside the database, with .workspaces behind its name)." placeholder:"FOLDER|URL"`
	WorkspaceQuota size   `env:"TENANTCONTENT_WORKSPACE_QUOTA" default:"256MiB" help:"Size of the SQL database of an app." placeholder:"SIZE"`
}

// url returns the URL of the database.
func (s *storage) url() string {
	if s.Database == "" {
		return "sqlite:" + s.file()
	}
	return s.Database
}

// file returns the path of the SQLite file, or "" for PostgreSQL.
func (s *storage) file() string {
	if s.Database == "" {
		return filepath.Join(s.Data, "tenantcontent.db")
	}
	path, _ := strings.CutPrefix(s.Database, "sqlite:")
	if path == s.Database {
		return ""
	}
	return path
}

// embedded reports whether the database is a SQLite file.
func (s *storage) embedded() bool {
	return s.Database == "" || strings.HasPrefix(s.Database, "sqlite:")
}

// keyFile returns the path of the file with the secret key, or "" if the key is configured.
func (s *storage) keyFile() string {
	if s.SecretKey != "" || !s.embedded() {
		return ""
	}
	return filepath.Join(s.Data, "secret.key")
}

// make creates the folder of the data, accessible only by its owner, if it is missing and needed.
// The folder of a file in --database must exist.
func (s *storage) make() error {
	if s.embedded() && s.Database != "" && s.file() != "" {
		if folder := filepath.Dir(s.file()); !there(folder) {
			return errs.New(
				errs.Invalid, "the folder %s of the database %s does not exist: make it, or correct --database",
				folder, s.Database,
			)
		}
	}
	if !s.embedded() || s.Database != "" && s.SecretKey != "" {
		return nil
	}
	if err := os.MkdirAll(s.Data, 0o700); err != nil {
		return errs.Wrap(errs.Invalid, err, "the data folder %s cannot be made: %v", s.Data, err)
	}
	return nil
}

// find returns errs.Invalid, naming the path, if the database or the key file does not exist.
func (s *storage) find() error {
	const make = "`tenantcontent migrate` or `tenantcontent serve` makes one"
	switch {
	case !s.embedded():
		return nil
	case s.Database == "" && !there(s.file()):
		return errs.New(
			errs.Invalid,
			"there is no database at %s: %s, and --data or TENANTCONTENT_DATA names another folder", s.file(),
			make,
		)
	case s.file() != "" && !there(filepath.Dir(s.file())):
		return errs.New(
			errs.Invalid, "the folder %s of the database %s does not exist: correct --database",
			filepath.Dir(s.file()), s.Database,
		)
	case s.file() != "" && !there(s.file()):
		return errs.New(errs.Invalid, "there is no database at %s, which --database names: %s", s.file(), make)
	case s.keyFile() != "" && !there(s.keyFile()):
		return errs.New(
			errs.Invalid,
			"there is no secret key at %s: set TENANTCONTENT_SECRET_KEY, or name the folder of the key with --data",
			s.keyFile(),
		)
	}
	return nil
}

// there reports whether a path exists. A path that cannot be examined is assumed to exist, so that
// opening it fails with the reason.
func there(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// open opens the database and the workspaces, and puts them and the secret key into lib. The caller
// must close them with shut.
func (s *storage) open(lib *tenantcontent.Config) error {
	lib.DomainDrivers = drivers()
	if lib.Scripts == nil {
		lib.Scripts = javascript.New(javascript.Options{Log: lib.Log})
	}
	if s.SecretKey != "" {
		if _, err := keyring.Parse(s.SecretKey); err != nil {
			return errs.New(
				errs.Invalid, "TENANTCONTENT_SECRET_KEY: %s `openssl rand -base64 32` makes a key.",
				errs.MessageOf(err),
			)
		}
	}
	err := s.openWithoutKey(lib)
	if err == nil && s.SecretKey == "" && !s.embedded() {
		err = errors.Join(
			shut(lib),
			errs.New(
				errs.Invalid,
				"on PostgreSQL a secret key is required: set TENANTCONTENT_SECRET_KEY, for example to the output "+
					"of `openssl rand -base64 32`, and keep it",
			),
		)
	}
	return err
}

// openWithoutKey is open for databases without a key.
func (s *storage) openWithoutKey(lib *tenantcontent.Config) (err error) {
	url := s.url()
	lib.SecretKey, lib.SecretKeyFile = s.SecretKey, s.keyFile()
	if lib.Workspaces, err = engines.OpenWorkspaces(s.Workspaces, url, int64(s.WorkspaceQuota)); err != nil {
		return errs.Wrap(errs.Invalid, err, "--workspaces: %s", errs.MessageOf(err))
	}
	lib.DB, err = engines.Open(url)
	return err
}

// shut closes what open has opened.
func shut(lib *tenantcontent.Config) (err error) {
	if lib.Workspaces != nil {
		err = lib.Workspaces.Close()
	}
	return errors.Join(err, lib.DB.Close())
}

// with runs fn on a migrated database whose secrets can be opened with the configured key. It
// creates neither.
func (s *storage) with(ctx context.Context, t terminal, fn func(app *tenantcontent.App) error) error {
	if err := s.find(); err != nil {
		return err
	}
	lib := tenantcontent.Config{Log: slog.New(slog.NewTextHandler(t.err, nil))}
	if err := s.open(&lib); err != nil {
		return err
	}
	defer func() { _ = shut(&lib) }()
	app, err := tenantcontent.Open(lib)
	if err != nil {
		return err
	}
	if err := app.Ready(ctx); err != nil {
		return err
	}
	if err := app.CheckKeys(ctx); err != nil {
		return err
	}
	return fn(app)
}
