package sessions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
)

// How many logins may be in progress at once, whether they wait for their password to be hashed or
// for their refusal. More are refused before anything is looked up, so that a refusal does not
// reveal who exists.
const (
	maxPending     = 4096
	maxPendingFrom = 2560 // from one client network
	maxPendingAt   = 1280 // of these, at one tenant: a thousand people of an office
)

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}

// knownTenants caches the ids of all tenants, so that logins at unknown tenants share one
// statement: the next reading of the ids.
type knownTenants struct {
	tenants Tenants
	clock   clock.Clock

	mu     sync.Mutex
	ids    map[string]bool
	at     time.Time // when they were read, by the service's clock
	rested time.Time // when the next reading may begin
	last   *reading  // the last one that has begun
	next   *reading  // one that has not begun; nil: no caller waits for one
}

// reading is one reading of all ids, for all who asked before it began.
type reading struct {
	done chan struct{} // closed at its end
	last *reading      // begins after this one has ended
	ids  map[string]bool
	err  error
}

const (
	knownFor   = time.Second            // how long a removed tenant may still be known
	restFactor = 10                     // readings rest so many times as long as the last one took,
	maxRest    = 100 * time.Millisecond // but no longer
	maxReading = 5 * time.Second
)

func newKnownTenants(t Tenants, c clock.Clock) *knownTenants {
	none := &reading{done: make(chan struct{})}
	close(none.done)
	return &knownTenants{tenants: t, clock: c, last: none}
}

// has reports whether there is a tenant. It knows a new tenant at once. Errors: errs.Unavailable.
func (k *knownTenants) has(ctx context.Context, tenant string) (bool, error) {
	k.mu.Lock()
	if k.ids[tenant] && k.clock.Now().Sub(k.at) < knownFor {
		k.mu.Unlock()
		return true, nil
	}
	r := k.next
	if r == nil {
		r = &reading{done: make(chan struct{}), last: k.last}
		k.next = r
		k.mu.Unlock()
		k.read(context.WithoutCancel(ctx), r) // others wait for it when this caller leaves
		return r.ids[tenant], r.err
	}
	k.mu.Unlock()
	select {
	case <-r.done:
		return r.ids[tenant], r.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// read reads the ids for all who wait for r.
func (k *knownTenants) read(ctx context.Context, r *reading) {
	defer close(r.done)
	<-r.last.done
	r.last = nil
	k.mu.Lock()
	rested := k.rested
	k.mu.Unlock()
	time.Sleep(time.Until(rested))
	k.mu.Lock()
	k.last, k.next = r, nil
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, maxReading)
	defer cancel()
	begin, at := time.Now(), k.clock.Now()
	all, err := k.tenants.IDs(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rested = time.Now().Add(min(restFactor*time.Since(begin), maxRest))
	if errors.Is(err, context.DeadlineExceeded) {
		err = errs.Wrap(errs.Unavailable, err, "The database is too slow at the moment. Try again.")
	}
	if err != nil {
		r.err = err
		return
	}
	r.ids = make(map[string]bool, len(all))
	for _, id := range all {
		r.ids[id] = true
	}
	k.ids, k.at = r.ids, at
}
