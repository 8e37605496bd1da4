package bunx

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Deferred holds the writes of logins that did not wait for the writer of a SQLite database, in
// memory and in order. They are written before any other transaction begins, so their rows exist in
// it. They are lost if the process is killed.
//
// Package sqlite passes a new one to the driver of each SQLite pool.
type Deferred struct {
	mu      sync.Mutex
	all     []*DeferredWrite
	byKey   map[string][]*DeferredWrite
	tenants map[string]int
	round   uint64               // grows when writes are removed from all
	failed  map[string]time.Time // when a write of a group was dropped

	// deciding is held while Decide of one write runs. A write that need not be deferred holds it
	// from its beginning to its commit. So each write finds those before it.
	deciding sync.Mutex
}

// maxDeferred is the most deferred writes. A login has two or three. A tenant may use a third of
// the places that others do not use: 2,048 if no other tenant has any. So there is always room for
// one more tenant.
const maxDeferred = 8192

// failedFor is how long a dropped write of a group is remembered. It is longer than a login takes
// from its first write to its last.
const failedFor = 5 * time.Minute

// DeferredWrite is a write that waits for the writer.
type DeferredWrite struct {
	Key     string // FindDeferred finds the write by it and the tenant
	Value   any    // what is written, for callers of FindDeferred
	Dropped func() // called if the write is dropped because it, or another one of its group, fails; or nil

	// Group is the group of the write, or "". When a write is dropped, writes of its group that
	// were deferred after it are dropped too.
	Group string

	tenant string
	run    func(ctx context.Context) error
	state  writeState
}

// Soon is a write of WriteSoon.
type Soon struct {
	// Run makes the write. It may run after WriteSoon has returned, and the stored rows may then
	// differ from those that Decide read. If it fails, the write is dropped.
	Run func(ctx context.Context, c Conn) error
	// Decide finds out, from what is stored and what is deferred, what Run will do, and returns the
	// deferred write. Calls of Decide do not overlap.
	Decide func(ctx context.Context) (DeferredWrite, error)
	// After is the group of writes on which this one depends, or "". Since is the time at which the
	// reason for this write began. The write is refused with errs.Conflict if a write of the group
	// was dropped since then.
	After string
	Since time.Time
}

type writeState int

const (
	waiting writeState = iota // for the writer
	writing
	written
	dropped
)

type briefKey struct{}

// Brief returns a context whose transactions wait at most a moment for other writers.
func Brief(ctx context.Context) context.Context { return context.WithValue(ctx, briefKey{}, true) }

// IsBrief reports whether a transaction with the context waits at most a moment for other writers.
// Package sqlite passes it to the driver.
func IsBrief(ctx context.Context) bool { return ctx.Value(briefKey{}) != nil }

// deferredOf returns the deferred writes of a pool, or nil for a database other than SQLite.
func deferredOf(db *bun.DB) *Deferred {
	if d, ok := db.Driver().(interface{ Attached() any }); ok {
		list, _ := d.Attached().(*Deferred)
		return list
	}
	return nil
}

// WriteSoon is Write for a write that must not wait. If the writer of a SQLite database is not
// free, the write is deferred, and WriteSoon returns the error of Decide. Other databases make the
// write at once. Errors: errs.Unavailable if too many writes are deferred.
func WriteSoon(ctx context.Context, db *bun.DB, tenant string, w Soon) error {
	d := deferredOf(db)
	if _, c := For(ctx, db, tenant); d == nil || c.inTx {
		return Write(ctx, db, tenant, w.Run)
	}
	if d.refuses(tenant, w) {
		return errs.New(errs.Conflict, "What this depends on was changed meanwhile.")
	}
	if !d.any() {
		if deferred, err := d.writeNow(ctx, db, tenant, w.Run); !deferred {
			return err
		}
	}
	if d.full(tenant) {
		d.writeSoon(ctx, db)
	}
	d.deciding.Lock()
	defer d.deciding.Unlock()
	if d.full(tenant) { // before Decide, whose errors would reveal which users exist
		return errs.New(
			errs.Unavailable,
			"The database is busy with a long change, and too many people have logged in or out meanwhile. Try again.",
		)
	}
	later, err := w.Decide(ctx)
	if err != nil {
		return err
	}
	later.tenant = tenant
	later.run = func(ctx context.Context) error { return Write(ctx, db, tenant, w.Run) }
	d.add(&later)
	return nil
}

// writeNow makes a write if the writer is free. It reports whether the write must be deferred
// instead, because the writer is not free or other writes are deferred.
func (d *Deferred) writeNow(
	ctx context.Context, db *bun.DB, tenant string, run func(context.Context, Conn) error,
) (deferred bool, err error) {
	begun := false
	defer func() { // after the commit, and also when run panics
		if begun {
			d.deciding.Unlock()
		}
	}()
	err = Write(Brief(ctx), db, tenant, func(ctx context.Context, c Conn) error {
		d.deciding.Lock()
		begun = true
		if deferred = d.any(); deferred {
			return nil
		}
		return run(ctx, c)
	})
	if !begun && codes(err).lite&0xff == sqliteBusy {
		deferred = true
	}
	return deferred, err
}

// refuses reports whether a write of the group After was dropped since Since.
func (d *Deferred) refuses(tenant string, w Soon) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, failed := d.failed[inTenant(tenant, w.After)]
	return failed && w.After != "" && !at.Before(w.Since)
}

// any reports whether there are deferred writes. It is false if d is nil.
func (d *Deferred) any() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all) > 0
}

// full reports whether a tenant may defer no more writes.
func (d *Deferred) full(tenant string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 3*d.tenants[tenant] >= maxDeferred-len(d.all)
}

func (d *Deferred) add(w *DeferredWrite) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byKey == nil {
		d.byKey, d.tenants, d.failed = map[string][]*DeferredWrite{}, map[string]int{}, map[string]time.Time{}
	}
	key := inTenant(w.tenant, w.Key)
	d.all, d.byKey[key] = append(d.all, w), append(d.byKey[key], w)
	d.tenants[w.tenant]++
}

// inTenant returns a key or group of a tenant.
func inTenant(tenant, key string) string { return tenant + "\x00" + key }

// FindDeferred calls read, which must read what is stored, with the values of the deferred writes
// of a tenant with a key that are not stored yet, oldest first. It calls read again if some of them
// were written during the call.
func FindDeferred(db *bun.DB, tenant, key string, read func(values []any) error) error {
	d := deferredOf(db)
	if d == nil {
		return read(nil)
	}
	for {
		values, before := d.find(tenant, key)
		err := read(values)
		if len(values) == 0 {
			return err
		}
		if _, after := d.find(tenant, key); before == after {
			return err
		}
	}
}

func (d *Deferred) find(tenant, key string) (values []any, round uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.byKey[inTenant(tenant, key)] {
		values = append(values, w.Value)
	}
	return values, d.round
}

// DropDeferred drops the deferred writes of a tenant with a key if all their values match and they
// are not being written. It reports whether it dropped any.
func DropDeferred(db *bun.DB, tenant, key string, match func(value any) bool) bool {
	d := deferredOf(db)
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	these := d.byKey[inTenant(tenant, key)]
	if len(these) == 0 || slices.ContainsFunc(these, func(w *DeferredWrite) bool {
		return w.state != waiting || !match(w.Value)
	}) {
		return false
	}
	for _, w := range slices.Clone(these) {
		w.state = dropped
	}
	d.remove()
	return true
}

// DropDeferredOf drops the deferred writes of a tenant whose values match, and returns their
// number. The transaction in ctx must have the writer, so that they are not being written. They
// stay dropped if it is rolled back. In a dry run nothing is dropped.
func DropDeferredOf(ctx context.Context, db *bun.DB, tenant string, match func(value any) bool) (n int) {
	d := deferredOf(db)
	if d == nil || IsDryRun(ctx) {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tenants[tenant] == 0 {
		return 0
	}
	for _, w := range d.all {
		if w.tenant == tenant && w.state == waiting && match(w.Value) {
			w.state = dropped
			n++
		}
	}
	d.remove()
	return n
}

// WriteDeferred writes what is deferred. It waits for the writer.
func WriteDeferred(ctx context.Context, db *bun.DB) error {
	if !deferredOf(db).any() {
		return nil
	}
	return InTx(ctx, db, func(context.Context) error { return nil })
}

type lastKey struct{}

// writeSoon makes the writes that were deferred during a transaction that has just ended. It does
// nothing if another transaction has the writer, which makes them first.
func (d *Deferred) writeSoon(ctx context.Context, db *bun.DB) {
	if ctx.Value(lastKey{}) == nil && d.any() {
		ctx = context.WithValue(context.WithoutCancel(ctx), lastKey{}, true)
		_ = WriteDeferred(Brief(ctx), db) // writes that fail are made by the next call
	}
}

// take returns the writes. Until done is called, no other caller makes or drops them. The caller
// must have the writer.
func (d *Deferred) take() []*DeferredWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.all {
		w.state = writing
	}
	return slices.Clone(d.all)
}

// done ends what take began. Writes that were neither made nor dropped wait again.
func (d *Deferred) done() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.all {
		if w.state == writing {
			w.state = waiting
		}
	}
	d.remove()
}

// remove removes the writes that were made or dropped. The caller must hold mu.
func (d *Deferred) remove() {
	gone := func(w *DeferredWrite) bool { return w.state == written || w.state == dropped }
	for _, w := range d.all {
		if !gone(w) {
			continue
		}
		d.round++
		key := inTenant(w.tenant, w.Key)
		if d.byKey[key] = slices.DeleteFunc(d.byKey[key], gone); len(d.byKey[key]) == 0 {
			delete(d.byKey, key)
		}
		if d.tenants[w.tenant]--; d.tenants[w.tenant] == 0 {
			delete(d.tenants, w.tenant)
		}
	}
	d.all = slices.DeleteFunc(d.all, gone)
}

// write makes the deferred writes in a transaction that has just begun, commits it, and begins it
// again.
func (d *Deferred) write(ctx context.Context, r *running) error {
	if !d.any() {
		return nil
	}
	these := d.take()
	defer d.done()
	own := &running{db: r.db, idb: r.idb, tx: r.tx}
	failed, results := map[string]bool{}, make([]writeState, len(these))
	for i, w := range these {
		group := inTenant(w.tenant, w.Group)
		if w.Group != "" && failed[group] {
			results[i] = dropped
			continue
		}
		if err := r.savepoint(ctx, func(ctx context.Context) error {
			return w.run(context.WithValue(ctx, txKey{}, own))
		}); err == nil {
			results[i] = written
		} else if errs.CodeOf(err) == errs.Unavailable || FaultOf(err) != NoFault || ctx.Err() != nil {
			// it is an error of the database, not of the write
			return err
		} else {
			results[i], failed[group] = dropped, true
		}
	}
	if _, err := r.conn().fixed.ExecContext(ctx, "COMMIT"); err != nil {
		return Err(err, "")
	}
	d.finish(these, results)
	own.committed()
	for _, w := range these {
		if w.state == dropped && w.Dropped != nil {
			w.Dropped()
		}
	}
	_, err := r.conn().fixed.ExecContext(ctx, "BEGIN IMMEDIATE")
	return Err(err, "")
}

// finish sets the states of writes.
func (d *Deferred) finish(these []*DeferredWrite, results []writeState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(d.failed, func(_ string, at time.Time) bool { return now.After(at.Add(failedFor)) })
	for i, w := range these {
		if w.state = results[i]; w.state == dropped && w.Group != "" {
			d.failed[inTenant(w.tenant, w.Group)] = now
		}
	}
}

// savepoint runs fn in a transaction, and undoes only fn if it fails.
func (r *running) savepoint(ctx context.Context, fn func(context.Context) error) error {
	if _, err := r.conn().fixed.ExecContext(ctx, "SAVEPOINT deferred"); err != nil {
		return Err(err, "")
	}
	failed := fn(ctx)
	end := "RELEASE deferred"
	if failed != nil {
		end = "ROLLBACK TO deferred; RELEASE deferred"
	}
	if _, err := r.conn().fixed.ExecContext(ctx, end); err != nil {
		return errs.Wrap(errs.Unavailable, err, "The database is not available at the moment. Try again.")
	}
	return failed
}

// LoginsOf returns the group of a user's logins. A session is dropped if an attempt to log in that
// was deferred before it is dropped.
func LoginsOf(username string) string { return "logins of " + username }
