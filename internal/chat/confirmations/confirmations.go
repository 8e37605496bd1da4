// Package confirmations asks people whether calls of a language model's tools may be made. A
// conversation waits while the person decides. The decision may arrive at another server, so it is
// written to a row. The conversation polls the row, and removes it.
//
// Package assistants has an alias for Service. Package internal/store/confirmations stores the
// rows.
package confirmations

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// The defaults of Options, and the limits of every Service.
const (
	DefaultLifetime = 10 * time.Minute
	DefaultPoll     = 300 * time.Millisecond
	MaxWaiting      = 16   // at once, per person; slightly more if several servers add some together
	MaxOfTenant     = 128  // at once, per tenant and server
	maxOfAll        = 1024 // at once, per server

	slack    = time.Hour       // the least time that an expired row is kept, because clocks differ
	takeTime = 5 * time.Second // the most time for the removal of a row
)

// Decision is the decision of a person.
type Decision string

// The values of a Decision.
const (
	Undecided Decision = ""
	Approved  Decision = "approved"
	Declined  Decision = "declined"
)

// Confirmation is a question that a person can answer once, until it expires.
type Confirmation struct {
	ID        string // random: only its recipient can decide
	Assistant string // UUID of the assistant that the person talks to
	Asked     string // digest of the person: see Service.Ask
	Decision  Decision
	ExpiresAt time.Time // UTC, whole microseconds
}

// Store stores confirmations. The tests of its bun-backed store define what every implementation
// must do.
type Store interface {
	// Add adds a confirmation. It returns errs.Busy if the same person already has most others
	// that expire after at.
	Add(ctx context.Context, tenant string, c Confirmation, most int, at time.Time) error
	// Decide sets the Decision of the confirmation with the ID, Assistant and Asked of c. It
	// returns errs.NotFound if that does not exist, is decided, or does not expire after at.
	Decide(ctx context.Context, tenant string, c Confirmation, at time.Time) error
	// Decision returns the decision. It returns errs.NotFound if the confirmation does not exist.
	Decision(ctx context.Context, tenant, id string) (Decision, error)
	// Take removes a confirmation and returns its decision. It returns errs.NotFound if the
	// confirmation does not exist.
	Take(ctx context.Context, tenant, id string) (Decision, error)
	// Sweep removes the confirmations that expired before a time. It returns their number.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)
}

// Options configure a Service. Store is required.
type Options struct {
	Store    Store
	Lifetime time.Duration    // how long a person can decide; default DefaultLifetime
	Poll     time.Duration    // how often a decision is looked for; default DefaultPoll
	Feed     *entity.Changes  // nil: changes are not announced
	Now      func() time.Time // default time.Now
}

// Kind is the kind of confirmations in changes.
const Kind entity.Kind = "confirmation"

// Service implements the rules over a Store.
type Service struct {
	o       Options
	clock   clock.Clock
	waiting *limiter.Limiter // by tenant
}

// New returns a Service.
func New(o Options) *Service {
	if o.Lifetime == 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	return &Service{o, clock.New(o.Now, nil), limiter.New(limiter.Options{Capacity: maxOfAll, PerKey: MaxOfTenant})}
}

// Ask asks a person of the caller's tenant, in a conversation with an assistant, and waits for the
// decision. show shows the question to the person, whom who identifies, as in Decide. If the
// person does not decide in time, Ask returns false. If ctx ends first, Ask returns the cause.
// Errors: errs.Busy if too many questions wait for the person, or in the tenant; those of show.
func (s *Service) Ask(
	ctx context.Context, assistant, who string, show func(Confirmation) error,
) (approved bool, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return false, err
	}
	leave, err := s.waiting.Acquire(ctx, 1, a.Tenant)
	if errors.Is(err, limiter.ErrBusy) {
		return false, errs.New(errs.Busy, "Too many calls wait for people to confirm them. Try again later.")
	}
	if err != nil {
		return false, err
	}
	defer leave()
	now := s.clock.Stamp()
	c := Confirmation{ID: rand.Text(), Assistant: assistant, Asked: digest(who), ExpiresAt: now.Add(s.o.Lifetime)}
	of := entity.Subject{Kind: Kind, ID: c.ID, Action: entity.ActionCreate}
	err = s.o.Feed.In(ctx, nil, a.Tenant, of, func(ctx context.Context) error {
		return s.o.Store.Add(ctx, a.Tenant, c, MaxWaiting, now)
	})
	if err != nil {
		return false, err
	}
	if err = show(c); err == nil {
		s.wait(ctx, a.Tenant, c)
	}
	taking, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTime)
	defer cancel()
	// The result of Take is final: Decide does not find the row afterward.
	decision, takeErr := s.o.Store.Take(taking, a.Tenant, c.ID)
	switch {
	case err != nil:
		return false, err
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errs.CodeOf(takeErr) == errs.NotFound: // removed with its tenant, or by Sweep
		return false, nil
	}
	return decision == Approved, takeErr
}

// wait returns when a confirmation is decided, expired or removed, or ctx ends. It ignores errors
// of the database and tries again.
func (s *Service) wait(ctx context.Context, tenant string, c Confirmation) {
	tick := time.NewTicker(s.o.Poll)
	defer tick.Stop()
	for s.clock.Now().Before(c.ExpiresAt) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		decision, err := s.o.Store.Decision(ctx, tenant, c.ID)
		if err == nil && decision != Undecided || errs.CodeOf(err) == errs.NotFound {
			return
		}
	}
}

// Decide decides a question to a person of the caller's tenant. Errors: errs.NotFound if the
// question does not exist, is for another person or assistant, is already decided, or has expired.
func (s *Service) Decide(ctx context.Context, assistant, who, id string, approve bool) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	c := Confirmation{ID: id, Assistant: assistant, Asked: digest(who), Decision: Declined}
	if approve {
		c.Decision = Approved
	}
	of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}
	err = s.o.Feed.In(ctx, nil, a.Tenant, of, func(ctx context.Context) error {
		return s.o.Store.Decide(ctx, a.Tenant, c, s.clock.Stamp())
	})
	if errs.CodeOf(err) == errs.NotFound {
		err = errs.Wrap(
			errs.NotFound, err,
			"Nothing waits for this confirmation: it is decided already, its time is over, or the conversation "+
				"has ended.",
		)
	}
	return err
}

// Unchecked has the methods of a Service that do not check permissions. They do not need an actor
// and accept any tenant. They are for the program that builds the services.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that do not check permissions.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns the hooks of confirmations. Sweep removes those that a killed server could not
// remove.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Due: []entity.Due{{Table: "tc_confirmations", Column: "expires_at", Age: slack}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.o.Store.Sweep(ctx, tenant, u.s.clock.Stamp().Add(-slack))
		}}
}

// digest returns a digest of a person's name. The table has no names, so renaming a user does not
// change it.
func digest(who string) string {
	sum := sha256.Sum256([]byte(who))
	return hex.EncodeToString(sum[:])
}
