package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/errs"
)

// config is what every command reads from flags and environment.
type config struct {
	Listen          string        `env:"TENANTCONTENT_LISTEN" default:"127.0.0.1:8080" help:"Address to serve on." placeholder:"HOST:PORT"`
	BaseURL         string        `env:"TENANTCONTENT_BASE_URL" help:"Start of every link, such as https://content.example.com (default: http:// and the address)." placeholder:"URL"`
	Database        string        `env:"TENANTCONTENT_DATABASE" help:"sqlite:<path> or postgres://… (default: a file in the data folder)." placeholder:"URL"`
	Data            string        `env:"TENANTCONTENT_DATA" default:"./data" help:"Folder of the embedded database and its secret key." placeholder:"FOLDER"`
	SecretKey       string        `env:"TENANTCONTENT_SECRET_KEY" help:"Encrypts secrets at rest: 32 bytes in base64 or hex; more keys behind it, parted by commas, still decrypt (default, embedded: the file secret.key in the data folder). Better set in the environment." placeholder:"KEY"`
	MaxBody         int64         `env:"TENANTCONTENT_MAX_BODY" default:"1048576" help:"Bytes of a JSON body." placeholder:"BYTES"`
	MaxUpload       int64         `env:"TENANTCONTENT_MAX_UPLOAD" default:"268435456" help:"Bytes of an uploaded file." placeholder:"BYTES"`
	SessionLifetime time.Duration `env:"TENANTCONTENT_SESSION_LIFETIME" default:"12h" help:"How long a log-in lasts." placeholder:"TIME"`
	DenyNetworks    string        `env:"TENANTCONTENT_DENY_NETWORKS" default:"169.254.0.0/16,fe80::/10,fd00:ec2::254/128" help:"Networks that no domain's directory or provider may be in, parted by commas, or none." placeholder:"NETWORKS"`
	LogFormat       string        `env:"TENANTCONTENT_LOG_FORMAT" default:"text" enum:"text,json" help:"Log format: text or json."`
	LogLevel        string        `env:"TENANTCONTENT_LOG_LEVEL" default:"info" enum:"debug,info,warn,error" help:"Log level: debug (one line a request), info, warn or error."`

	MaxArchive        int64 `env:"TENANTCONTENT_MAX_ARCHIVE" default:"4294967296" help:"Bytes of a bundle's archive as it is sent, packed." placeholder:"BYTES"`
	MaxArchiveBytes   int64 `env:"TENANTCONTENT_MAX_ARCHIVE_BYTES" default:"4294967296" help:"Bytes of an archive when it is unpacked." placeholder:"BYTES"`
	MaxArchiveMembers int   `env:"TENANTCONTENT_MAX_ARCHIVE_MEMBERS" default:"200000" help:"Rows and files of an archive." placeholder:"NUMBER"`
	MaxArchiveRow     int64 `env:"TENANTCONTENT_MAX_ARCHIVE_ROW" default:"4194304" help:"Bytes of one row of an archive." placeholder:"BYTES"`
	MaxArchiveRatio   int64 `env:"TENANTCONTENT_MAX_ARCHIVE_RATIO" default:"200" help:"How many times as many bytes an archive may have when it is unpacked." placeholder:"TIMES"`
}

// embedded reports whether the database is a SQLite file.
func (c *config) embedded() bool {
	return c.Database == "" || strings.HasPrefix(c.Database, "sqlite:")
}

// logger makes the log on a stream.
func (c *config) logger(to io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // kong has checked it
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// open opens the database and turns the configuration into the library's. The caller closes the database.
func (c *config) open(log io.Writer) (tenantcontent.Config, error) {
	url := c.Database
	if url == "" {
		url = "sqlite:" + filepath.Join(c.Data, "tenantcontent.db")
	}
	lib := tenantcontent.Config{SecretKey: c.SecretKey, BaseURL: c.BaseURL, Log: c.logger(log),
		MaxBody: c.MaxBody, MaxUpload: c.MaxUpload, MaxArchive: c.MaxArchive, SessionLifetime: c.SessionLifetime,
		ArchiveLimits: bundles.Limits{Members: c.MaxArchiveMembers, Bytes: c.MaxArchiveBytes, Row: c.MaxArchiveRow, Ratio: c.MaxArchiveRatio}}
	least := min(c.MaxBody, c.MaxUpload, c.MaxArchive, c.MaxArchiveBytes, int64(c.MaxArchiveMembers), c.MaxArchiveRow, c.MaxArchiveRatio)
	if least < 1 || c.SessionLifetime < time.Second {
		return lib, errs.New(errs.Invalid, "each max- setting must be at least 1, and session-lifetime at least 1s")
	}
	var err error
	if lib.DenyNetworks, err = networks(c.DenyNetworks); err != nil {
		return lib, err
	}
	if c.SecretKey == "" && c.embedded() {
		if err := os.MkdirAll(c.Data, 0o700); err != nil {
			return lib, errs.Wrap(errs.Invalid, err, "the data folder %s cannot be made: %v", c.Data, err)
		}
		lib.SecretKeyFile = filepath.Join(c.Data, "secret.key")
	}
	if lib.BaseURL == "" {
		lib.BaseURL = "http://" + reachable(c.Listen)
	}
	db, err := database.Open(url)
	if err == nil && lib.SecretKey == "" && lib.SecretKeyFile == "" {
		err = errors.Join(db.Close(), errs.New(errs.Invalid, "on PostgreSQL a secret key is required: set TENANTCONTENT_SECRET_KEY, for example to the output of `openssl rand -base64 32`, and keep it"))
	}
	lib.DB = db
	return lib, err
}

// networks reads deny-networks.
func networks(text string) ([]netip.Prefix, error) {
	all := []netip.Prefix{}
	if text == "none" {
		return all, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "deny-networks must be none, or networks such as 10.0.0.0/8 parted by commas")
		}
		all = append(all, network)
	}
	return all, nil
}

// reachable turns an address to listen on into one to call: every interface is localhost.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// with runs fn on a migrated database whose secrets the configured key opens.
func (c *config) with(ctx context.Context, t terminal, fn func(app *tenantcontent.App) error) error {
	lib, err := c.open(t.err)
	if err != nil {
		return err
	}
	defer func() { _ = lib.DB.Close() }()
	app, err := tenantcontent.Open(lib)
	if err != nil {
		return err
	}
	if err := tenantcontent.Migrate(ctx, lib.DB); err != nil {
		return err
	}
	if err := app.CheckKeys(ctx); err != nil {
		return err
	}
	return fn(app)
}
