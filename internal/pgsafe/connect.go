package pgsafe

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

type connector struct {
	target  target
	cfg     Config
	dialer  net.Dialer
	setup   string // the statement that makes the settings of a new connection
	without string // the same without client_connection_check_interval, which not every server has
	limits  timeouts

	mu         sync.Mutex
	silent     error     // of the last attempt that took all of its time
	silentTill time.Time // until then no other one is made
}

// silence is how long no connection is attempted after a server did not answer. Callers that want one meanwhile get an error at
// once: one after the other, each with connect_timeout, they would wait for minutes.
const silence = time.Second

func newConnector(t target, cfg Config) *connector {
	if cfg.StatementCache <= 0 {
		cfg.StatementCache = defaultStatementCache
	}
	all := append([]setting{
		{"statement_timeout", milliseconds(cmp.Or(cfg.StatementTimeout, time.Minute))},
		{"lock_timeout", milliseconds(cmp.Or(cfg.LockTimeout, 10*time.Second))},
		{"idle_in_transaction_session_timeout", milliseconds(cmp.Or(cfg.IdleInTransactionTimeout, time.Minute))},
		{"timezone", "UTC"},
		{"jit", "off"},       // compiling takes longer than the statements of requests do
		{"datestyle", "ISO"}, // pgdriver reads no other, nor another bytea_output
		{"bytea_output", "hex"},
	}, t.settings...)
	if cfg.Tenant != nil {
		all = append(all, setting{tenantSetting, ""})
	}
	return &connector{
		limits: newTimeouts(t, cfg),
		target: t,
		cfg:    cfg,
		dialer: net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3,
		}},
		setup:   setupStatement(append(all[:len(all):len(all)], setting{"client_connection_check_interval", "1000"})),
		without: setupStatement(all),
	}
}

// milliseconds returns d as a setting of PostgreSQL, where 0 means no limit.
func milliseconds(d time.Duration) string {
	if d < 0 {
		return "0"
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// setupStatement makes all settings in one round trip. A later setting wins over an earlier one.
func setupStatement(all []setting) string {
	calls := make([]string, len(all))
	for i, s := range all {
		calls[i] = fmt.Sprintf("set_config(%s, %s, false)", literal(s.name), literal(s.value))
	}
	return "select " + strings.Join(calls, ", ")
}

// literal returns s as a string literal. pgdriver requires standard_conforming_strings.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Connect dials, logs in and makes the settings, within connect_timeout. It leaves no socket behind when it fails. Within
// a second after an attempt that has had no answer it fails at once.
func (k *connector) Connect(ctx context.Context) (driver.Conn, error) {
	if err := k.isSilent(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, k.target.connectTimeout)
	defer cancel()
	raw, err := k.dialer.DialContext(limited, k.target.network, k.target.addr)
	if err != nil {
		return nil, k.failed(ctx, limited, err)
	}
	s := &socket{Conn: raw}
	stop := context.AfterFunc(limited, s.kill)
	c, err := k.start(limited, s)
	if !stop() && err == nil {
		err = limited.Err()
	}
	if err != nil {
		s.kill() // pgdriver leaves it open
		return nil, k.failed(ctx, limited, err)
	}
	return c, nil
}

// failed returns the error for the caller: that of its own context, a time-out, or the cause.
func (k *connector) failed(ctx, limited context.Context, err error) error {
	deadline, has := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case has && !time.Now().Before(deadline): // the dialer has its own timer, which may be a little earlier
		return context.DeadlineExceeded
	case limited.Err() != nil:
		err = fmt.Errorf("pgsafe: connect to %s: %w", k.target.addr, os.ErrDeadlineExceeded)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.silent, k.silentTill = err, time.Now().Add(silence)
		return err
	}
	return fmt.Errorf("pgsafe: connect to %s: %w", k.target.addr, err)
}

// isSilent returns the error of an attempt that has just had no answer.
func (k *connector) isSilent() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Now().Before(k.silentTill) {
		return k.silent
	}
	return nil
}

// start lets pgdriver log in over s. pgdriver panics on some messages that no PostgreSQL sends.
func (k *connector) start(ctx context.Context, s *socket) (c *conn, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pgsafe: the server does not speak PostgreSQL's protocol: %v", p)
		}
	}()
	pg, err := pgdriver.NewConnector(k.options(s)).Connect(ctx)
	if err != nil {
		return nil, err
	}
	c = newConn(pg.(*pgdriver.Conn), s, k.cfg, k.limits)
	_, err = c.pg.ExecContext(ctx, k.setup, nil)
	if ordinary(err) && c.pg.IsValid() {
		_, err = c.pg.ExecContext(ctx, k.without, nil)
	}
	return c, err
}

// options passes to pgdriver the socket and everything that its own URL parser would; time-outs are lifted.
func (k *connector) options(s *socket) pgdriver.Option {
	return func(conf *pgdriver.Config) {
		*conf = pgdriver.Config{
			Network:    k.target.network,
			Addr:       k.target.addr,
			Dialer:     func(context.Context, string, string) (net.Conn, error) { return s, nil },
			TLSConfig:  k.target.tls,
			User:       k.target.user,
			Password:   k.target.password,
			Database:   k.target.database,
			AppName:    k.target.appName,
			BufferSize: 4096,
		}
	}
}

// Driver opens URLs like NewConnector, with the zero Config, and listens at the server of the connector.
func (k *connector) Driver() driver.Driver { return urlDriver{listener: k} }

type urlDriver struct{ listener *connector }

func (urlDriver) Open(url string) (driver.Conn, error) {
	k, err := NewConnector(url, Config{})
	if err != nil {
		return nil, err
	}
	return k.Connect(context.Background())
}
