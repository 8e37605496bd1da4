package tenantcontent

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
)

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
