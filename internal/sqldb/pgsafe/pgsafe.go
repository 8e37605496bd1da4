// Package pgsafe makes uptrace's pgdriver safe to use. It wraps each connection so that a statement
// ends with its context, a broken connection is never used again, and a caller cannot read another
// caller's rows.
//
// It is for the packages under internal, package postgres, and tests. All others use a *sql.DB.
//
// It guarantees for every connection:
//
//   - A statement whose context ends returns at once with the context's error, never with an i/o
//     timeout. The socket is closed, and a cancellation is sent to the server. If the server does
//     not receive it, it stops the statement within client_connection_check_interval (one second).
//   - If a server is silent for a statement's timeout, for example because the machine hangs, the
//     connection is closed. Unavailable reports true for the error. As after any lost connection,
//     it is not known whether the statement, or the COMMIT, was executed.
//   - After any error but an ordinary one from the server the connection is closed. A failed
//     statement is reported as driver.ErrBadConn, which database/sql retries, only if nothing of it
//     was sent.
//   - A connection that was lost in the pool is noticed before its next statement, without a round
//     trip.
//   - No connection is made to a standby, unless the URL requests one. When a server is found to be
//     read-only, all connections of the pool are replaced.
//   - Statements with arguments are prepared once per connection and then cost one round trip. They
//     are single statements: the server refuses several in one string. Statements without arguments
//     use the simple protocol.
//   - Strings are sent unchanged: NUL and invalid UTF-8 are refused, which pgdriver would remove or
//     replace.
//   - Prepare, COPY and LISTEN are refused, and so is a second statement while the rows of the
//     first are open.
//   - Commit returns an error for a transaction that the server rolled back.
//
// A transaction that ends with its context keeps its locks on the server for up to that second.
// Settings and prepared statements live as long as the connection, so a pooler between here and the
// server must keep sessions (PgBouncer: pool_mode=session). A []byte argument is a bytea: pass JSON
// and text as string.
//
// The URL reads postgres://user:password@host:port/database?name=value (or postgresql://) as for
// libpq. A host that begins with a slash, given as host=/var/run/postgresql, is the directory of a
// unix socket. There may be several hosts, as in host1:5432,host2:5432 or host=host1,host2: they
// are tried in turn, from the one that was connected to last, each within connect_timeout, until
// target_session_attrs fits one (any, read-write, read-only, primary, standby or prefer-standby;
// without it it must not be a standby, and one whose transactions are read-only is taken only when
// all servers are such, and for a second). Names: host, port, target_session_attrs, user, password,
// dbname, application_name, connect_timeout (seconds, default 5), read_timeout, write_timeout and
// long_timeout (seconds, or as 250ms and 2m; see Config), sslrootcert, sslcert, sslkey,
// pool_max_conns (see Open), and sslmode:
//
//   - disable: no TLS
//   - require (also allow and prefer, which never fall back here): TLS with any certificate, but
//     checked as by verify-ca when sslrootcert is given
//   - verify-ca: the certificate's chain is checked
//   - verify-full: the chain and the host name are checked
//   - none given: disable for a loopback host, else verify-full
//
// A unix socket never has TLS. Any other name is a setting of the server, such as search_path=app;
// those that only libpq has are refused. Defaults are localhost, 5432, user postgres and a database
// named like the user; the environment is not read.
package pgsafe

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// Config configures connections. The zero value is ready for use.
//
// The URL takes precedence over a setting that it contains (statement_timeout=5000).
type Config struct {
	// Tenant, when set, returns the tenant of a statement from its context, "" for none. If it
	// differs from that of the previous statement on the connection, the setting
	// tenantcontent.tenant is changed first, which is a round trip. Policies for row-level security
	// read it with current_setting('tenantcontent.tenant', true). nil: the setting is not used.
	Tenant func(ctx context.Context) string

	StatementTimeout         time.Duration // of one statement; default 60 s, negative: unlimited
	LockTimeout              time.Duration // of one wait for a lock; default 10 s, negative: unlimited
	IdleInTransactionTimeout time.Duration // between two statements of a transaction; default 60 s, negative: unlimited

	// The connection is closed if the server is silent for as long as these; negative: never.
	// ReadTimeout is for queries outside of transactions, BEGIN and pings; default 10 s.
	// WriteTimeout is for other statements and COMMIT; default 30 s. LongTimeout is for statements
	// and COMMIT of Long work; default 90 s. The client measures them, unlike StatementTimeout,
	// which the server measures.
	ReadTimeout, WriteTimeout, LongTimeout time.Duration
	// Work, when set, returns the kind of work of a statement from its context. nil: all work is
	// Short.
	Work func(ctx context.Context) Work

	// Last, when set, reports from the context of a statement whether it is the last one of its
	// transaction and its result is not used. Such a statement is sent together with the COMMIT,
	// which saves a round trip, and Commit returns its error. If another statement follows all the
	// same, the held one is executed first, and the other one returns its error.
	Last func(ctx context.Context) bool

	StatementCache int // prepared statements kept per connection; default 128
}

const (
	defaultMaxConns       = 32
	defaultStatementCache = 128
	defaultConnectTimeout = 5 * time.Second // dial, TLS, log-in and settings together
	connMaxIdleTime       = 5 * time.Minute
	connMaxLifetime       = 30 * time.Minute
)

// Open returns a pool of safe connections to the database of url. It does not connect.
//
// At most 32 connections are open, or as many as the URL's pool_max_conns. Idle ones are closed
// after five minutes, and all after 30. See NewConnector for the URL.
func Open(url string, cfg Config) (*sql.DB, error) {
	t, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(newConnector(t, cfg))
	db.SetMaxOpenConns(t.maxConns)
	db.SetMaxIdleConns(t.maxConns)
	db.SetConnMaxIdleTime(connMaxIdleTime)
	db.SetConnMaxLifetime(connMaxLifetime)
	return db, nil
}

// NewConnector returns a connector to the database that url names, for sql.OpenDB: the package
// comment has its form. An error about the URL never quotes the password.
func NewConnector(url string, cfg Config) (driver.Connector, error) {
	t, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	return newConnector(t, cfg), nil
}
