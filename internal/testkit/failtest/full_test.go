//go:build linux

package failtest_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// disk is a small file system.
type disk struct{ folder string }

// newDisk mounts a file system of some MiB, in memory, until the end of the test.
func newDisk(t *testing.T, megabytes int) disk {
	t.Helper()
	folder, err := os.MkdirTemp("", "disk") // a short path, for the socket of a PostgreSQL
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = os.Remove(folder) })
	err = syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=1777", megabytes))
	if err != nil {
		t.Fatalf("mount a disk to fill: %v: run this as root, or allow user namespaces "+
			"(sysctl user.max_user_namespaces)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			_ = syscall.Unmount(folder, syscall.MNT_DETACH)
			t.Error(err)
		}
	})
	return disk{folder}
}

func (d disk) ballast() string { return filepath.Join(d.folder, "ballast") }

// fill uses up the remaining space.
func (d disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	is.New(t).NoErr(err)
	defer func() { _ = f.Close() }()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			size /= 2
		}
	}
}

// free frees the space again.
func (d disk) free(t *testing.T) {
	t.Helper()
	is.New(t).NoErr(os.Remove(d.ballast()))
}

// TestFullDisk fills the disk of a database below a server. Writes are 507, reads succeed, /readyz
// reports it, and one line is logged. When there is space again, the server recovers by itself.
func TestFullDisk(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		d := newDisk(t, 32)
		testFullDisk(t, d, "sqlite:"+filepath.Join(d.folder, "data.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		d := newDisk(t, 256)
		cluster, err := pgtest.StartIn(t.Context(), d.folder)
		needs.Start(t, err, pgtest.ErrNoServer)
		t.Cleanup(cluster.Stop)
		testFullDisk(t, d, cluster.URL)
	})
}

// readiness is the answer of /readyz.
type readiness struct {
	status int
	Write  *bool
	Reason string
}

// filling is an App of the tenant acme whose disk a test fills, with a session of its superuser.
type filling struct {
	t     *testing.T
	log   *logtest.Buffer
	url   string
	token string
}

func newFilling(t *testing.T, url string) *filling {
	t.Helper()
	is, log := is.New(t), &logtest.Buffer{}
	db, err := engines.Open(url)
	is.NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	is.NoErr(tenantcontent.Migrate(t.Context(), db))
	app, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: tenantcontent.NewSecretKey(),
		Log:       slog.New(slog.NewTextHandler(log, nil)),
	})
	is.NoErr(err)
	_, err = app.AddTenant(t.Context(), tenants.Tenant{ID: "acme"}, password)
	is.NoErr(err)
	_, err = app.Colors.Put(as(t.Context()), "red", "#ff0000")
	is.NoErr(err)
	server := httptest.NewServer(app)
	t.Cleanup(server.Close)
	f := &filling{t: t, log: log, url: server.URL}
	status, text := f.call(
		"POST", "/api/login/local", "application/json",
		[]byte(`{"tenant": "acme", "username": "admin", "password": "`+password+`"}`),
	)
	is.Equal(status, 200)
	var login struct{ Token string }
	is.NoErr(json.Unmarshal([]byte(text), &login))
	f.token = login.Token
	if status, text = f.upload(); status != 201 {
		t.Fatal(status, text)
	}
	is.Equal(f.ready("").status, 200)
	return f
}

// call returns the status and the body of an answer.
func (f *filling) call(method, path, contentType string, body []byte) (int, string) {
	f.t.Helper()
	is := is.New(f.t)
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.url+path, bytes.NewReader(body))
	is.NoErr(err)
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	r.Header.Set("Content-Type", contentType)
	a, err := http.DefaultClient.Do(r)
	is.NoErr(err)
	defer func() { _ = a.Body.Close() }()
	text, err := io.ReadAll(a.Body)
	is.NoErr(err)
	return a.StatusCode, string(text)
}

// upload sends a file that cannot be compressed.
func (f *filling) upload() (int, string) {
	f.t.Helper()
	body := make([]byte, 2<<20)
	_, _ = rand.Read(body) // never fails
	return f.call("POST", "/api/uploads?filename=a.bin", "application/octet-stream", body)
}

// ready returns the answer of /readyz, with a query.
func (f *filling) ready(query string) (r readiness) {
	f.t.Helper()
	status, text := f.call("GET", "/readyz"+query, "", nil)
	is.New(f.t).NoErr(json.Unmarshal([]byte(text), &r))
	r.status = status
	return r
}

// recovers waits until the server is ready and writes succeed.
func (f *filling) recovers() {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); f.ready("").status != 200; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatal("not ready a minute after there is room: ", f.log.String())
		}
	}
	if status, text := f.upload(); status != 201 {
		f.t.Fatal(status, text)
	}
	is.New(f.t).Equal(strings.Count(f.log.String(), "the database takes writes again"), 1)
}

func testFullDisk(t *testing.T, d disk, url string) {
	is, f := is.New(t), newFilling(t, url)
	d.fill(t)
	deadline := time.Now().Add(time.Minute)
	for refused := 0; refused < 3; {
		status, text := f.upload()
		switch {
		case status == 507 && strings.Contains(text, "no room left"):
			refused++
		case status == 201 && refused == 0: // PostgreSQL has some space in its files
		default:
			t.Fatal(status, text)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was refused in a minute")
		}
	}
	for range 3 {
		r := f.ready("")
		is.Equal(r.status, 503)
		is.True(r.Write != nil && !*r.Write)
		is.True(strings.Contains(r.Reason, "no room left"))
		is.Equal(f.ready("?for=read").status, 200)
		status, text := f.call("GET", "/api/colors/red", "", nil)
		is.Equal(status, 200)
		is.True(strings.Contains(text, "#ff0000"))
		time.Sleep(1100 * time.Millisecond) // the result of a probe is at most a second old
	}
	is.Equal(strings.Count(f.log.String(), "level=ERROR"), 1)
	is.True(strings.Contains(f.log.String(), "the database takes no writes"))
	is.True(strings.Contains(f.log.String(), " since="))
	d.free(t)
	f.recovers()
	is.Equal(strings.Count(f.log.String(), "level=ERROR"), 1)
}

// TestFullLog fills the disk of the write-ahead log of a PostgreSQL, which then ends all sessions
// and restarts, or ends. No answer is a 500, and /readyz reports it. When there is space and the
// PostgreSQL is running again, the server recovers.
func TestFullLog(t *testing.T) {
	is, d := is.New(t), newDisk(t, 64)
	cluster, err := pgtest.Start(t.Context())
	needs.Start(t, err, pgtest.ErrNoServer)
	t.Cleanup(cluster.Stop)
	db, err := engines.Open(cluster.URL)
	is.NoErr(err)
	var data string
	is.NoErr(db.QueryRowContext(t.Context(), "SHOW data_directory").Scan(&data))
	is.NoErr(db.Close())
	cluster.Shutdown()
	was, now := filepath.Join(data, "pg_wal"), filepath.Join(d.folder, "pg_wal")
	is.NoErr(exec.CommandContext(t.Context(), "cp", "-a", was, now).Run())
	is.NoErr(os.RemoveAll(was))
	is.NoErr(os.Symlink(now, was))
	is.NoErr(cluster.Restart(t.Context()))

	f := newFilling(t, cluster.URL)
	d.fill(t)
	deadline := time.Now().Add(time.Minute)
	for refused := 0; refused < 3; {
		status, text := f.upload()
		switch status {
		case 503, 507:
			refused++
		case 201:
		default:
			t.Fatal(status, text)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was refused in a minute")
		}
	}
	r := f.ready("")
	is.Equal(r.status, 503)
	is.True(r.Write != nil && !*r.Write)
	d.free(t)
	is.NoErr(cluster.Restart(t.Context())) // as its operator would do, if it has ended
	for f.ready("").status != 200 && time.Now().Before(deadline.Add(time.Minute)) {
		time.Sleep(100 * time.Millisecond)
	}
	status, text := f.upload()
	if status != 201 {
		t.Fatal(status, text)
	}
	for line := range strings.Lines(f.log.String()) {
		if strings.Contains(line, "status=500") {
			t.Error(line)
		}
	}
}
