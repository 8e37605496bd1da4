package pgsafe

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestURL(t *testing.T) {
	for raw, want := range map[string]target{
		"postgres://": {
			hosts:    []host{{network: "tcp", addr: "localhost:5432"}},
			user:     "postgres",
			database: "postgres",
		},
		"postgresql://jo:p%40ss@[::1]:99/app?sslmode=disable": {
			hosts: []host{{network: "tcp", addr: "[::1]:99"}}, user: "jo", password: "p@ss", database: "app"},
		"postgres:///db?host=/tmp/x&user=y": {
			hosts:    []host{{network: "unix", addr: "/tmp/x/.s.PGSQL.5432"}},
			user:     "y",
			database: "db",
		},
		"postgres://y@/db?host=/tmp/x&port=99": {
			hosts:    []host{{network: "unix", addr: "/tmp/x/.s.PGSQL.99"}},
			user:     "y",
			database: "db",
		},
		"postgres://y@/db?host=/tmp/.s.PGSQL.7&sslmode=verify-full": {
			hosts:    []host{{network: "unix", addr: "/tmp/.s.PGSQL.7"}},
			user:     "y",
			database: "db",
		},
		"postgres://y@127.0.0.1?password=p&pool_max_conns=3&connect_timeout=9&a.b=c&Search_path=s": {
			hosts: []host{{network: "tcp", addr: "127.0.0.1:5432"}}, user: "y",
			password: "p", database: "y", maxConns: 3,
			connectTimeout: 9 * time.Second, settings: []setting{{"a.b", "c"}, {"search_path", "s"}}},
	} {
		is := is.New(t)
		if want.maxConns == 0 {
			want.maxConns, want.connectTimeout = defaultMaxConns, defaultConnectTimeout
		}
		want.appName = "tenantcontent"
		got, err := parseURL(raw)
		is.NoErr(err)
		is.Equal(got, want)
	}
}

func TestURLTLS(t *testing.T) {
	is := is.New(t)
	mode := func(raw string) string {
		u, err := parseURL(raw)
		is.NoErr(err)
		switch {
		case u.hosts[0].tls == nil:
			return "disable"
		case !u.hosts[0].tls.InsecureSkipVerify:
			return "verify-full " + u.hosts[0].tls.ServerName
		case u.hosts[0].tls.VerifyConnection != nil:
			return "verify-ca"
		}
		return "require"
	}
	is.Equal(mode("postgres://db.example/"), "verify-full db.example")
	is.Equal(mode("postgres://10.0.0.1:99/"), "verify-full 10.0.0.1")
	is.Equal(mode("postgres://localhost/"), "disable")
	is.Equal(mode("postgres://[::1]/"), "disable")
	is.Equal(mode("postgres://localhost/?sslmode=verify-full"), "verify-full localhost")
	is.Equal(mode("postgres://db.example/?sslmode=require"), "require")
	is.Equal(mode("postgres://db.example/?sslmode=prefer"), "require")
	is.Equal(mode("postgres://db.example/?sslmode=verify-ca"), "verify-ca")
	is.Equal(mode("postgres://db.example/?sslmode=disable"), "disable")
}

func TestBadURLs(t *testing.T) {
	for _, raw := range []string{
		"", "x", "mysql://u:secret@h/", "u:secret@h", "postgres:u:secret@h", "unix://u:secret@/tmp",
		"postgres://u:secret@h:port/", "postgres://u:se/cret@h/",
		"postgres://u:secret%zz@h/", "postgres://u:secret#x@h/",
		"postgres://u:secret@h:99999/", "postgres://u:secret@h/\x7f",
		"postgres://u:sec%00ret@h/", "postgres://u:secret@h1:1,h2:port/",
		"postgres://u:secret@h1,h2/?port=1,2,3",
		"postgres://u:secret@h/?target_session_attrs=secret", "postgres://u:secret@h/?service=secret",
		"postgres://u:secret@h/?sslmode=secret",
		"postgres://u:secret@h/?a;b=secret", "postgres://u@h/?password=%00secret",
		"postgres://u:secret@h/?pool_max_conns=0",
		"postgres://u:secret@h/?connect_timeout=x", "postgres://u:secret@h/?a%20b=1",
		"postgres://u:secret@h/?timezone=CET", "postgres://u:secret@h/?sslrootcert=/no/such/file",
		"postgres://u:secret@h/?sslcert=/no/such/file",
	} {
		is := is.New(t)
		_, err := Open(raw, Config{})
		is.True(err != nil) // raw is bad
		is.True(strings.HasPrefix(err.Error(), "pgsafe: "))
		for _, part := range []string{"secret", "cret", "se/"} {
			is.True(!strings.Contains(err.Error(), part))
		}
	}
}

func TestUnavailable(t *testing.T) {
	is := is.New(t)
	refused := func() error {
		db, err := Open("postgres://u:secret@127.0.0.1:1/", Config{})
		is.NoErr(err)
		defer db.Close()
		return db.Ping()
	}()
	is.True(!strings.Contains(refused.Error(), "secret"))
	for _, err := range []error{
		refused, io.EOF, fmt.Errorf("x: %w", io.ErrUnexpectedEOF), driver.ErrBadConn, net.ErrClosed,
		&net.DNSError{}, &net.OpError{Op: "dial", Err: errors.New("x")}, os.ErrDeadlineExceeded,
	} {
		is.True(Unavailable(err))
		is.Equal(Code(err), "")
	}
	_, notFound := os.Open("/no/such/file")
	for _, err := range []error{
		nil, context.Canceled, context.DeadlineExceeded, errors.New("x"), notFound, refusal("x"),
	} {
		is.True(!Unavailable(err))
	}
}

func TestServerErrors(t *testing.T) {
	is, db := is.New(t), openSafe(t, server(t), Config{})
	for code, want := range map[string]bool{
		"08006": true, "53300": true, "57P01": true, "57P02": true, "57P03": true,
		"08P01": false, "55P03": false, "23505": false, "57014": false,
	} {
		_, err := db.Exec("do $$begin raise exception using errcode = '" + code + "'; end$$")
		is.Equal(Code(fmt.Errorf("x: %w", err)), code)
		is.Equal(Unavailable(fmt.Errorf("x: %w", err)), want)
	}
}
