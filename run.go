package tenantcontent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

// Run does the background work until ctx ends: it does the jobs of the queue (see Config.Queue),
// writes log-ins that have waited for others who wrote (on SQLite), the calls of webhooks, the
// counters of API tokens and the views of apps each second and removes what has expired each
// minute. A host that does not call it keeps expired rows, which are not shown, and loses what it
// encrypts beside a Rekey: Run holds the lock that keeps it away (see Lock). It returns nil when
// ctx ends. It ends by itself, with an error, when the secret key is being changed or was changed
// while the lock was lost: the host is to stop then.
func (app *App) Run(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	held := make(chan error, 1)
	go func() {
		held <- app.keepLock(ctx)
		stop()
	}()
	app.work(ctx)
	err = <-held
	app.note("give back the lock of the secret key", app.Unlock())
	return err
}

// work runs the background work on rows. Each part runs in a goroutine of its own.
func (app *App) work(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { app.sweepEachMinute(ctx) })
	running.Go(func() { app.indexOften(ctx) })
	running.Go(func() { app.queue.Run(ctx) })
	for _, t := range app.flushes() {
		running.Go(func() { app.flushEach(ctx, t) })
	}
	running.Wait()
}

// task is a part of the background work.
type task struct {
	name string // for the Observer
	what string // for the log
	each time.Duration
	do   func(ctx context.Context) error
}

// The tasks that are not flushes.
var (
	sweepTask  = task{name: "sweep", what: "remove what has expired"}
	totalsTask = task{name: "totals", what: "add up the totals of lists"}
	indexTask  = task{name: "index", what: "index rows for searches"}
)

// recordsEach is how often the calls of webhooks are written. A program that is killed loses those
// since the last time.
const recordsEach = 400 * time.Millisecond

// flushes returns the tasks that write what was counted in memory.
func (app *App) flushes() []task {
	all := []task{
		{"webhook_calls", "write the calls of webhooks", recordsEach, app.Webhooks.Unchecked().FlushAll},
		{"token_uses", "write the counters of API tokens", time.Second, app.Sessions.Unchecked().FlushAll},
		{
			"deferred_logins", "write the log-ins that have waited for others who wrote", time.Second,
			func(ctx context.Context) error { return bunx.WriteDeferred(ctx, app.db) },
		},
		{"app_views", "write the views of apps", time.Second, app.Apps.Unchecked().FlushAll},
		{"app_calls", "write the calls of apps", time.Second, app.handlers.FlushAll},
	}
	if b, ok := app.workspaces.Bounds(); ok {
		all = append(all, task{
			"workspaces", "measure the SQL databases of apps", cmp.Or(b.Measure, time.Minute), app.workspaces.Measure,
		})
	}
	return all
}

// flushEach does a task repeatedly, for the last time when ctx ends.
func (app *App) flushEach(ctx context.Context, t task) {
	for range clock.Each(ctx, t.each) {
		app.round(ctx, t, t.do)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	app.round(last, t, t.do)
}

func (app *App) sweepEachMinute(ctx context.Context) {
	holder := rand.Text()
	for range clock.Each(ctx, time.Minute) {
		app.round(ctx, sweepTask, func(ctx context.Context) error {
			_, err := app.sweeper.RunAlone(ctx, holder)
			return err
		})
		app.round(ctx, totalsTask, func(ctx context.Context) error {
			_, err := bunx.FoldTotals(ctx, app.db)
			return err
		})
	}
}

// indexOften keeps the indexes of searches. Rows that are not in one yet cost each search a little.
func (app *App) indexOften(ctx context.Context) {
	for range clock.Each(ctx, 20*time.Second) {
		app.round(ctx, indexTask, func(ctx context.Context) error {
			if err := app.indexer.Run(ctx); ctx.Err() == nil {
				return err
			}
			return nil
		})
	}
}

// Sweep removes what has expired, of all tenants that have something, in steps, adds up the totals
// of lists, and indexes long ones for searches. Run does it each minute or more often, in one of
// the processes that share the database.
func (app *App) Sweep(ctx context.Context) error {
	_, err := bunx.FoldTotals(ctx, app.db)
	return errors.Join(err, app.indexer.Run(ctx), app.sweeper.Run(ctx))
}

// round does a task once: it notifies the Observer, and logs a failure. The next round tries again.
func (app *App) round(ctx context.Context, t task, do func(ctx context.Context) error) {
	start := time.Now()
	ctx = entity.Begin(ctx, app.observer, entity.TaskWork, t.name)
	err := do(ctx)
	entity.Observe(ctx, app.observer, entity.Observation{
		Work: entity.TaskWork, Kind: t.name, Outcome: entity.Outcome(bunx.Err(err, "")), Start: start,
	})
	app.note(t.what, err)
}

// note logs a failure of background work.
func (app *App) note(what string, err error) {
	if err != nil && !app.health.Saw(bunx.Err(err, "")) {
		app.log.Warn("background work failed", "work", what, "err", err)
	}
}

// Withdraw makes Ready, and with it /readyz, fail from now on, while requests are served as before.
// A host calls it some seconds before it stops listening, so that load balancers send no more
// requests by then.
func (app *App) Withdraw() { app.withdrawn.Store(true) }

// Drain waits until no request and no job of the queue runs, for at most as long as ctx lasts, and
// returns the cause of ctx if some still do then. From its call on, clients that take or send
// nothing for 2 seconds are cut, and no jobs are begun; jobs that do not end are given back, so
// that other nodes do them. Call it when the server has stopped listening, before its connections
// are closed.
func (app *App) Drain(ctx context.Context) error {
	jobs := make(chan error, 1)
	go func() { jobs <- app.queue.Drain(ctx) }()
	return errors.Join(app.handler.Drain(ctx), <-jobs)
}

// Close ends the children of the program that run scripts. Call it last, after Drain; scripts that
// still run are stopped. They also end with the program.
func (app *App) Close() error { return app.endScripts() }

// Ready fails with errs.Unavailable when the database is away or not migrated to this version, when
// row-level security is on in it and it was not opened for that, and after Withdraw.
func (app *App) Ready(ctx context.Context) error {
	if app.withdrawn.Load() {
		return errs.New(errs.Unavailable, "This server is stopping: send requests to another one.")
	}
	pending, err := migrations.Pending(ctx, app.db)
	if err != nil {
		return err
	}
	switch {
	case len(pending) == 0:
		return app.visibleWithin(ctx, 0)
	case strings.HasPrefix(pending[0], "0001"):
		return errs.New(errs.Unavailable, "The database has no tables yet. Run: tenantcontent migrate")
	}
	return errs.New(errs.Unavailable, "The database lacks the migration %s. Run: tenantcontent migrate", pending[0])
}

// Writable fails, saying why, when nothing can be written: the database can only be read, is full,
// damaged or away, or its file is gone. It writes a row of no tenant, at most once a second.
func (app *App) Writable(ctx context.Context) error { return app.health.Writable(ctx) }

// inUse is the lock that keeps Rekey away while an App runs.
type inUse struct {
	mu      sync.Mutex
	lock    *dblock.Lock // nil while it is not held
	purpose string
}

// Lock marks the secrets of the database as in use by this process until Unlock: Rekey refuses
// meanwhile, and names it by its purpose, such as the address it serves. Then it checks the secret
// key. Run does both for a program that does not call it; one that calls it before it serves starts
// with nothing half done. On PostgreSQL the lock takes one connection of the pool, which must have
// two. Errors: errs.Conflict while Rekey runs; those of CheckKeys.
func (app *App) Lock(ctx context.Context, purpose string) error {
	app.inUse.mu.Lock()
	defer app.inUse.mu.Unlock()
	if app.inUse.lock == nil {
		lock, err := dblock.Share(ctx, app.db, purpose)
		if err != nil {
			return err
		}
		app.inUse.lock, app.inUse.purpose = lock, purpose
	}
	if err := app.CheckKeys(ctx); err != nil { // the key may have been changed while the lock was not held
		return errors.Join(err, app.inUse.release())
	}
	return nil
}

// Unlock ends what Lock began.
func (app *App) Unlock() error {
	app.inUse.mu.Lock()
	defer app.inUse.mu.Unlock()
	return app.inUse.release()
}

func (u *inUse) release() error {
	if u.lock == nil {
		return nil
	}
	lock := u.lock
	u.lock = nil
	return lock.Release()
}

// lockChecks is how often a running program makes sure of its lock, and how long it waits for the
// answer.
const (
	lockChecks = time.Second
	lockAnswer = 5 * time.Second
)

// keepLock holds the lock until ctx ends, and takes it again when it was lost. It returns an error,
// at once, when the secret key was changed meanwhile or is being changed: what this program
// encrypted from then on would be lost.
func (app *App) keepLock(ctx context.Context) error {
	tick := time.NewTicker(lockChecks)
	defer tick.Stop()
	for {
		err := app.holdLock(ctx)
		switch code := errs.CodeOf(err); {
		case ctx.Err() != nil:
			return nil
		case code == errs.Conflict || code == errs.Invalid:
			return err
		}
		app.note("hold the lock of the secret key", err)
		app.checkVisible(ctx)
		app.health.Check(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (app *App) holdLock(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockAnswer)
	defer cancel()
	app.inUse.mu.Lock()
	lock, purpose := app.inUse.lock, app.inUse.purpose
	app.inUse.mu.Unlock()
	if lock != nil {
		if lock.Check(ctx) == nil {
			return nil
		}
		_ = app.Unlock() // its connection is gone
	}
	return app.Lock(ctx, purpose)
}

// visibility is what is known of migrations.Visible.
type visibility struct {
	mu     sync.Mutex // one asks at a time
	at     time.Time
	err    error
	hidden atomic.Pointer[error] // nil while nothing is known to be hidden
}

// visible fails with errs.Unavailable when the database hides its rows from this program, or does
// not keep tenants apart for it though it should (see EnableRowLevelSecurity). It asks at most once
// a second: it is asked before every 401.
func (app *App) visible(ctx context.Context) error { return app.visibleWithin(ctx, time.Second) }

// visibleWithin is visible for an answer that is younger than age.
func (app *App) visibleWithin(ctx context.Context, age time.Duration) error {
	v := &app.visibility
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at.IsZero() || time.Since(v.at) >= age {
		err := migrations.Visible(ctx, app.db)
		if ctx.Err() != nil {
			return v.err
		}
		v.at, v.err = time.Now(), err
		switch {
		case err == nil:
			v.hidden.Store(nil)
		case errors.Is(err, migrations.ErrHidden): // while the database is away, what was known holds
			v.hidden.Store(&err)
		}
	}
	return v.err
}

// hidden returns the last result of visible, from Run, a 401 or Ready, without a query.
func (app *App) hidden() error {
	if err := app.visibility.hidden.Load(); err != nil {
		return *err
	}
	return nil
}

// checkVisible calls visible, as Run does each second.
func (app *App) checkVisible(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lockAnswer)
	defer cancel()
	_ = app.visible(ctx) // hidden has it
}
