package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/database/postgres"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
)

var errNoBouncer = errors.New("no PgBouncer found: `make test` installs it, as does `apt-get install pgbouncer`")

// bouncer starts a PgBouncer before the test server, and returns the URL of a database through it.
func bouncer(t *testing.T, mode, to string) string {
	t.Helper()
	is, dir := is.New(t), t.TempDir()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
		if _, err = os.Stat(program); err != nil {
			err = errNoBouncer
		}
	}
	needs.Start(t, err, errNoBouncer)
	u, err := url.Parse(to)
	is.NoErr(err)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	is.NoErr(err)
	address := free.Addr().(*net.TCPAddr)
	is.NoErr(free.Close())
	is.NoErr(os.WriteFile(filepath.Join(dir, "pgbouncer.ini"), fmt.Appendf(nil, `[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
auth_type = any
unix_socket_dir =
pool_mode = %s
`, u.Hostname(), u.Port(), u.User.Username(), address.Port, mode), 0o644))
	args := []string{filepath.Join(dir, "pgbouncer.ini")}
	if os.Getuid() == 0 { // it refuses to run as root
		is.NoErr(os.Chmod(dir, 0o755))
		args = append([]string{"-u", "nobody"}, args...)
	}
	cmd := exec.Command(program, args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	is.NoErr(cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Log(log.String())
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", address.String())
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("PgBouncer does not start: %s", log.String())
		}
	}
	u.Host = address.String()
	return u.String()
}

// TestPooler: one that does not keep sessions is refused, with what to do, however often the pool
// was used; one that keeps them is not.
func TestPooler(t *testing.T) {
	for _, mode := range []string{"session", "transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			is, to := is.New(t), dbtest.PostgresURL(t)
			direct, err := postgres.Open(to)
			is.NoErr(err)
			defer func() { _ = direct.Close() }()
			is.NoErr(postgres.Check(t.Context(), direct))
			db, err := postgres.Open(bouncer(t, mode, to))
			is.NoErr(err)
			defer func() { _ = db.Close() }()
			err = postgres.Check(t.Context(), db)
			if mode == "session" {
				is.NoErr(err)
				return
			}
			is.Equal(errs.CodeOf(err), errs.Invalid)
			is.True(strings.Contains(errs.MessageOf(err), "pool_mode=session"))
		})
	}
}
