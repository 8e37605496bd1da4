// Package confirmations asks people whether calls of a language model's tools may be done. A
// conversation waits while the person decides, perhaps with a request to another server: what waits
// is a row, which the conversation looks up now and then, and removes.
//
// Package assistants has a name for its Service; internal/store/confirmations stores the rows.
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

// The defaults of Options, and the bounds that all have.
const (
	DefaultLifetime = 10 * time.Minute
	DefaultPoll     = 300 * time.Millisecond
	MaxWaiting      = 16   // at once, of one person; about so many where several servers add some at the same time
	MaxOfTenant     = 128  // at once, of one tenant on one server
	maxOfAll        = 1024 // at once, on one server

	slack    = time.Hour       // how long a row stays at least after it has expired: clocks differ
	takeTime = 5 * time.Second // to remove the row of a conversation that has ended
)

// Decision is what a person has decided.
type Decision string

// The decisions.
const (
	Undecided Decision = ""
	Approved  Decision = "approved"
	Declined  Decision = "declined"
)

// Confirmation is a question that a person can answer once, until it expires.
type Confirmation struct {
	ID        string // random: who does not know it cannot answer
	Assistant string // UUID of the assistant that the person talks to
	Asked     string // digest of who is asked: see Service.Ask
	Decision  Decision
	ExpiresAt time.Time // UTC, whole microseconds
}

// Store keeps confirmations. The tests beside its bun-backed store define what every implementation
// must do.
type Store interface {
	// Add adds a confirmation. It returns errs.Busy if most others of the same person wait that
	// expire after at.
	Add(ctx context.Context, tenant string, c Confirmation, most int, at time.Time) error
	// Decide sets the Decision of the confirmation that has the ID, Assistant and Asked of c. It
	// returns errs.NotFound if no such confirmation is undecided and expires after at.
	Decide(ctx context.Context, tenant string, c Confirmation, at time.Time) error
	// Decision returns the decision. It returns errs.NotFound if there is no such confirmation.
	Decision(ctx context.Context, tenant, id string) (Decision, error)
	// Take removes a confirmation and returns its decision. It returns errs.NotFound if there is no
	// such confirmation.
	Take(ctx context.Context, tenant, id string) (Decision, error)
	// Sweep removes the confirmations that expired before a time, and returns their number.
	Sweep(ctx context.Context, tenant string, before time.Time) (int, error)
}

// Options configure a Service. Store is required.
type Options struct {
	Store    Store
	Lifetime time.Duration    // how long a person can decide; default DefaultLifetime
	Poll     time.Duration    // how often a decision is looked for; default DefaultPoll
	Feed     *entity.Changes  // nil: nobody listens
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

// Ask asks a person of the caller's tenant who talks to an assistant, and waits for the decision.
// show shows the question to the person. who identifies the person, as in Decide. If there is no
// decision in time, Ask returns false. If ctx ends first, it returns the cause of that. Errors:
// errs.Busy if too many questions to the person, or in the tenant, wait; those of show.
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
	// what it returns is the decision: a later one finds no row
	decision, takeErr := s.o.Store.Take(taking, a.Tenant, c.ID)
	switch {
	case err != nil:
		return false, err
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errs.CodeOf(takeErr) == errs.NotFound: // with its tenant, or swept
		return false, nil
	}
	return decision == Approved, takeErr
}

// wait returns when a confirmation is decided, over or gone, or ctx ends. While the database cannot
// be asked, it goes on.
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

// Decide decides a question to a person of the caller's tenant, once. Errors: errs.NotFound for one
// that there is not: another person's, of another assistant, one that is decided, or over.
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

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns what is done with confirmations: Sweep removes those whose conversation has ended
// without it, when its server was killed.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{Due: []entity.Due{{Table: "tc_confirmations", Column: "expires_at", Age: slack}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return u.s.o.Store.Sweep(ctx, tenant, u.s.clock.Stamp().Add(-slack))
		}}
}

// digest keeps names out of the table, so that renaming users need not reach it.
func digest(who string) string {
	sum := sha256.Sum256([]byte(who))
	return hex.EncodeToString(sum[:])
}
