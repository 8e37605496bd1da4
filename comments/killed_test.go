package comments_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/comments/bunstore"
	"github.com/tenantcontent/tenantcontent/database"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/migrations"
	"github.com/tenantcontent/tenantcontent/paging"
	"github.com/tenantcontent/tenantcontent/queue"
	queuestore "github.com/tenantcontent/tenantcontent/queue/bunstore"
)

// killedDatabase is the environment variable with the database of a process that deletes until it is killed.
const killedDatabase = "COMMENTS_TEST_DATABASE"

const (
	kills         = 50 // on each engine
	killedReports = 12
	killedThread  = 600 // comments, each with an activity: more rows than one transaction removes
)

func killedReport(n int) entity.Key { return entity.Key{Kind: "report", ID: fmt.Sprintf("r%02d", n)} }

// remover returns a Service whose jobs remove 20 rows in a transaction, and the queue that does them. The lease is short, for jobs of a killed
// process to go on soon.
func remover(t *testing.T, db *bun.DB) (comments.Unchecked, *bunstore.Store, *queue.Service) {
	t.Helper()
	jobs := queue.New(queue.Options{Store: queuestore.New(db), Node: queue.Node{Poll: 50 * time.Millisecond}})
	store := bunstore.New(db)
	u := comments.New(comments.Options{Store: store, Queue: store, Entities: entity.NewRegistry(), Jobs: jobs, Step: 20}).Unchecked()
	for _, w := range u.Workers() {
		w.Lease = 300 * time.Millisecond
		is.New(t).NoErr(jobs.Add(w))
	}
	return u, store, jobs
}

// TestKilledWhileDeleting: a process that deletes entities with many comments, and removes their rows, is killed a hundred times, half of them on each engine. Whenever that is,
// all comments on an entity and their activities are there or none is, and in the end no rows are left.
func TestKilledWhileDeleting(t *testing.T) {
	if url := os.Getenv(killedDatabase); url != "" {
		deleteUntilKilled(t, url)
		return
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			is, ctx, url := is.New(t), t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db")
			if engine == "postgres" {
				url = dbtest.PostgresURL(t)
			}
			db, err := database.Open(url)
			is.NoErr(err)
			defer func() { _ = db.Close() }()
			is.NoErr(migrations.Run(ctx, db))
			fillReports(t, db)
			_, store, jobs := remover(t, db)
			left := func() int {
				t.Helper()
				n, err := store.Count(ctx, "acme")
				is.NoErr(err)
				return n
			}
			gone, progress, before := 0, 0, left()
			// Some kills come within deletes, and many within steps. On a machine where a process takes seconds to start they are fewer than kills.
			for n, begun := 0, time.Now(); n < kills && time.Since(begun) < 90*time.Second || gone <= 3 || progress <= 5; n++ {
				killOne(t, url, time.Duration(20+n)*time.Millisecond)
				gone = 0
				for n := range killedReports {
					page, err := store.List(ctx, "acme", killedReport(n), paging.Query{Limit: 1})
					is.NoErr(err)
					activities, err := store.Activities(ctx, "acme", killedReport(n), paging.Query{Limit: 1})
					is.NoErr(err)
					switch [4]int{page.Total, len(page.Rows), activities.Total, len(activities.Rows)} {
					case [4]int{1, 1, killedThread, 1}:
					case [4]int{}:
						gone++
					default:
						t.Fatalf("report %d is half visible: %d comments, %d activities", n, page.Total, activities.Total)
					}
				}
				if now := left(); now < before {
					before, progress = now, progress+1
				}
			}
			is.NoErr(store.InTx(ctx, func(ctx context.Context) error {
				u, _, _ := remover(t, db)
				for n := range killedReports {
					if err := u.Hooks().Deleted(ctx, "acme", killedReport(n)); err != nil {
						return err
					}
				}
				return nil
			}))
			running, stop := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() { jobs.Run(running); close(done) }()
			for deadline := time.Now().Add(2 * time.Minute); left() > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("rows are left: ", left())
				}
			}
			stop()
			<-done
			c, c2 := 0, 0
			tenant, conn := bunx.For(ctx, db, "acme")
			is.NoErr(conn.One(tenant, "Row", `SELECT (SELECT count(*) FROM tc_activities WHERE tenant_id = $1), (SELECT count(*) FROM tc_comments WHERE tenant_id = $1)`,
				[]any{"acme"}, &c, &c2))
			is.Equal([]int{c, c2}, []int{0, 0})
		})
	}
}

// killOne lets a process delete a report, if there is one, and remove rows, and kills it at some moment.
func killOne(t *testing.T, url string, within time.Duration) {
	t.Helper()
	is := is.New(t)
	child := exec.Command(os.Args[0], "-test.run=^TestKilledWhileDeleting$")
	child.Env = append(os.Environ(), killedDatabase+"="+url)
	out, err := child.StdoutPipe()
	is.NoErr(err)
	is.NoErr(child.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // it has begun
	is.NoErr(err)
	time.Sleep(rand.N(within))
	is.NoErr(child.Process.Kill())
	_ = child.Wait()
}

func deleteUntilKilled(t *testing.T, url string) {
	is, ctx := is.New(t), t.Context()
	db, err := database.Open(url)
	is.NoErr(err)
	u, store, jobs := remover(t, db)
	_, err = store.Count(ctx, "acme") // it is connected
	is.NoErr(err)
	fmt.Println("begun")
	go jobs.Run(ctx)
	for n := range killedReports {
		page, err := store.List(ctx, "acme", killedReport(n), paging.Query{Limit: 1})
		is.NoErr(err)
		if page.Total > 0 {
			is.NoErr(store.InTx(ctx, func(ctx context.Context) error { return u.Hooks().Deleted(ctx, "acme", killedReport(n)) }))
			break // the next process deletes the next one
		}
	}
	select {}
}

// fillReports adds comments on all reports: one on top, and each other a reply to one before it.
func fillReports(t *testing.T, db *bun.DB) {
	t.Helper()
	is.New(t).NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		at := bunx.At(time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC))
		_, err := c.Exec(ctx, `INSERT INTO tc_tenants (tenant_id, name, settings, key_check, created_at, updated_at) VALUES ('acme', 'Acme', '{}', '', $1, $1)`, at)
		for n := range killedReports {
			of := killedReport(n).ID
			if err == nil {
				_, err = c.Exec(ctx, `INSERT INTO tc_comment_threads (tenant_id, kind, entity_id, total) VALUES ('acme', 'report', $1, 1)`, of)
			}
			replies := make([]int, killedThread)
			parent := func(i int) int { return (i - 1) / 7 }
			for i := 1; i < killedThread; i++ {
				replies[parent(i)]++
			}
			var rows, activities []any
			for i := range killedThread {
				id, above := fmt.Sprintf("%s-%04d", of, i), any(nil)
				if i > 0 {
					above = fmt.Sprintf("%s-%04d", of, parent(i))
				}
				rows = append(rows, "acme", id, "report", of, above, "jo", "says", false, replies[i], at, at)
				activities = append(activities, "acme", id, "reportAddedComment", "report", of, id, "jo", "says", at)
			}
			if err == nil {
				_, err = c.Exec(ctx, `INSERT INTO tc_comments (tenant_id, id, kind, entity_id, parent_id, user_id, message, public, replies, created_at, updated_at) VALUES `+
					bunx.Values(killedThread, 11), rows...)
			}
			if err == nil {
				_, err = c.Exec(ctx, `INSERT INTO tc_activities (tenant_id, id, type, kind, entity_id, comment_id, user_id, excerpt, created_at) VALUES `+
					bunx.Values(killedThread, 9), activities...)
			}
		}
		return err
	}))
}
