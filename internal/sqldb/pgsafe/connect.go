package pgsafe

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun/driver/pgdriver"
)

type connector struct {
	target  target
	cfg     Config
	dialer  net.Dialer
	setup   string // the statement for the settings of a new connection
	without string // the same without client_connection_check_interval, which some servers do not have
	limits  timeouts
	hosts   []*reached
	last    atomic.Int32 // index of the host of the last connection
	cancels chan struct{}

	// connections from before this time, in nanoseconds, must be replaced: one of them found its
	// server read-only
	demoted atomic.Int64
}

// reached is a host with the result of the last attempt to connect.
type reached struct {
	host
	mu         sync.Mutex
	silent     error     // the error of the last attempt that timed out
	silentTill time.Time // until then no other attempt is made
}

// silence is how long no connection is attempted after a server did not answer. Callers get an
// error at once. One after the other, each waiting for connect_timeout, they would wait for
// minutes.
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
		{"jit", "off"},       // compilation takes longer than the statements of requests
		{"datestyle", "ISO"}, // pgdriver supports no other format, nor another bytea_output
		{"bytea_output", "hex"},
	}, t.settings...)
	if cfg.Tenant != nil {
		all = append(all, setting{tenantSetting, ""})
	}
	hosts := make([]*reached, len(t.hosts))
	for i, h := range t.hosts {
		hosts[i] = &reached{host: h}
	}
	return &connector{
		hosts:   hosts,
		cancels: make(chan struct{}, maxCancels),
		limits:  newTimeouts(t, cfg),
		target:  t,
		cfg:     cfg,
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

// setupStatement returns a statement with all settings. Its last two columns are the state of the
// server. A later setting overrides an earlier one.
func setupStatement(all []setting) string {
	calls := make([]string, len(all))
	for i, s := range all {
		calls[i] = fmt.Sprintf("set_config(%s, %s, false)", literal(s.name), literal(s.value))
	}
	return "select " + strings.Join(calls, ", ") +
		", current_setting('transaction_read_only'), pg_is_in_recovery()::text"
}

// literal returns s as a string literal. pgdriver requires standard_conforming_strings.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Connect returns a connection to the first host that meets target_session_attrs, beginning with
// the host of the last connection. Errors: that of the context, or those of all hosts.
func (k *connector) Connect(ctx context.Context) (driver.Conn, error) {
	var failed error
	for i, attrs := range k.target.attrs.passes() {
		first := int(k.last.Load())
		for j := range k.hosts {
			n := (first + j) % len(k.hosts)
			c, err := k.connectTo(ctx, k.hosts[n], attrs)
			switch {
			case err == nil:
				k.last.Store(int32(n))
				return c, nil
			case ctx.Err() != nil, errors.Is(err, context.DeadlineExceeded):
				return nil, err
			case i == 0 && failed == nil || len(k.hosts) == 1:
				failed = err
			case i == 0 || errors.As(err, new(wrongServer)): // in a second pass the other hosts failed as in the first
				failed = fmt.Errorf("%w; %w", failed, err)
			}
		}
	}
	return nil, unsent{failed}
}

// connectTo dials, logs in and makes the settings, within connect_timeout. It closes the socket if
// it fails. For a second after an attempt without an answer it fails at once.
func (k *connector) connectTo(ctx context.Context, h *reached, attrs sessionAttrs) (driver.Conn, error) {
	if err := h.isSilent(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, k.target.connectTimeout)
	defer cancel()
	raw, secured, err := k.open(limited, h.host)
	if err != nil {
		return nil, k.failed(ctx, limited, h, err)
	}
	s := &socket{Conn: secured, raw: raw, startup: &keyReader{}}
	stop := context.AfterFunc(limited, s.kill)
	c, is, err := k.start(limited, h.host, s)
	if !stop() && err == nil {
		err = limited.Err()
	}
	if err == nil {
		if err := attrs.check(h.addr, is); err != nil {
			_ = c.Close()
			return nil, err
		}
		return c, nil
	}
	s.kill() // pgdriver leaves it open
	return nil, k.failed(ctx, limited, h, err)
}

// open dials a host, and begins TLS if required. It does that itself, so that the socket reads what
// the server sends before pgdriver does.
func (k *connector) open(ctx context.Context, h host) (raw, secured net.Conn, err error) {
	if raw, err = k.dialer.DialContext(ctx, h.network, h.addr); err != nil || h.tls == nil {
		return raw, raw, err
	}
	defer context.AfterFunc(ctx, func() { _ = raw.Close() })()
	answer := make([]byte, 1)
	if _, err = raw.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err == nil { // SSLRequest
		_, err = io.ReadFull(raw, answer)
	}
	switch {
	case err != nil:
	case answer[0] != 'S':
		err = errors.New("the server has no TLS: it has to be turned on there, or sslmode=disable in the database " +
			"URL turns it off here")
	default:
		client := tls.Client(raw, h.tls)
		if err = client.HandshakeContext(ctx); err == nil {
			return raw, client, nil
		}
		err = fmt.Errorf("TLS handshake failed: %w", err)
	}
	_ = raw.Close()
	return nil, nil, err
}

// failed returns the error for the caller: that of its context, a time-out, or the cause.
func (k *connector) failed(ctx, limited context.Context, h *reached, err error) error {
	deadline, has := ctx.Deadline()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case has && !time.Now().Before(deadline): // the dialer has a separate timer, which may end a little earlier
		return context.DeadlineExceeded
	case limited.Err() != nil:
		err = fmt.Errorf("pgsafe: connect to %s: %w", h.addr, os.ErrDeadlineExceeded)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.silent, h.silentTill = err, time.Now().Add(silence)
		return err
	}
	return fmt.Errorf("pgsafe: connect to %s: %w", h.addr, err)
}

// isSilent returns the error of an attempt that timed out less than silence ago, or nil.
func (h *reached) isSilent() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Now().Before(h.silentTill) {
		return h.silent
	}
	return nil
}

// start makes pgdriver log in over s. pgdriver panics on some messages that PostgreSQL never sends.
func (k *connector) start(ctx context.Context, h host, s *socket) (c *conn, is serverState, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pgsafe: the server does not speak PostgreSQL's protocol: %v", p)
		}
	}()
	pg, err := pgdriver.NewConnector(k.options(s)).Connect(ctx)
	if err != nil {
		return nil, is, err
	}
	key := s.startup.key
	s.startup = nil
	c = newConn(pg.(*pgdriver.Conn), s, k)
	c.cancel = func() { k.cancel(h, key) }
	is, err = c.setUp(ctx, k.setup)
	if ordinary(err) && c.pg.IsValid() {
		is, err = c.setUp(ctx, k.without)
	}
	if is.readOnly && !is.standby && k.target.attrs == "" {
		c.recheck = time.Now().Add(recheckReadOnly)
	}
	return c, is, err
}

// recheckReadOnly is how long a connection to a read-only server is kept, although the URL requires
// a writable one.
const recheckReadOnly = time.Second

// setUp runs a setupStatement.
func (c *conn) setUp(ctx context.Context, statement string) (is serverState, err error) {
	rows, err := c.pg.QueryContext(ctx, statement, nil)
	if err != nil {
		return is, err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return is, rows.Close()
		case err != nil:
			return is, err
		}
		is.readOnly, is.standby = row[len(row)-2] == "on", row[len(row)-1] == "true"
	}
}

// demote marks all connections of the pool for replacement, at most once a second. The server of
// one of them has become read-only, and a load balancer or another host may have a writable one.
func (k *connector) demote() {
	now, last := time.Now().UnixNano(), k.demoted.Load()
	if now-last >= int64(time.Second) {
		k.demoted.CompareAndSwap(last, now)
	}
}

// options passes to pgdriver the socket, which has TLS, and all settings that its URL parser would
// read. It removes pgdriver's time-outs.
func (k *connector) options(s *socket) pgdriver.Option {
	return func(conf *pgdriver.Config) {
		*conf = pgdriver.Config{
			Dialer:     func(context.Context, string, string) (net.Conn, error) { return s, nil },
			User:       k.target.user,
			Password:   k.target.password,
			Database:   k.target.database,
			AppName:    k.target.appName,
			BufferSize: 4096,
		}
	}
}

// Driver returns a driver that opens URLs like NewConnector with the zero Config, and listens at
// the server of the connector.
func (k *connector) Driver() driver.Driver { return urlDriver{listener: k} }

type urlDriver struct{ listener *connector }

// CancelsStatements marks the driver for package bunx: the end of a context stops its statement on
// the server.
func (urlDriver) CancelsStatements() {}

func (urlDriver) Open(url string) (driver.Conn, error) {
	k, err := NewConnector(url, Config{})
	if err != nil {
		return nil, err
	}
	return k.Connect(context.Background())
}
