package domains_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// killedNode is the environment variable of a process that scans until it is killed. It has a node
// as JSON.
const killedNode = "DOMAINS_TEST_NODE"

// node is a process that scans by schedule.
type node struct {
	URL string    // of the database
	Now time.Time // when it begins
	Day int       // of the directory
	At  string    // where it stops, and waits to be killed
}

// TestKilledWhileScanning: a node that scans by schedule is killed. Wherever that is, nothing is
// half written, and another node scans the domain when the first one counts as gone.
func TestKilledWhileScanning(t *testing.T) {
	if n := (node{}); os.Getenv(killedNode) != "" {
		is.New(t).NoErr(json.Unmarshal([]byte(os.Getenv(killedNode)), &n))
		n.scan(t)
		return
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			is, url := is.New(t), "sqlite:"+filepath.Join(t.TempDir(), "test.db")
			if engine == "postgres" {
				url = dbtest.PostgresURL(t)
			}
			w, now := nodeWorld(t, url, time.Date(2026, 11, 20, 20, 31, 0, 0, time.UTC))
			is.NoErr(migrations.Run(t.Context(), w.db))
			w.addTenant(t, "acme")
			w.addTenant(t, "evil")
			w.addSuperusers(t)
			w.add(t, "Books", "paper", `{"url": "x", "schedule": "@every 24h"}`)
			w.day(0)
			_, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
			is.NoErr(err)
			for i, c := range []struct {
				at      string
				written bool // by the node that was killed
				dead    bool // the domain seems to be scanned
			}{
				{at: "reading", dead: true},
				{at: "writing", dead: true},
				{at: "committing", dead: true},
				{at: "written", written: true, dead: true},
				{at: "done", written: true},
			} {
				t.Run(c.at, func(t *testing.T) {
					is := is.New(t)
					w.late.Add(int64(25 * time.Hour))
					before := w.rows(t)
					w.kill(t, node{URL: url, Now: now(), Day: i + 1, At: c.at})
					is.Equal(w.rows(t) != before, c.written)
					job := func() []queue.Job {
						t.Helper()
						jobs, err := w.queue.Jobs(t.Context(), "acme", queue.Filter{Kind: domains.JobScan})
						is.NoErr(err)
						return jobs
					}
					state := func() domains.ScanState {
						t.Helper()
						run, err := w.ScanState(root(t), "books")
						is.NoErr(err)
						return run
					}
					is.Equal(len(job()), 1)
					killed := state()

					w.day(i + 1)
					before = w.rows(t)
					w.late.Add(int64(time.Minute)) // the lease of the job has ended
					if c.dead {
						w.work(t, now, func() bool { return job()[0].State == queue.Waiting })
						is.True(strings.Contains(*job()[0].Error, "is being scanned already"))
						is.Equal(w.rows(t), before)
						is.True(state().FinishedAt == nil)
						w.late.Add(int64(5 * time.Minute))
						is.Equal(state().Phase, domains.Failed)
						is.Equal(state().Error, "The process that scanned has ended.")
					}
					w.work(t, now, func() bool { return len(job()) == 0 })
					last := state()
					is.Equal(last.Phase, domains.Done)
					is.True(last.ID != killed.ID)
					is.Equal(last.Users, 200+10*(i+1))
					is.Equal(last.Written, last.Total)
					is.Equal(last.Total > 0, !c.written)
					is.Equal(w.rows(t) != before, !c.written)

					all, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
					is.NoErr(err)
					is.Equal(all[0].Users.Unchanged, 200+11*(i+1))
					is.Equal(all[0].Teams.Unchanged, 1+i+1)
					is.Equal(state().Total, 0)
				})
			}
		})
	}
}

// day has the directory be that of a day: each day a person leaves, ten people come, others have
// other names, and there is another group, of all.
func (w *world) day(n int) {
	w.paper.all = nil
	var all []string
	for i := n; i < 200+11*n; i++ {
		p := person(i)
		if i%10 == 0 {
			p.Person.DisplayName += fmt.Sprint(" of day ", n)
		}
		w.paper.all, all = append(w.paper.all, p), append(all, p.Person.ID)
	}
	for i := range n + 1 {
		w.paper.all = append(w.paper.all, domains.Entry{
			Group: &domains.Group{ID: fmt.Sprint("g", i), Name: fmt.Sprint("Readers ", i), Members: all},
		})
	}
}

// rows returns all that scans write.
func (w *world) rows(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	ctx, c := bunx.For(t.Context(), w.db, "acme")
	for _, table := range []string{"tc_users", "tc_principals", "tc_teams", "tc_memberships"} {
		var rows []map[string]any
		is.New(t).NoErr(c.NewRaw(`SELECT * FROM `+table+` WHERE tenant_id = 'acme' ORDER BY 1, 2, 3`).Scan(ctx, &rows))
		for _, row := range rows {
			fmt.Fprintln(&all, table, row)
		}
	}
	return all.String()
}

// nodeWorld returns the services over a database, with a clock that begins at a time and goes on.
func nodeWorld(t *testing.T, url string, at time.Time) (w *world, now func() time.Time) {
	t.Helper()
	db, err := engines.Open(url)
	is.New(t).NoErr(err)
	t.Cleanup(func() { _ = db.Close() })
	w, begun := &world{db: db, clock: at}, time.Now()
	now = func() time.Time { return at.Add(time.Since(begun) + time.Duration(w.late.Load())) }
	w.build(t, now)
	return w, now
}

// work does jobs until something is so.
func (w *world) work(t *testing.T, now func() time.Time, so func() bool) {
	t.Helper()
	jobs := queue.New(queue.Options{
		Store: queuestore.New(w.db),
		Now:   now,
		Node:  queue.Node{Poll: 20 * time.Millisecond},
	})
	is.New(t).NoErr(jobs.Add(w.Unchecked().Workers()...))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { jobs.Run(ctx); close(ended) }()
	defer func() { stop(); <-ended }()
	for deadline := time.Now().Add(2 * time.Minute); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the job is not done")
		}
	}
}

// kill starts a node and kills it when it has stopped.
func (w *world) kill(t *testing.T, n node) {
	t.Helper()
	is := is.New(t)
	env, err := json.Marshal(n)
	is.NoErr(err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var log bytes.Buffer
	other := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKilledWhileScanning$")
	other.Env, other.Stderr = append(os.Environ(), killedNode+"="+string(env)), &log
	in, err := other.StdinPipe()
	is.NoErr(err)
	defer in.Close()
	out, err := other.StdoutPipe()
	is.NoErr(err)
	is.NoErr(other.Start())
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	if n.At == "reading" {
		w.reading(t, "acme", "books", 100)
		_, err := w.ScanDomain(root(t), "books", domains.ScanOptions{})
		is.Equal(errs.CodeOf(err), errs.Conflict)
		return
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "stopped\n" {
		t.Fatalf("the node has ended: %q, %v", line, err)
	}
}

// scan scans until n.At, and waits there.
func (n node) scan(t *testing.T) {
	go func() { // it does not outlive who has started it
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	stop := func() {
		fmt.Println("stopped")
		select {}
	}
	w, now := nodeWorld(t, n.URL, n.Now)
	jobs := queue.New(queue.Options{
		Store: queuestore.New(w.db),
		Now:   now,
		Node:  queue.Node{Poll: 20 * time.Millisecond},
	})
	written, committed := false, false
	w.db = dbtest.Watched(t, w.db, func(statement string) { // by the scan alone
		switch members := strings.Contains(statement, "INSERT INTO tc_memberships"); {
		case members && n.At == "writing", written && statement == "COMMIT" && n.At == "committing",
			committed && n.At == "written":
			stop()
		default:
			committed = written && statement == "COMMIT"
			written = written || members
		}
	})
	w.build(t, now)
	w.day(n.Day)
	if n.At == "reading" {
		w.paper.wait = make(chan struct{})
		w.Hurry(time.Minute, time.Minute, time.Hour, 20*time.Millisecond)
	}
	worker := w.Unchecked().Workers()[0]
	do := worker.Do
	worker.Do = func(ctx context.Context, j queue.Job) error {
		err := do(ctx, j)
		if err == nil && n.At == "done" {
			stop()
		}
		return err
	}
	is.New(t).NoErr(jobs.Add(worker))
	jobs.Run(t.Context())
}
