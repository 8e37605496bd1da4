package queue_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// nodeDatabase is the environment variable with the database of a node in another process.
const nodeDatabase = "QUEUE_TEST_DATABASE"

// effectWorker writes a row for each job. Its lease is short, so that the jobs of a killed node
// continue soon, and long enough to be extended on a busy machine.
func effectWorker(db *bun.DB) queue.Worker {
	return queue.Worker{Kind: "event", InTx: true, Batch: 5,
		Tries: 1000, Lease: 3 * time.Second, Backoff: soon, Do: func(ctx context.Context, j queue.Job) error {
			time.Sleep(time.Millisecond) // so that the process can be killed in the middle of a job
			return effect(ctx, db, j)
		}}
}

// TestKilledNode: a node is killed in the middle of its work. Another one finishes the work, and
// each job has one effect.
func TestKilledNode(t *testing.T) {
	if url := os.Getenv(nodeDatabase); url != "" {
		db, err := engines.Open(url)
		is.New(t).NoErr(err)
		node(t, db, effectWorker(db)).Run(t.Context()) // until the process is killed
		return
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			is, url := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "test.db")
			if engine == "postgres" {
				url = dbtest.PostgresURL(t)
			}
			db, err := engines.Open(url)
			is.NoErr(err)
			defer func() { _ = db.Close() }()
			is.NoErr(migrations.Run(t.Context(), db))
			is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
				_, err := c.Exec(
					ctx,
					`INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) `+
						`VALUES ('acme', 'Acme', '{}', '', $1, $1)`,
					bunx.At(time.Now()),
				)
				return err
			}))
			s := node(t, db, effectWorker(db))
			all := make([]queue.Job, 400)
			for i := range all {
				all[i] = queue.Job{Tenant: "acme", Kind: "event"}
			}
			put(t, s, all...)
			other := exec.Command(os.Args[0], "-test.run=^TestKilledNode$")
			other.Env = append(os.Environ(), nodeDatabase+"="+url)
			is.NoErr(other.Start())
			defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
			until(t, "the other node works", func() bool { return effects(t, db, "acme") > 10 })
			is.NoErr(other.Process.Kill())
			_ = other.Wait()
			run(t, s)
			empty(t, s, "acme")
			is.Equal(effects(t, db, "acme"), 400)
		})
	}
}
