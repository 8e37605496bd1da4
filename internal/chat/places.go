package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// How many requests models work on at once.
const (
	MaxAtOnce         = 256
	MaxAtOnceOfTenant = 64
	MaxAtOnceOfUser   = 8
)

// How long a request waits for a place. One that continues a conversation waits longer: what its
// tools have done would be lost.
const (
	DefaultWait = 5 * time.Second
	longestWait = 2 * time.Minute
)

// Places bound how many requests models work on at once, in all, of a tenant and of a user.
type Places struct {
	in   *limiter.Limiter
	wait time.Duration
}

// NewPlaces returns Places for which new requests wait for so long, such as DefaultWait.
func NewPlaces(wait time.Duration) *Places {
	return &Places{wait: wait, in: limiter.New(limiter.Options{
		Capacity:    MaxAtOnce,
		PerKey:      MaxAtOnceOfTenant,
		PerSubkey:   MaxAtOnceOfUser,
		Timeout:     longestWait,
		QueuePerKey: MaxAtOnceOfTenant,
	})}
}

// For returns a Provider each of whose calls has a place: one of the tenant of the actor in its
// context, and of the user that the request names or, if group is not "", of all callers of the
// tenant with this group together. A call that gets none in time is refused with errs.Busy, and
// nothing has been done for it.
func (p *Places) For(of ai.Provider, group string) ai.Provider {
	return Around(of, func(ctx context.Context, r Request, do func() error) error {
		who, _ := actor.From(ctx) // without one it counts as one of no tenant
		leave, err := p.take(ctx, r.Continues, who.Tenant, cmp.Or(group, r.User))
		if err != nil {
			return err
		}
		defer leave()
		return do()
	})
}

// take waits for a place.
func (p *Places) take(ctx context.Context, continues bool, tenant, user string) (leave func(), err error) {
	if continues {
		leave, err = p.in.Reacquire(ctx, 1, tenant, user)
	} else {
		soon, cancel := context.WithTimeoutCause(ctx, p.wait, limiter.ErrBusy)
		defer cancel()
		leave, err = p.in.Acquire(soon, 1, tenant, user)
	}
	if errors.Is(err, limiter.ErrBusy) {
		return nil, errs.New(
			errs.Busy,
			"Too many answers of language models are under way for you or in this tenant. Wait for them, or end one.",
		)
	}
	return leave, err
}
