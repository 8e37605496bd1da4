package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"
	"github.com/uptrace/bun"
	"go.uber.org/goleak"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// node returns a Service that polls often.
func node(t *testing.T, db *bun.DB, workers ...queue.Worker) *queue.Service {
	t.Helper()
	s := queue.New(queue.Options{
		Store: bunstore.New(db),
		Node:  queue.Node{Poll: 20 * time.Millisecond},
		Log:   slog.New(slog.DiscardHandler),
	})
	is.New(t).NoErr(s.Add(workers...))
	return s
}

// run runs a Service until stop is called, or the test ends.
func run(t *testing.T, s *queue.Service) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func put(t *testing.T, s *queue.Service, jobs ...queue.Job) {
	t.Helper()
	is.New(t).NoErr(s.Put(t.Context(), jobs...))
}

func jobs(t *testing.T, s *queue.Service, tenant string) []queue.Job {
	t.Helper()
	all, err := s.Jobs(t.Context(), tenant, queue.Filter{})
	is.New(t).NoErr(err)
	return all
}

func empty(t *testing.T, s *queue.Service, tenants ...string) {
	t.Helper()
	until(t, "no job is left", func() bool {
		for _, tenant := range tenants {
			if len(jobs(t, s, tenant)) > 0 {
				return false
			}
		}
		return true
	})
}

func soon(int) time.Duration { return time.Millisecond }

// effect writes a row for a job in the transaction in ctx. A second row of the same job is an
// error.
func effect(ctx context.Context, db *bun.DB, j queue.Job) error {
	return bunx.Write(ctx, db, j.Tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx,
			`INSERT INTO tc_colors (tenant_id, key, search, color, created_at, updated_at) `+
				`VALUES ($1, $2, $2, '#fff', $3, $3)`,
			j.Tenant, j.ID, bunx.At(j.CreatedAt),
		)
		return bunx.Err(err, "Effect")
	})
}

func effects(t *testing.T, db *bun.DB, tenant string) int {
	t.Helper()
	n, err := bunx.Count(t.Context(), db, tenant, "tc_colors")
	is.New(t).NoErr(err)
	return n
}

// TestEffectsExactlyOnce: each job in a batch has one effect, even if some fail at first. A job
// that always fails has none.
func TestEffectsExactlyOnce(t *testing.T) {
	for _, together := range []bool{false, true} {
		t.Run(fmt.Sprintf("together=%t", together), func(t *testing.T) { testEffectsExactlyOnce(t, together) })
	}
}

func testEffectsExactlyOnce(t *testing.T, together bool) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var dead, largest atomic.Int32
		do := func(ctx context.Context, j queue.Job) error {
			if err := effect(ctx, db, j); err != nil {
				return err
			}
			switch j.Key {
			case "once":
				if j.Tries == 1 {
					return errors.New("once")
				}
			case "panics":
				if j.Tries < 3 {
					panic("at times")
				}
			case "never":
				return errors.New("never")
			case "gives up":
				return queue.GiveUp(errs.New(errs.Invalid, "Of no use."))
			}
			return nil
		}
		w := queue.Worker{
			Kind: "event", InTx: true, Batch: 10, Tries: 3, Backoff: soon, Do: do,
			Dead: func(ctx context.Context, j queue.Job, cause error) error { dead.Add(1); return nil },
		}
		if together {
			w.Do, w.DoBatch = nil, func(ctx context.Context, jobs []queue.Job) (n int, err error) {
				largest.Store(max(largest.Load(), int32(len(jobs))))
				for _, j := range jobs[:min(len(jobs), 4)] {
					n++
					err = errors.Join(err, do(ctx, j))
				}
				return n, err
			}
		}
		s := node(t, db, w)
		var all []queue.Job
		for range 30 {
			all = append(all, queue.Job{Tenant: "acme", Kind: "event"})
		}
		for _, key := range []string{"once", "panics", "never", "gives up"} {
			all = slices.Insert(all, 7, queue.Job{Tenant: "acme", Kind: "event", Key: key})
		}
		put(t, s, all...)
		put(t, s, queue.Job{Tenant: "evil", Kind: "event"}, queue.Job{Tenant: "evil", Kind: "nobodys"})
		run(t, s)
		until(t, "two are dead and one is nobody's", func() bool {
			return dead.Load() == 2 && len(jobs(t, s, "acme")) == 2 && len(jobs(t, s, "evil")) == 1
		})
		is.True(!together || largest.Load() > 4) // some jobs were left for another call
		is.Equal(effects(t, db, "acme"), 32)
		is.Equal(effects(t, db, "evil"), 1)
		for _, j := range jobs(t, s, "acme") {
			is.Equal(j.State, queue.Dead)
			is.Equal(*j.Error, map[string]string{"never": "never", "gives up": "Of no use."}[j.Key])
			is.Equal(j.Tries, map[string]int{"never": 3, "gives up": 1}[j.Key])
		}
	})
}

// TestAtLeastOnce: a job outside of transactions is done again with the same id, and can be
// requeued when it is dead.
func TestAtLeastOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var mu sync.Mutex
		var calls []string
		var works, requeued bool
		s := node(t, db, queue.Worker{
			Kind: "mail", Tries: 2, Backoff: soon,
			Do: func(_ context.Context, j queue.Job) error {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, fmt.Sprint(j.ID, j.Tries, string(j.Payload)))
				if !works {
					return errors.New("no\x00")
				}
				return nil
			},
			Requeued: func(context.Context, queue.Job) error { requeued = true; return nil },
		})
		run(t, s)
		put(t, s, queue.Job{ID: "a", Tenant: "acme", Kind: "mail", Payload: json.RawMessage(` {"n": 1}`)})
		until(t, "it is dead", func() bool { j := jobs(t, s, "acme"); return len(j) == 1 && j[0].State == queue.Dead })
		mu.Lock()
		is.Equal(calls, []string{`a1{"n": 1}`, `a2{"n": 1}`})
		works = true
		mu.Unlock()
		is.Equal(errs.CodeOf(s.Requeue(t.Context(), "evil", "a")), errs.NotFound)
		is.NoErr(s.Requeue(t.Context(), "acme", "a"))
		empty(t, s, "acme")
		mu.Lock()
		defer mu.Unlock()
		is.Equal(calls[2], `a1{"n": 1}`)
		is.True(requeued)
	})
}

// TestLater: a job that is too early is done later, and the try does not count, separately and in a
// batch.
func TestLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		db := open(t)
		var calls atomic.Int32
		do := func(_ context.Context, j queue.Job) error {
			if j.Tries != 1 {
				return queue.GiveUp(fmt.Errorf("try %d", j.Tries))
			}
			if calls.Add(1)%6 != 0 {
				return queue.Later(errors.New("too early"), time.Millisecond)
			}
			return nil
		}
		s := node(
			t, db, queue.Worker{Kind: "mail", Tries: 1, Do: do},
			queue.Worker{Kind: "event", Tries: 1, InTx: true, Batch: 10, Do: do},
		)
		run(t, s)
		for _, kind := range []string{"mail", "event"} {
			put(t, s, queue.Job{Tenant: "acme", Kind: kind}, queue.Job{Tenant: "acme", Kind: kind})
		}
		empty(t, s, "acme")
	})
}

// TestBusyDatabaseUsesUpNoTry: while another transaction has SQLite's writer for so long that a
// worker's write fails and its lease expires, the job waits. From an hour after it was due, this
// counts as a try.
func TestBusyDatabaseUsesUpNoTry(t *testing.T) {
	is, db := is.New(t), dbtest.SQLite(t)
	var begun, failed sync.WaitGroup
	begun.Add(2)
	failed.Add(2)
	hold := sync.OnceValues(func() (bun.Tx, error) { return db.BeginTx(t.Context(), nil) })
	var writes atomic.Int32
	s := node(t, db, queue.Worker{Kind: "mail", Tries: 1,
		Lease: 300 * time.Millisecond, Do: func(ctx context.Context, j queue.Job) error {
			if j.Tries != 1 {
				return queue.GiveUp(fmt.Errorf("try %d", j.Tries))
			}
			if writes.Add(1) > 2 {
				return effect(ctx, db, j)
			}
			begun.Done()
			begun.Wait()
			defer failed.Done()
			if _, err := hold(); err != nil {
				return err
			}
			err := effect(actor.WithOrigin(ctx, actor.Origin{Request: "waits for seconds at most"}), db, j)
			if !errors.Is(err, errs.ErrDatabaseBusy) {
				return queue.GiveUp(err)
			}
			return fmt.Errorf("the effect: %w", err)
		}})
	put(t, s, queue.Job{Tenant: "acme", Kind: "mail"}, queue.Job{
		Tenant: "acme",
		Kind:   "mail",
		Key:    "old",
		Due:    time.Now().Add(-2 * time.Hour),
	})
	run(t, s)
	failed.Wait()
	long, err := hold()
	is.NoErr(err)
	is.NoErr(long.Rollback())
	until(t, "one is done and one is dead", func() bool {
		all := jobs(t, s, "acme")
		return len(all) == 1 && all[0].State == queue.Dead
	})
	dead := jobs(t, s, "acme")[0]
	is.Equal(dead.Key, "old")
	is.Equal(dead.Tries, 1)
	is.True(strings.Contains(*dead.Error, "Another change of the database takes long"))
	is.Equal(effects(t, db, "acme"), 1)
}

// TestOffLeavesJobs: a node whose worker is off does not do the jobs, but can requeue dead ones as
// other nodes do.
func TestOffLeavesJobs(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		var requeued []string
		off := queue.Worker{
			Kind: "mail", Off: true, Do: func(context.Context, queue.Job) error { return nil },
			Requeued: func(_ context.Context, j queue.Job) error { requeued = append(requeued, j.ID); return nil },
		}
		done := make(chan string, 1)
		s := node(t, db, off, queue.Worker{Kind: "other", Do: func(_ context.Context, j queue.Job) error {
			done <- j.ID
			return nil
		}})
		put(t, s, queue.Job{ID: "a", Tenant: "acme", Kind: "mail"})
		store := bunstore.New(db)
		claimed, err := store.Claim(
			t.Context(), queue.Line{Tenant: "acme", Kind: "mail"}, 1,
			queue.Claim{Lease: "x", Node: "x", Until: time.Now().Add(time.Hour)},
		)
		is.NoErr(err)
		held, err := store.Bury(t.Context(), claimed[0], "why", time.Now())
		is.NoErr(err)
		is.True(held)
		is.NoErr(s.Requeue(t.Context(), "acme", "a"))
		is.Equal(requeued, []string{"a"})
		run(t, s)
		put(t, s, queue.Job{ID: "b", Tenant: "acme", Kind: "other"}) // served after mail, in order of the kinds
		is.Equal(<-done, "b")
		until(t, "one is left", func() bool { return len(jobs(t, s, "acme")) == 1 })
		is.Equal(jobs(t, s, "acme")[0].State, queue.Ready)
	})
}

// TestPutIsPartOfItsTransaction: a job whose transaction is rolled back is not done.
func TestPutIsPartOfItsTransaction(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		s := node(t, db)
		failed := errors.New("failed")
		is.Equal(bunx.InTx(t.Context(), db, func(ctx context.Context) error {
			is.NoErr(s.Put(ctx, queue.Job{Tenant: "acme", Kind: "mail"}))
			return failed
		}), failed)
		is.Equal(len(jobs(t, s, "acme")), 0)
	})
}

// TestOneTenantHoldsUpNoOther: the job of a tenant is done while another tenant has many, and
// before most of these.
func TestOneTenantHoldsUpNoOther(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		hold, begun := make(chan struct{}), make(chan string, 100)
		s := node(t, db, queue.Worker{Kind: "slow", AtOnce: 4, Do: func(ctx context.Context, j queue.Job) error {
			begun <- j.Tenant
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return nil
		}})
		var flood []queue.Job
		for range 50 {
			flood = append(flood, queue.Job{Tenant: "acme", Kind: "slow"})
		}
		put(t, s, flood...)
		run(t, s)
		for range 3 { // three quarters of the places
			is.Equal(<-begun, "acme")
		}
		put(t, s, queue.Job{Tenant: "evil", Kind: "slow"})
		is.Equal(<-begun, "evil") // although no job of acme has ended
		close(hold)
		empty(t, s, "acme", "evil")
	})
}

func TestLimit(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, now := is.New(t), open(t), time.Now()
		s := queue.New(queue.Options{Store: bunstore.New(db), Limit: 3, Now: func() time.Time { return now }})
		j := queue.Job{Tenant: "acme", Kind: "mail"}
		put(t, s, j, j)
		is.Equal(errs.CodeOf(s.Put(t.Context(), j, j)), errs.Busy)
		put(t, s, j)
		err := s.Put(t.Context(), j)
		is.Equal(errs.CodeOf(err), errs.Busy)
		is.Equal(
			errs.MessageOf(err),
			"3 jobs of the tenant wait to be done, and no more can be added until some have been. Try again later.",
		)
		put(t, s, queue.Job{Tenant: "evil", Kind: "mail"})
		for _, bad := range []queue.Job{
			{Kind: "mail"}, {Tenant: "evil"},
			{Tenant: "evil", Kind: "Mail"},
			{Tenant: "evil", Kind: "mail", Key: "\x00"}, {Tenant: "evil", Kind: "mail", Payload: json.RawMessage(`{`)},
			{Tenant: "evil", Kind: "mail", Payload: json.RawMessage(`"\u0000"`)},
		} {
			is.Equal(errs.CodeOf(s.Put(t.Context(), bad)), errs.Invalid)
		}
	})
}

// TestStopGivesBack: running jobs get time to end. Jobs that do not end are released as if they had
// not been claimed.
func TestStopGivesBack(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		begun := make(chan struct{}, 2)
		finish := make(chan struct{})
		s := queue.New(queue.Options{
			Store: bunstore.New(db),
			Log:   slog.New(slog.DiscardHandler),
			Node:  queue.Node{Grace: time.Hour},
		})
		is.NoErr(s.Add(queue.Worker{Kind: "slow", PerTenant: 4, Do: func(ctx context.Context, j queue.Job) error {
			begun <- struct{}{}
			if j.Key == "ends" {
				<-finish
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}}))
		put(
			t, s, queue.Job{Tenant: "acme", Kind: "slow", Key: "ends"},
			queue.Job{Tenant: "acme", Kind: "slow", Key: "goes on"},
		)
		before := goleak.IgnoreCurrent()
		stop := run(t, s)
		<-begun
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		drained := make(chan error, 1)
		go func() { drained <- s.Drain(ctx) }()
		close(finish)
		until(t, "one ends", func() bool { return len(jobs(t, s, "acme")) == 1 })
		cancel()
		is.Equal(<-drained, context.Canceled)
		put(t, s, queue.Job{Tenant: "acme", Kind: "slow", Key: "is not begun"})
		stop()
		for _, j := range jobs(t, s, "acme") {
			is.Equal(j.State, queue.Ready)
			is.Equal(j.Tries, 0)
			is.Equal(j.Node, "")
		}
		is.Equal(len(begun), 0)
		is.Equal(len(jobs(t, s, "acme")), 2)
		goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
		is.NoErr(s.Drain(t.Context())) // no job is running
	})
}

// lateClaim is a Store whose first claim is made before the node stops, and returns after that.
type lateClaim struct {
	queue.Store
	claimed, stopped chan struct{}
}

func (s lateClaim) Claim(ctx context.Context, l queue.Line, n int, c queue.Claim) ([]queue.Job, error) {
	all, err := s.Store.Claim(ctx, l, n, c)
	close(s.claimed)
	<-s.stopped
	return all, errors.Join(err, ctx.Err())
}

// TestStopGivesBackLateClaim: jobs that are being claimed when the node stops are released, and do
// not wait until their leases expire.
func TestStopGivesBackLateClaim(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, store := is.New(t), lateClaim{bunstore.New(open(t)), make(chan struct{}), make(chan struct{})}
		s := queue.New(queue.Options{Store: store, Log: slog.New(slog.DiscardHandler)})
		is.NoErr(s.Add(queue.Worker{Kind: "slow", Do: func(context.Context, queue.Job) error {
			return errors.New("it is begun")
		}}))
		put(t, s, queue.Job{Tenant: "acme", Kind: "slow"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Run(ctx); close(ended) }()
		<-store.claimed
		cancel()
		close(store.stopped)
		<-ended
		all := jobs(t, s, "acme")
		is.Equal(len(all), 1)
		is.Equal(all[0].State, queue.Ready)
		is.Equal(all[0].Tries, 0)
		is.Equal(all[0].Error, nil)
	})
}

// awayOnce is a Store whose first transaction cannot be begun.
type awayOnce struct {
	queue.Store
	begun chan time.Time
}

func (s awayOnce) InTx(ctx context.Context, fn func(context.Context) error) error {
	s.begun <- time.Now()
	if len(s.begun) == 1 {
		return errs.New(errs.Unavailable, "The database is away.")
	}
	return s.Store.InTx(ctx, fn)
}

// TestTransactionThatCannotBegin: while the database is unreachable, the node pauses between two
// transactions.
func TestTransactionThatCannotBegin(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, store, done := is.New(t), awayOnce{bunstore.New(open(t)), make(chan time.Time, 10)}, make(chan int, 10)
		s := queue.New(queue.Options{Store: store, Log: slog.New(slog.DiscardHandler)})
		is.NoErr(s.Add(queue.Worker{Kind: "event", InTx: true, Do: func(_ context.Context, j queue.Job) error {
			done <- j.Tries
			return nil
		}}))
		put(t, s, queue.Job{Tenant: "acme", Kind: "event"})
		run(t, s)
		is.Equal(<-done, 1)
		first, second := <-store.begun, <-store.begun
		is.True(second.Sub(first) >= 900*time.Millisecond)
	})
}

// TestLostLease: the context of a worker whose lease was lost ends, and what it did in a
// transaction is undone.
func TestLostLease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		begun, told, wait := make(chan struct{}, 10), make(chan error, 10), make(chan struct{})
		var first atomic.Bool
		s := node(t, db,
			queue.Worker{Kind: "slow", Lease: 30 * time.Millisecond, Do: func(ctx context.Context, j queue.Job) error {
				if first.Swap(true) {
					return nil
				}
				begun <- struct{}{}
				<-ctx.Done()
				told <- context.Cause(ctx)
				return ctx.Err()
			}},
			queue.Worker{Kind: "in-tx", InTx: true, Lease: time.Hour, Do: func(ctx context.Context, j queue.Job) error {
				if j.Tries > 1 {
					return nil
				}
				begun <- struct{}{}
				<-wait
				return effect(ctx, db, j)
			}})
		run(t, s)
		put(t, s, queue.Job{Tenant: "acme", Kind: "slow"})
		<-begun
		is.NoErr(steal(t, db)) // as if its lease had expired
		is.True(<-told != nil)
		empty(t, s, "acme")
		if db.Dialect().Name().String() != "pg" { // on SQLite the transaction is the only writer
			close(wait)
			return
		}
		put(t, s, queue.Job{Tenant: "acme", Kind: "in-tx"})
		<-begun
		is.NoErr(bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
			// in one statement, so that no node finds it ready in between
			_, err := c.Exec(
				ctx,
				`UPDATE tc_jobs SET lease = 'others', node = 'other', wake_at = $1 WHERE tenant_id = 'acme'`,
				bunx.At(time.Now().Add(time.Hour)),
			)
			return err
		}))
		close(wait)
		until(t, "it is left to whoever has it", func() bool { return s.Drain(t.Context()) == nil })
		is.Equal(effects(t, db, "acme"), 0)
		is.Equal(len(jobs(t, s, "acme")), 1)
	})
}

// steal makes all leases expire.
func steal(t *testing.T, db *bun.DB) error {
	return bunx.Write(t.Context(), db, "acme", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(
			ctx,
			`UPDATE tc_jobs SET state = 'ready', lease = NULL, node = NULL, wake_at = NULL WHERE tenant_id = 'acme'`,
		)
		return err
	})
}

// TestNodesWakeEachOther: on PostgreSQL a job that one node adds is begun at once by another one,
// which polls once an hour.
func TestNodesWakeEachOther(t *testing.T) {
	dbtest.Server(t)
	db := dbtest.Postgres(t)
	done := make(chan struct{}, 1)
	there := queue.New(queue.Options{Store: bunstore.New(db), Node: queue.Node{Poll: time.Hour}})
	is.New(t).NoErr(there.Add(queue.Worker{Kind: "mail", Do: func(context.Context, queue.Job) error {
		done <- struct{}{}
		return nil
	}}))
	here := queue.New(queue.Options{Store: bunstore.New(db), Node: queue.Node{Off: true}})
	run(t, there)
	run(t, here)
	for range 3 {
		put(t, here, queue.Job{Tenant: "acme", Kind: "mail"})
		<-done
	}
}

// TestLaterAndSchedules: a job that is due later is done later, and a schedule that has missed
// several times adds one job.
func TestLaterAndSchedules(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		done := make(chan queue.Job, 10)
		s := node(t, db, queue.Worker{Kind: "cron", Do: func(_ context.Context, j queue.Job) error {
			done <- j
			return nil
		}})
		run(t, s)
		due := time.Now().Add(30 * time.Millisecond)
		put(t, s, queue.Job{Tenant: "acme", Kind: "cron", Due: due})
		<-done
		is.True(!time.Now().Before(due))

		is.NoErr(s.Schedule(t.Context(), queue.Schedule{
			Tenant:  "acme",
			Kind:    "cron",
			Key:     "agent",
			Cron:    "*/5 * * * *",
			Zone:    "Europe/Berlin",
			Payload: json.RawMessage(`{"a":1}`),
		}))
		all, err := s.Schedules(t.Context(), "acme", "cron")
		is.NoErr(err)
		missed := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		all[0].Next = missed
		is.NoErr(bunstore.New(db).PutSchedules(t.Context(), "acme", all))
		j := <-done
		is.Equal(j.Key, "agent")
		is.Equal(string(j.Payload), `{"a":1}`)
		is.Equal(j.Due, missed)
		all, err = s.Schedules(t.Context(), "acme", "cron")
		is.NoErr(err)
		is.True(all[0].Next.After(time.Now().Add(-time.Minute)))
		is.Equal(len(done), 0)
		is.NoErr(s.Unschedule(t.Context(), "acme", "cron"))
		err = s.Schedule(t.Context(), queue.Schedule{Tenant: "acme", Kind: "cron", Key: "agent", Cron: "* *"})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	})
}

// TestTickCost: looking for due work takes one statement, and adding the jobs of due schedules a
// few, whatever the number of schedules and of due ones.
func TestTickCost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is := is.New(t)
		db, count := dbtest.Counted(t, open)
		store := bunstore.New(db)
		tick := func(schedules, due int) []string {
			t.Helper()
			is.NoErr(store.DeleteSchedules(t.Context(), "acme", "cron", nil))
			var all []queue.Schedule
			now := time.Now()
			for n := range schedules {
				next := now.Add(time.Hour)
				if n < due {
					next = now.Add(-time.Minute)
				}
				all = append(all, queue.Schedule{
					Kind:    "cron",
					Key:     fmt.Sprint(n),
					Cron:    "* * * * *",
					Payload: json.RawMessage("null"),
					Next:    next,
				})
			}
			is.NoErr(store.PutSchedules(t.Context(), "acme", all))
			count.Take()
			_, next, err := store.Next(t.Context())
			is.NoErr(err)
			is.Equal(next.Before(now), due > 0)
			is.Equal(len(count.Take()), 1)
			n, err := store.Fire(t.Context(), now, 1000, func(due []queue.Schedule) (jobs []queue.Job) {
				for i := range due {
					due[i].Next = now.Add(time.Hour)
					jobs = append(jobs, queue.Job{
						Tenant:    "acme",
						ID:        fmt.Sprint(schedules, i),
						Kind:      "cron",
						Payload:   json.RawMessage("null"),
						State:     queue.Ready,
						Due:       now,
						CreatedAt: now,
					})
				}
				return jobs
			})
			is.NoErr(err)
			is.Equal(n, due)
			return count.Take()
		}
		one := func(statement string) string { return strings.SplitN(statement, "VALUES", 2)[0] }
		few, many := tick(10, 3), tick(200, 50)
		is.Equal(len(few), len(many))
		for i := range few {
			is.Equal(one(few[i]), one(many[i]))
		}
		is.True(len(few) <= 4) // the transaction, the due schedules, their jobs and their next times
	})
}

// TestClockThatWasAhead: next times of schedules that were stored while a clock was ahead are
// corrected: when a node starts, and when the clock of a running node goes back.
func TestClockThatWasAhead(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		begin := time.Date(2026, 3, 2, 10, 0, 30, 0, time.UTC)
		var now atomic.Pointer[time.Time]
		set := func(at time.Time) { now.Store(&at) }
		done := make(chan queue.Job, 10)
		start := func() *queue.Service {
			s := queue.New(queue.Options{Store: bunstore.New(db),
				Node: queue.Node{Poll: 20 * time.Millisecond}, Log: slog.New(slog.DiscardHandler),
				Now: func() time.Time { return *now.Load() }})
			is.NoErr(s.Add(queue.Worker{Kind: "cron", Do: func(_ context.Context, j queue.Job) error {
				done <- j
				return nil
			}}))
			return s
		}
		next := func() (stored []time.Time) {
			all, err := bunstore.New(db).Schedules(t.Context(), "acme", "cron", nil)
			is.NoErr(err)
			for _, c := range all {
				stored = append(stored, c.Next)
			}
			return stored
		}
		equal := func(want ...time.Time) func() bool {
			return func() bool { return slices.EqualFunc(next(), want, time.Time.Equal) }
		}
		set(begin.AddDate(1, 0, 0))
		s := start()
		is.NoErr(s.Schedule(t.Context(),
			queue.Schedule{
				Tenant:  "acme",
				Kind:    "cron",
				Key:     "a",
				Cron:    "* * * * *",
				Zone:    "Europe/Berlin",
				Payload: json.RawMessage(`{"a":1}`),
			},
			queue.Schedule{Tenant: "acme", Kind: "cron", Key: "b", Cron: "@every 10m"},
			queue.Schedule{Tenant: "acme", Kind: "cron", Key: "c", Cron: "0 0 1 6 *"}))
		ahead := next()
		is.Equal(ahead[0], begin.AddDate(1, 0, 0).Add(30*time.Second))

		set(begin)
		minute, ten, june := begin.Add(30*time.Second), begin.Add(10*time.Minute), time.Date(
			2026, 6, 1, 0, 0, 0, 0, time.UTC,
		)
		shown, err := s.Schedules(t.Context(), "acme", "cron")
		is.NoErr(err)
		// correct before they are stored
		is.Equal([]time.Time{shown[0].Next, shown[1].Next, shown[2].Next}, []time.Time{minute, ten, june})
		is.True(equal(ahead...)())
		stop := run(t, s)
		until(t, "the times at start", equal(minute, ten, june))
		set(minute)
		j := <-done
		is.Equal([]any{j.Key, string(j.Payload), j.Due}, []any{"a", `{"a":1}`, minute})

		removed := func() bool { n, err := bunstore.New(db).Count(t.Context(), "acme"); is.NoErr(err); return n == 0 }
		until(t, "the end of the job", removed)
		set(begin.Add(48 * time.Hour)) // while it runs: two jobs are added, and their next times are two days ahead
		first, second := <-done, <-done
		is.True(first.Key != second.Key)
		until(
			t, "the times ahead",
			equal(begin.Add(48*time.Hour+30*time.Second), begin.Add(48*time.Hour+10*time.Minute), june),
		)
		until(t, "the end of the jobs", removed)
		set(begin)
		until(t, "the times of the clock that has gone back", equal(minute, ten, june))
		stop()
		is.Equal(len(done), 0)
	})
}

// TestClockOfDatabase: the queue uses the clock of a PostgreSQL, whatever the clock of this machine
// is.
func TestClockOfDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db := is.New(t), open(t)
		store := &clockedStore{Store: bunstore.New(db), by: -400 * 24 * time.Hour}
		done := make(chan queue.Job, 1)
		s := queue.New(queue.Options{
			Store: store,
			Node:  queue.Node{Poll: 20 * time.Millisecond},
			Log:   slog.New(slog.DiscardHandler),
		})
		is.NoErr(s.Add(queue.Worker{Kind: "cron", Do: func(_ context.Context, j queue.Job) error {
			done <- j
			return nil
		}}))
		run(t, s)
		_, err := store.Time(t.Context())
		none := errors.Is(err, errors.ErrUnsupported) // SQLite uses the clock of this machine
		is.True(none || err == nil)
		until(t, "a job with the time of the database", func() bool {
			put(t, s, queue.Job{Tenant: "acme", Kind: "cron"})
			return time.Since((<-done).CreatedAt) > 300*24*time.Hour == !none
		})
	})
}

// clockedStore is a Store whose database has a different time.
type clockedStore struct {
	*bunstore.Store
	by time.Duration
}

func (s *clockedStore) Time(ctx context.Context) (time.Time, error) {
	at, err := s.Store.Time(ctx)
	return at.Add(s.by), err
}
