package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// writers write the colors k-<writer>-<n>, n = 0, 1, 2…, until they are stopped.
type writers struct {
	acknowledged [4]atomic.Int64
	stop         func()
}

func (s *server) write(t *testing.T, token string) *writers {
	t.Helper()
	w := &writers{}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range w.acknowledged {
		all.Go(func() {
			for n := int64(0); ctx.Err() == nil; n++ {
				if status, body, err := try(
					"PUT", fmt.Sprintf("%s/api/colors/k-%d-%d", s.url, i, n), token, `{"color":"#123456"}`,
				); err != nil || status != http.StatusOK {
					t.Errorf("PUT: %d %s %v", status, body, err)
					return
				}
				w.acknowledged[i].Store(n + 1)
			}
		})
	}
	w.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(w.stop)
	return w
}

// await waits until each writer has written n more colors.
func (w *writers) await(n int64) {
	for i := range w.acknowledged {
		for from := w.acknowledged[i].Load(); w.acknowledged[i].Load() < from+n; time.Sleep(time.Millisecond) {
		}
	}
}

// counts returns the number of acknowledged colors of each writer.
func (w *writers) counts() (all [4]int) {
	for i := range all {
		all[i] = int(w.acknowledged[i].Load())
	}
	return all
}

// TestBackup: a backup beside writers has all writes that were acknowledged before it began, and no
// write without the previous ones.
func TestBackup(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	t.Run("sqlite", func(t *testing.T) {
		is, data, to := is.New(t), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
		file := filepath.Join(t.TempDir(), "backup.tar")
		s := spawn(t, "--data="+data)
		token := s.login(t, "", "admin", password)
		w := s.write(t, token)
		w.await(20)
		before := w.counts()
		text := done(t, "", "backup", "--data="+data, file)
		is.True(strings.Contains(text, "keep "+filepath.Join(data, "secret.key")))
		w.await(1) // no writer was blocked
		w.stop()
		info, err := os.Stat(file)
		is.NoErr(err)
		is.Equal(info.Mode().Perm(), os.FileMode(0o600))

		text = done(t, "", "restore", "--data="+to, file)
		is.True(strings.Contains(text, "Put the secret.key"))
		code, _, text := cli(t, "", "restore", "--data="+to, file)
		is.Equal(code, 1)
		is.True(strings.Contains(text, "into an empty place"))
		secret, err := os.ReadFile(filepath.Join(data, "secret.key"))
		is.NoErr(err)
		is.NoErr(os.WriteFile(filepath.Join(to, "secret.key"), secret, 0o600))
		checkBackup(t, spawn(t, "--data="+to), before, w.counts())
	})
	t.Run("postgres", func(t *testing.T) {
		is, from, to := is.New(t), postgresDatabase(t, "backup_from"), postgresDatabase(t, "backup_to")
		file := filepath.Join(t.TempDir(), "backup.dump")
		s := spawn(t, "--database="+from, "--secret-key="+key)
		w := s.write(t, s.login(t, "", "admin", password))
		w.await(20)
		before := w.counts()
		postgresTool(t, "pg_dump", "--format=custom", "--no-owner", "--no-privileges", "--file="+file, from)
		w.await(1)
		w.stop()
		postgresTool(t, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+to, file)
		checkBackup(t, spawn(t, "--database="+to, "--secret-key="+key), before, w.counts())

		code, _, text := cli(t, "", "backup", "--database="+from, file)
		is.Equal(code, 2)
		is.True(strings.Contains(text, "pg_dump"))
	})
}

// checkBackup checks the colors of a restored server.
func checkBackup(t *testing.T, s *server, before, after [4]int) {
	t.Helper()
	is := is.New(t)
	var found [4]int
	colors := s.palette(t, s.login(t, "", "admin", password))
	for i := range found {
		for ; colors[fmt.Sprintf("k-%d-%d", i, found[i])] != ""; found[i]++ {
			delete(colors, fmt.Sprintf("k-%d-%d", i, found[i]))
		}
		if found[i] < before[i] || found[i] > after[i]+1 {
			t.Errorf("writer %d: %d colors, %d before the backup, %d after it", i, found[i], before[i], after[i])
		}
	}
	for key := range colors {
		is.True(!strings.HasPrefix(key, "k-")) // none after a gap
	}
}

// postgresTool runs a program of PostgreSQL.
func postgresTool(t *testing.T, name string, args ...string) {
	t.Helper()
	is := is.New(t)
	program, err := pgtest.Program(name)
	is.NoErr(err)
	if text, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, text)
	}
}

// postgresDatabase creates an empty database and returns its URL.
func postgresDatabase(t *testing.T, name string) string {
	t.Helper()
	is := is.New(t)
	u, err := url.Parse(dbtest.Server(t).URL)
	is.NoErr(err)
	admin, err := engines.Open(u.String())
	is.NoErr(err)
	defer func() { _ = admin.Close() }()
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	is.NoErr(err)
	u.Path = "/" + name
	return u.String()
}
