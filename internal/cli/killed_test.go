package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// process returns a command that runs in another process.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	is := is.New(t)
	program, err := built()
	is.NoErr(err)
	c := exec.Command(program, args...)
	is.NoErr(c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

// killed runs a command in a process that is killed as soon as begun reports true. It repeats that
// if the command has ended before.
func killed(t *testing.T, begun func() bool, args ...string) {
	t.Helper()
	for range 10 {
		c := process(t, args...)
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for {
			if begun() {
				_ = c.Process.Kill()
				if <-ended; c.ProcessState.ExitCode() == -1 {
					return
				}
				break
			}
			select {
			case err := <-ended:
				ended <- err
			case <-time.After(time.Millisecond):
				continue
			}
			break
		}
	}
	t.Fatalf("%s always ended before it was killed", strings.Join(args, " "))
}

// holds reports whether a query returns true.
func holds(t *testing.T, db *bun.DB, query string) (yes bool) {
	t.Helper()
	ctx, c := bunx.For(t.Context(), db, "acme")
	is.New(t).NoErr(c.Row(ctx, query).Scan(&yes))
	return yes
}

// matching returns the files that a pattern matches.
func matching(t *testing.T, pattern ...string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	is.New(t).NoErr(err)
	return found
}

// writing returns a function that reports whether a file is being written under a temporary name
// that matches a pattern. It removes a complete file.
func writing(t *testing.T, dir, pattern, file string) func() bool {
	return func() bool {
		_ = os.Remove(file)
		return len(matching(t, dir, pattern)) > 0
	}
}

const (
	deletingAcme  = `SELECT EXISTS (SELECT 1 FROM tc_tenants WHERE tenant_id = 'acme' AND hidden = 'deleting')`
	importingAcme = `SELECT EXISTS (SELECT 1 FROM tc_tenants WHERE tenant_id = 'acme' AND hidden = 'importing') ` +
		`AND EXISTS (SELECT 1 FROM tc_colors WHERE tenant_id = 'acme')`
)

// TestKilledTenantCommands: an export, backup, delete or import of a tenant that is killed leaves
// nothing incomplete, and can be repeated.
func TestKilledTenantCommands(t *testing.T) {
	const rows = 20_000
	eachPlace(t, func(t *testing.T, flags []string) {
		is, dir := is.New(t), t.TempDir()
		t.Setenv("TENANTCONTENT_PASSPHRASE", "some words that nobody knows")
		url, embedded := strings.CutPrefix(flags[0], "--data=")
		folder := filepath.Join(dir, "workspaces")
		flags = append(flags, "--workspaces="+folder)
		with := func(args ...string) []string { return append(args, flags...) }
		if url = strings.TrimPrefix(url, "--database="); embedded {
			url = "sqlite:" + filepath.Join(url, "tenantcontent.db")
		}
		done(t, "", append([]string{"migrate"}, flags[:len(flags)-1]...)...)
		done(t, "", with("tenant", "add", "acme")...)
		db, err := engines.Open(url)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(db.Close()) })
		now := bunx.At(time.Now())
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			_, err := c.Exec(ctx,
				`WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $1) INSERT INTO
					tc_colors (tenant_id, key, search, color, created_at, updated_at)
				SELECT 'acme', 'color ' || n, 'color ' || n, '#123456', $2, $2 FROM s`, rows, now)
			if err == nil {
				_, err = c.Exec(
					ctx,
					`INSERT INTO tc_workspaces (tenant_id, app_id, engine, password, created_at) `+
						`VALUES ('acme', $1, 'sqlite', '', $2)`,
					movedApp, now,
				)
			}
			return err
		}))
		driver, err := engines.OpenWorkspaces(folder, "", 0)
		is.NoErr(err)
		t.Cleanup(func() { is.NoErr(driver.Close()) })
		query := func(statement string) string {
			c, err := driver.Connect(t.Context(), workspaces.Workspace{Tenant: "acme", App: movedApp})
			is.NoErr(err)
			defer func() { is.NoErr(c.Close()) }()
			got, err := c.Query(t.Context(), statement, nil)
			is.NoErr(err)
			return string(got)
		}
		query("CREATE TABLE t (b blob)")
		query("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO t " +
			"SELECT randomblob(1000) FROM n")
		file := filepath.Join(dir, "acme.tenant")

		killed(t, writing(t, dir, ".acme.tenant-*", file), with("tenant", "export", "acme", file)...)
		is.True(!there(file))
		done(t, "", with("tenant", "export", "acme", file)...)
		if embedded {
			backup := filepath.Join(dir, "backup.tar")
			killed(t, writing(t, dir, ".backup-*/backup.part", backup), with("backup", backup)...)
			is.True(!there(backup))
			done(t, "", with("backup", backup)...)
			done(
				t, "", "restore", backup, "--data="+filepath.Join(dir, "copy"),
				"--workspaces="+filepath.Join(dir, "copy.workspaces"),
			)
		}

		killed(t, func() bool { return holds(t, db, deletingAcme) }, with("tenant", "delete", "acme", "--yes")...)
		fails(t, 1, "Tenant acme not found", "", with("tenant", "show", "acme")...)
		is.Equal(done(t, "", with("tenant", "delete", "acme", "--yes")...), "Deleted the rest of the tenant acme.\n")
		is.Equal(len(matching(t, folder, "*")), 0)

		whole, err := os.ReadFile(file)
		is.NoErr(err)
		for _, arrived := range []int{len(whole) / 8, len(whole) - 200_000} {
			// in the middle of the rows, and of the file of the workspace
			pipe := filepath.Join(dir, fmt.Sprint("pipe-", arrived))
			is.NoErr(syscall.Mkfifo(pipe, 0o600))
			c := process(t, with("tenant", "import", pipe)...)
			in, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			is.NoErr(err)
			_, err = in.Write(whole[:arrived])
			is.NoErr(err)
			for !holds(t, db, importingAcme) || arrived > len(whole)/2 &&
				len(matching(t, folder, "*", "*.partial")) == 0 {
				time.Sleep(time.Millisecond)
			}
			is.NoErr(c.Process.Kill())
			_ = c.Wait()
			is.NoErr(in.Close())
			fails(t, 1, "Tenant acme not found", "", with("tenant", "show", "acme")...)
			fails(t, 1, "is being imported", "", with("tenant", "import", file)...)
			fails(t, 1, "is being imported", "", with("tenant", "delete", "acme", "--yes")...)
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				// as if ten minutes had passed
				_, err := c.Exec(
					ctx, `UPDATE tc_tenants SET hidden_at = $1 WHERE tenant_id = 'acme'`,
					bunx.At(time.Now().Add(-11*time.Minute)),
				)
				return err
			}))
			is.Equal(
				done(t, "", with("tenant", "delete", "acme", "--yes")...),
				"Deleted the rest of the tenant acme.\n",
			)
			is.Equal(len(matching(t, folder, "*")), 0)
			is.True(!holds(t, db, `SELECT EXISTS (SELECT 1 FROM tc_colors WHERE tenant_id = 'acme')`))
		}
		said := done(t, "", with("tenant", "import", file)...)
		is.True(strings.HasSuffix(said, " rows and 1 SQL database of an app.\n"))
		is.True(holds(t, db, fmt.Sprintf(`SELECT count(*) = %d FROM tc_colors WHERE tenant_id = 'acme'`, rows)))
		is.Equal(query("SELECT count(*) AS n FROM t"), `[{"n":1000}]`)
	})
}

// movedApp is the app of a workspace.
const movedApp = "0192b2a0-0000-7000-8000-000000000001"
