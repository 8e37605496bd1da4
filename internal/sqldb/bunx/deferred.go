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

// Deferred has the writes of logins that have not waited for the writer of a SQLite database: in
// memory, and in order. They are written before any other transaction begins, so whatever it
// deletes, the rows of these writes are there. A process that is killed loses them.
//
// database hands a new one to the driver of each SQLite pool.
type Deferred struct {
	mu      sync.Mutex
	all     []*DeferredWrite
	byKey   map[string][]*DeferredWrite
	tenants map[string]int
	round   uint64               // grows when writes are removed from all
	failed  map[string]time.Time // when a write of a group was dropped

	// deciding is held while one write is decided on or, if it need not be deferred, from its
	// beginning to its commit: each finds those before it.
	deciding sync.Mutex
}

// maxDeferred is how many writes are deferred at most. A login has two or three. Those of a tenant
// are at most a third of the places that are left: 2,048 if it is alone, and fewer the more others
// have, so that there is always room for one more tenant.
const maxDeferred = 8192

// failedFor is how long it is known that a write of a group was dropped: longer than a login takes
// from its first write to its last.
const failedFor = 5 * time.Minute

// DeferredWrite is one of the writes.
type DeferredWrite struct {
	Key     string // what FindDeferred finds it by, together with the tenant
	Value   any    // what it writes, for those who look for it before it is written
	Dropped func() // is called if it is dropped because it fails, or another one of its group; nil: nothing

	// Group is that of the write, "" for none. When a write is dropped, those of its group that
	// were deferred after it are, too.
	Group string

	tenant string
	run    func(ctx context.Context) error
	state  writeState
}

// Soon is a write of WriteSoon.
type Soon struct {
	// Run is the write. It may run after WriteSoon has returned, when what it finds may be
	// something else than what Decide has found. Its error then drops the write.
	Run func(ctx context.Context, c Conn) error
	// Decide finds out from what is stored, and from what is deferred, what Run will do, and
	// returns how the write is found until it is written. It is called by one caller at a time.
	Decide func(ctx context.Context) (DeferredWrite, error)
	// After is the group of writes on which this one depends, "" for none, and Since when what
	// leads to it began: it is refused with errs.Conflict if one of them was dropped since.
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

// Brief returns a context whose transactions wait for other writers for a moment at most.
func Brief(ctx context.Context) context.Context { return context.WithValue(ctx, briefKey{}, true) }

// IsBrief reports whether the transaction that begins with a context waits for other writers for a
// moment at most. database hands it to the driver.
func IsBrief(ctx context.Context) bool { return ctx.Value(briefKey{}) != nil }

// deferredOf returns the deferred writes of a pool, nil for one whose writers do not wait for each
// other.
func deferredOf(db *bun.DB) *Deferred {
	if d, ok := db.Driver().(interface{ Attached() any }); ok {
		list, _ := d.Attached().(*Deferred)
		return list
	}
	return nil
}

// WriteSoon is Write for a write that must not wait: if the writer of a SQLite database is not
// free, it is deferred, and WriteSoon returns what Decide returns. Other databases write it at
// once. Errors: errs.Unavailable if too many writes are deferred.
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
	if d.full(tenant) { // before Decide, whose errors would tell who exists
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

// writeNow runs a write if the writer is free. It reports whether the write is to be deferred
// instead: the writer is not, or others are deferred.
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

// refuses reports whether a write of the same group was dropped since the beginning of this one.
func (d *Deferred) refuses(tenant string, w Soon) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, failed := d.failed[inTenant(tenant, w.After)]
	return failed && w.After != "" && !at.Before(w.Since)
}

// any reports whether there are any; a nil list has none.
func (d *Deferred) any() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.all) > 0
}

// full reports whether a tenant has no place left.
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

// FindDeferred calls read, which reads what is stored, with the values of the deferred writes of a
// tenant with a key, oldest first, that are not stored yet. It calls read again if some of them
// were written meanwhile.
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

// DropDeferred drops the deferred writes of a tenant with a key if the values of all match and
// nobody is writing them, and reports whether it dropped any.
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
// number. The transaction in ctx must have the writer, so that nobody is writing them. They are not
// written if it is rolled back, either; a dry run drops none.
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

// writeSoon writes what was deferred during a transaction that has just ended, unless others have
// the writer, who do so first.
func (d *Deferred) writeSoon(ctx context.Context, db *bun.DB) {
	if ctx.Value(lastKey{}) == nil && d.any() {
		ctx = context.WithValue(context.WithoutCancel(ctx), lastKey{}, true)
		_ = WriteDeferred(Brief(ctx), db) // what fails is written by the next one
	}
}

// take returns the writes, which nobody else writes or drops until done is called. The caller has
// the writer.
func (d *Deferred) take() []*DeferredWrite {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.all {
		w.state = writing
	}
	return slices.Clone(d.all)
}

// done ends what take has begun. Writes that have neither been written nor dropped wait again.
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

// remove removes the writes that were written or dropped. The caller holds mu.
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

// write writes what is deferred with the writer of a transaction that has just begun, commits that,
// and begins the transaction again.
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
			// it is the database's, not the write's
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

// finish sets the results of writes.
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

// savepoint runs fn in a transaction, and undoes it alone when it fails.
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

// LoginsOf returns the group of a user's logins: a session is dropped if an attempt to log in is
// that was deferred before it.
func LoginsOf(username string) string { return "logins of " + username }
