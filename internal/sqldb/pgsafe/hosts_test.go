package pgsafe

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

func TestHosts(t *testing.T) {
	for raw, want := range map[string][]string{
		"postgres://u:p@a/d":                           {"a:5432"},
		"postgres://u:p@a,b:7/d?sslmode=disable":       {"a:5432", "b:7"},
		"postgres://u:p@a:6,b:7,[::1]:8?sslmode=allow": {"a:6", "b:7", "[::1]:8"},
		"postgres://u@/d?host=a,b":                     {"a:5432", "b:5432"},
		"postgres://u@/d?host=a,/tmp/x&port=6,7":       {"a:6", "/tmp/x/.s.PGSQL.7"},
		"postgres://u@a:1,b:2/d?port=6":                {"a:6", "b:6"},
		"postgres://u%40x:p%2C@a,b/d":                  {"a:5432", "b:5432"},
	} {
		is := is.New(t)
		got, err := parseURL(raw)
		is.NoErr(err)
		var addrs []string
		for _, h := range got.hosts {
			addrs = append(addrs, h.addr)
		}
		is.Equal(addrs, want)
	}
	is := is.New(t)
	got, err := parseURL("postgres://a,localhost,b/d?target_session_attrs=read-write&gssencmode=disable")
	is.NoErr(err)
	is.Equal(got.attrs, sessionAttrs("read-write"))
	is.Equal(len(got.settings), 0)
	is.Equal(got.hosts[0].tls.ServerName, "a") // the certificate of each host is checked for its name
	is.Equal(got.hosts[1].tls, nil)
	is.Equal(got.hosts[2].tls.ServerName, "b")
}

// pair is a primary with a standby.
type pair struct{ primary, standby *pgtest.Cluster }

var newPair = sync.OnceValues(func() (p pair, err error) {
	ctx := context.Background()
	if p.primary, err = pgtest.Start(ctx); err != nil {
		return p, err
	}
	db, err := Open(p.primary.URL, Config{})
	if err != nil {
		return p, err
	}
	defer db.Close()
	if _, err = db.Exec("create table t (k text)"); err != nil {
		return p, err
	}
	p.standby, err = p.primary.AddStandby(ctx)
	return p, err
})

// servers returns a primary and its standby, which tests must not change.
func servers(t *testing.T) pair {
	t.Helper()
	p, err := newPair()
	needs.Start(t, err, pgtest.ErrNoServer)
	return p
}

func hostOf(t *testing.T, raw string) string {
	u, err := url.Parse(raw)
	is.New(t).NoErr(err)
	return u.Host
}

// TestSessionAttrs connects to each of two servers by its kind.
func TestSessionAttrs(t *testing.T) {
	p := servers(t)
	standby := func(t *testing.T, hosts, attrs string) (bool, error) {
		db := openSafe(t, "postgres://postgres@"+hosts+"/postgres?sslmode=disable"+attrs, Config{})
		var recovery bool
		err := db.QueryRow("select pg_is_in_recovery()").Scan(&recovery)
		return recovery, err
	}
	first, second := hostOf(t, p.primary.URL), hostOf(t, p.standby.URL)
	for attrs, want := range map[string]bool{
		"": false, "any": true, "read-write": false,
		"primary": false, "read-only": true, "standby": true, "prefer-standby": true,
	} {
		is := is.New(t)
		param := ""
		if attrs != "" {
			param = "&target_session_attrs=" + attrs
		}
		got, err := standby(t, second+",127.0.0.1:1,"+first, param)
		is.NoErr(err)
		is.Equal(got, want) // the value of target_session_attrs
	}
	is := is.New(t)
	for _, param := range []string{"", "&target_session_attrs=read-write", "&target_session_attrs=primary"} {
		_, err := standby(t, second, param)
		is.True(err != nil && strings.Contains(err.Error(), "this PostgreSQL is a standby"))
		is.True(Unavailable(err))
	}
	_, err := standby(t, first, "&target_session_attrs=standby")
	is.True(err != nil && strings.Contains(err.Error(), "this PostgreSQL is not a standby"))
	got, err := standby(t, "127.0.0.1:1,"+first, "&target_session_attrs=prefer-standby")
	is.NoErr(err)
	is.True(!got)
}

// balancer forwards connections to one of several servers. It does not close them when it switches.
type balancer struct {
	url string
	to  atomic.Pointer[string]
}

func newBalancer(t *testing.T, to string) *balancer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	t.Cleanup(func() { l.Close() })
	b := &balancer{url: "postgres://postgres@" + l.Addr().String() + "/postgres?sslmode=disable"}
	b.to.Store(&to)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", *b.to.Load())
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(s, c); s.Close() }()
				_, _ = io.Copy(c, s)
			}()
		}
	}()
	return b
}

// TestFailOverWithoutCut: a balancer sends new connections to another server, and keeps those to
// the old one, which has become read-only. After one failed write all connections are replaced.
func TestFailOverWithoutCut(t *testing.T) {
	is, old, other := is.New(t), ownServer(t), ownServer(t)
	for _, s := range []*pgtest.Cluster{old, other} {
		exec(t, openSafe(t, s.URL, Config{}), "create table t (k text)")
	}
	b := newBalancer(t, hostOf(t, old.URL))
	db, err := Open(b.url, Config{})
	is.NoErr(err)
	t.Cleanup(func() { db.Close() })
	pids := map[int]bool{}
	hold := func(n int) (conns []*sql.Conn) {
		for range n {
			c, err := db.Conn(t.Context())
			is.NoErr(err)
			conns = append(conns, c)
		}
		return conns
	}
	for _, c := range hold(4) {
		pids[one[int](t, c, "select pg_backend_pid()")] = true
		is.NoErr(c.Close())
	}
	is.Equal(len(pids), 4)

	exec(t, openSafe(t, old.URL, Config{}), "alter system set default_transaction_read_only = on")
	exec(t, openSafe(t, old.URL, Config{}), "select pg_reload_conf()")
	newHost := hostOf(t, other.URL)
	b.to.Store(&newHost)
	failed := 0
	for {
		_, err := db.ExecContext(t.Context(), "insert into t values ($1)", "x")
		if err == nil && one[int](t, db, "select count(*) from t") > 0 && failed > 0 {
			break
		}
		if err != nil {
			is.Equal(Code(err), readOnlyTransaction)
			failed++
		} // else the old server has not yet read its configuration
	}
	is.Equal(failed, 1)
	for _, c := range hold(4) { // also connections that had not written
		is.Equal(one[string](t, c, "show default_transaction_read_only"), "off")
		is.NoErr(c.Close())
	}
}

// TestReadOnlyServer: a read-only server is used if all servers are such, and is checked again
// each second.
func TestReadOnlyServer(t *testing.T) {
	is, own := is.New(t), ownServer(t)
	admin := openSafe(t, own.URL, Config{})
	exec(t, admin, "create table t (k text)")
	exec(t, admin, "alter database postgres set default_transaction_read_only = on")
	db := openSafe(t, own.URL, Config{})
	_, err := db.Exec("insert into t values ('x')")
	is.Equal(Code(err), readOnlyTransaction)
	pid := one[int](t, db, "select pg_backend_pid()")
	is.NoErr(db.QueryRow("select count(*) from t").Scan(new(int)))
	_, err = openSafe(t, with(own.URL, "target_session_attrs=read-write"), Config{}).Exec("select 1")
	is.True(err != nil && strings.Contains(err.Error(), "can only be read"))

	exec(t, admin, "set default_transaction_read_only = off")
	exec(t, admin, "alter database postgres set default_transaction_read_only = off")
	for one[int](t, db, "select pg_backend_pid()") == pid { // until it is checked again
		time.Sleep(10 * time.Millisecond)
	}
	_, err = db.Exec("insert into t values ('x')")
	is.NoErr(err)

	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}) // the caller requested it
	is.NoErr(err)
	pid = one[int](t, tx, "select pg_backend_pid()")
	_, err = tx.Exec("insert into t values ('x')")
	is.Equal(Code(err), readOnlyTransaction)
	is.NoErr(tx.Rollback())
	is.Equal(one[int](t, db, "select pg_backend_pid()"), pid)
}

// TestCancelReachesTheServer: a cancellation stops the statement at once, over TLS too, although
// the server does not check for lost clients.
func TestCancelReachesTheServer(t *testing.T) {
	cert, file := certificate(t, "localhost")
	for name, u := range map[string]string{
		"plain": server(t),
		"tls":   with(newProxy(t, server(t), cert).url, "sslmode=verify-ca&sslrootcert="+file),
	} {
		t.Run(name, func(t *testing.T) {
			is, watcher, db := is.New(t), openSafe(t, server(t), Config{}), openSafe(t, u, Config{})
			exec(t, db, "set client_connection_check_interval = 0")
			pid := one[int](t, db, "select pg_backend_pid()")
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				defer cancel()
				for one[int](
					t, watcher,
					"select count(*) from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'", pid,
				) == 0 {
				}
			}()
			_, err := db.ExecContext(ctx, "select pg_sleep(300), $1::int", 1)
			is.True(errors.Is(err, context.Canceled))
			var sent interface{ StatementSent() bool }
			is.True(errors.As(err, &sent) && sent.StatementSent())
			for one[int](t, watcher, "select count(*) from pg_stat_activity where pid = $1", pid) > 0 {
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
}

// TestUnsentStatements: an error that occurs before a statement is sent reports that it was not
// sent.
func TestUnsentStatements(t *testing.T) {
	is := is.New(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, canceled := openSafe(t, server(t), Config{}).ExecContext(ended, "select 1")
	_, refused := openSafe(t, "postgres://127.0.0.1:1/x", Config{}).Exec("select 1")
	for _, err := range []error{canceled, refused} {
		var sent interface{ StatementSent() bool }
		is.True(err != nil && (!errors.As(err, &sent) || !sent.StatementSent()))
	}
}
