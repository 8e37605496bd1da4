package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/limiter"
)

// How many logins are under way at once, whether they wait for their password to be hashed or for their refusal. More are
// refused before anything is looked up, so that this tells nothing of who exists.
const (
	maxPending     = 4096
	maxPendingFrom = 2560 // from one client network
	maxPendingAt   = 1280 // of these, at one tenant: a thousand people of an office
)

// pause waits, or until nobody is there to be told any more.
func pause(ctx context.Context, d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	select {
	case <-end.C:
	case <-ctx.Done():
	}
}

// knownTenants are the ids of all tenants, read again now and then: a login at an unknown tenant costs no statement.
type knownTenants struct {
	tenants Tenants
	now     func() time.Time
	reading *limiter.Limiter // who reads them again

	mu   sync.Mutex
	ids  map[string]bool
	at   time.Time // by the service's clock
	read time.Time // by the machine's: a new tenant is there at once, also where the service's stands still
}

func newKnownTenants(t Tenants, now func() time.Time) *knownTenants {
	return &knownTenants{tenants: t, now: now, reading: limiter.New(limiter.Options{Capacity: 1, Timeout: maxReading})}
}

const (
	freshFor   = time.Second           // a tenant that is removed is known for so long
	missFor    = 10 * time.Millisecond // a new one is unknown for so long
	maxReading = 5 * time.Second       // how long a login waits for another one that reads them
)

// has reports whether there is a tenant. Errors: errs.Unavailable.
func (k *knownTenants) has(ctx context.Context, tenant string) (bool, error) {
	if known, fresh := k.kept(tenant); fresh {
		return known, nil
	}
	leave, err := k.reading.Acquire(ctx, 1)
	if err != nil {
		return false, limiter.Unavailable(err, "The database is too slow at the moment. Try again.")
	}
	defer leave()
	if known, fresh := k.kept(tenant); fresh {
		return known, nil
	}
	all, err := k.tenants.IDs(ctx)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids, k.at, k.read = make(map[string]bool, len(all)), k.now(), time.Now()
	for _, id := range all {
		k.ids[id] = true
	}
	return k.ids[tenant], nil
}

func (k *knownTenants) kept(tenant string) (known, fresh bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known = k.ids[tenant]; known {
		return true, k.now().Sub(k.at) < freshFor
	}
	return false, k.ids != nil && time.Since(k.read) < missFor
}
