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

// The most requests that models process at once.
const (
	MaxAtOnce         = 256
	MaxAtOnceOfTenant = 64
	MaxAtOnceOfUser   = 8
)

// The most time that a request waits for a place. A request that continues a conversation waits
// longer, because the work of its tools would be lost.
const (
	DefaultWait = 5 * time.Second
	longestWait = 2 * time.Minute
)

// Places limits the requests that models process at once: in total, per tenant and per user.
type Places struct {
	in   *limiter.Limiter
	wait time.Duration
}

// NewPlaces returns Places for which a new request waits at most for a duration, such as
// DefaultWait.
func NewPlaces(wait time.Duration) *Places {
	return &Places{wait: wait, in: limiter.New(limiter.Options{
		Capacity:    MaxAtOnce,
		PerKey:      MaxAtOnceOfTenant,
		PerSubkey:   MaxAtOnceOfUser,
		Timeout:     longestWait,
		QueuePerKey: MaxAtOnceOfTenant,
	})}
}

// UserOf returns the ai.Request.User of an actor.
func UserOf(a actor.Actor) string { return ai.Pseudonym(a.Tenant, "user "+a.User) }

// For returns a Provider whose calls take a place of the tenant of the actor in their context, and
// one of the request's user, which is UserOf the actor for a request without User. If group is not
// "", all callers of the tenant with the same group share the places of one user. A call without a
// place in time returns errs.Busy, and is not made.
func (p *Places) For(of ai.Provider, group string) ai.Provider {
	return Around(of, func(ctx context.Context, r Request, do func(context.Context) error) error {
		who, _ := actor.From(ctx) // without an actor, the tenant is ""
		user := cmp.Or(group, r.User)
		if user == "" && who.User != "" {
			user = UserOf(who)
		}
		leave, err := p.take(ctx, r.Continues, who.Tenant, user)
		if err != nil {
			return err
		}
		defer leave()
		return do(ctx)
	})
}

// take waits for a place. leave returns it.
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
