package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// Workers returns what does runs. Without a language model they wait for a node that has one.
func (u Unchecked) Workers() []Worker {
	s := u.s
	return []Worker{{
		Kind: JobRun, Off: ai.Configured(s.o.Provider) != nil, Tries: tries,
		AtOnce: s.in.o.Limits.AtOnce, PerTenant: s.in.o.Limits.Tenant, Timeout: tryTime, Backoff: backoff,
		Do: s.do, Dead: s.dead, Requeued: s.requeued,
	}}
}

// A run is tried so often, and each try lasts so long at most.
const (
	tries   = 5
	tryTime = 30 * time.Minute
)

// backoff returns the pause after a failed try: about 15 seconds, then 1, 4 and 16 minutes.
func backoff(tries int) time.Duration {
	d := 15 * time.Second << (2 * min(max(tries-1, 0), 3))
	return d*3/4 + rand.N(d/2)
}

// errEnded is why the work on a run stops that somebody has ended.
var errEnded = errors.New("the run has ended")

// refusal is an error of what does not let an agent run at all: its failure starts no other agent.
type refusal struct{ error }

// Unwrap returns the cause.
func (r refusal) Unwrap() error { return r.error }

// do works on a run. A run of a schedule need not have a row yet.
func (s *Service) do(ctx context.Context, j Job) error {
	run, err := s.begin(ctx, j)
	if errs.CodeOf(err) == errs.NotFound || err == nil && run.ID == "" {
		return nil // it is gone, or has ended
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.running[run.ID] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, run.ID)
	}()
	watching, endWatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.watch(watching, run, cancel) })
	failure := s.converse(ctx, run)
	endWatch()
	watch.Wait()
	switch {
	case failure == nil:
		return nil
	case errors.Is(failure, errEnded) || errors.Is(context.Cause(ctx), errEnded):
		return nil
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		failure = errs.New(errs.Unavailable, "The try has taken longer than %v.", tryTime)
	case ctx.Err() != nil:
		return context.Cause(ctx) // the node stops, or has lost the lease
	}
	return s.settle(ctx, run, failure)
}

// endedEach is how often a node looks whether a run that it works on was ended through another
// node.
const endedEach = 3 * time.Second

// watch ends the work on a run that was ended through another node, or is gone with its app.
func (s *Service) watch(ctx context.Context, run Run, cancel context.CancelCauseFunc) {
	for range clock.Each(ctx, endedEach) {
		if now, err := s.store.AnyRun(ctx, run.Tenant, run.ID); err == nil && now.State.Ended() ||
			errs.CodeOf(err) == errs.NotFound {
			cancel(errEnded)
			return
		}
	}
}

// settle stores that a try has failed. It does not change a run that another node has, or that has
// ended meanwhile.
func (s *Service) settle(ctx context.Context, run Run, failure error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	why := sentence(failure)
	run.Progress.State, run.Error = Failed, &why
	err := s.store.Settle(ctx, run.Tenant, run.ID, run.Lease, run.Progress, s.clock.Stamp())
	if errs.CodeOf(err) == errs.Conflict {
		return nil
	}
	if err != nil {
		return err
	}
	var never refusal
	if code := errs.CodeOf(failure); code == errs.Invalid || code == errs.TooLarge || errors.As(failure, &never) {
		return queue.GiveUp(failure)
	}
	return failure
}

// sentence returns an error as people see it.
func sentence(err error) string {
	return escapes.Cut(cmp.Or(errs.MessageOf(err), "The service failed; its log has the reason."), maxError)
}

// begin returns the run of a job with the lease of the job. A job of a schedule makes its run,
// unless the agent is disabled or gone, or works on another run of a schedule. It returns the zero
// Run or errs.NotFound if the job needs no work.
func (s *Service) begin(ctx context.Context, j Job) (Run, error) {
	run, err := s.store.Begin(ctx, j.Tenant, j.ID, j.Lease, j.Tries, s.clock.Stamp())
	if errs.CodeOf(err) != errs.NotFound || string(j.Payload) == "null" {
		return run, err
	}
	if _, err := s.store.AnyRun(ctx, j.Tenant, j.ID); errs.CodeOf(err) != errs.NotFound {
		return Run{}, err // it has ended
	}
	var of tick
	if err := json.Unmarshal(j.Payload, &of); err != nil {
		return Run{}, err
	}
	agent, err := s.store.Agent(ctx, j.Tenant, of.App, of.Agent)
	if err != nil || !agent.Settings().Enabled {
		return Run{}, err
	}
	if _, err := s.o.App(ctx, j.Tenant, of.App); err != nil {
		return Run{}, err
	}
	if busy, err := s.store.Unfinished(ctx, j.Tenant, of.App, of.Agent, ByCron); err != nil || busy {
		return Run{}, err
	}
	run = s.in.newRun(Run{Tenant: j.Tenant, ID: j.ID, App: of.App, Agent: of.Agent, Trigger: ByCron})
	if err := s.store.InsertRun(ctx, j.Tenant, run); err != nil {
		return Run{}, err
	}
	return s.store.Begin(ctx, j.Tenant, j.ID, j.Lease, j.Tries, s.clock.Stamp())
}

// dead ends a run whose last try has failed, and starts the agent that its own one names for that,
// in the transaction in which its job becomes dead.
func (s *Service) dead(ctx context.Context, j Job, cause error) error {
	run, err := s.store.AnyRun(ctx, j.Tenant, j.ID)
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	why := sentence(cause)
	ended, err := s.end(ctx, run, Dead, why)
	var never refusal
	if err != nil || !ended || errors.As(cause, &never) {
		return err
	}
	return s.failed(ctx, run, why)
}

func (s *Service) requeued(ctx context.Context, j Job) error {
	err := s.store.Reopen(ctx, j.Tenant, j.ID, s.clock.Stamp())
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// owner returns the actor that the agents of an app run as. It returns a refusal if that is nobody,
// or may not use AI.
func (s *Service) owner(ctx context.Context, run Run, app App) (actor.Actor, error) {
	on, err := s.o.Enabled(ctx, run.Tenant)
	if err != nil {
		return actor.Actor{}, err
	}
	if !on {
		return actor.Actor{}, refusal{errOff}
	}
	who, err := s.o.Owner(ctx, run.Tenant, app.Owner)
	switch code := errs.CodeOf(err); {
	case code == errs.NotFound || code == errs.Unauthenticated:
		return who, refusal{errs.New(
			errs.Conflict,
			"The owner of the app is disabled or gone, or has not deployed it since somebody else passed it on, "+
				"and its agents run as its owner.",
		)}
	case err != nil:
		return who, err
	case !who.AI && !who.Superuser:
		return who, refusal{errs.New(
			errs.Forbidden, "The owner of the app needs the ai credential: its agents run as its owner.",
		)}
	}
	return who, nil
}
