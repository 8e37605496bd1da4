package webhooks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// JobLater is the kind of jobs that run the handlers of requests that could not run when they came.
const JobLater = "webhook"

// The pauses of a job that finds no place, and how long one may take.
const (
	laterPause = 5 * time.Second
	laterTime  = handlers.MaxTime + time.Minute
)

// laterJob is the payload of a job.
type laterJob struct {
	App string `json:"app"`
	ID  string `json:"id"` // of the invocation
}

// postpone keeps a request whose handler cannot run now and puts the job that runs it. It returns
// what the sender is answered; if the request cannot be kept, it is refused because of cause.
func (s *Service) postpone(
	ctx context.Context, tenant string, e Entry, r handlers.Request, kept bool, cause error,
) (Response, error) {
	err := s.enqueue(ctx, tenant, e.Invocation, r, kept)
	if err != nil {
		if errs.CodeOf(err) != errs.Unavailable {
			s.o.Log.WarnContext(ctx, "a webhook cannot be kept", "tenant", tenant, "app", e.App, "err", err)
		}
		s.refuse(ctx, tenant, e, cause)
		return Response{}, cause
	}
	e.Calls, e.Logs = 1, []Log{{
		s.clock.Stamp().Truncate(time.Millisecond), "info",
		"The handler could not run yet. The request is kept, and it runs as soon as it can.",
	}}
	e.finish(202, 0)
	s.record(ctx, tenant, e)
	body, err := json.Marshal(struct {
		ID string `json:"invocationId"`
	}{e.ID})
	return Response{
		Status:  202,
		Headers: map[string]string{"content-type": "application/json; charset=utf-8"},
		Body:    body,
	}, err
}

func (s *Service) enqueue(ctx context.Context, tenant string, v Invocation, r handlers.Request, kept bool) error {
	if !kept {
		if err := s.keep(ctx, tenant, v, r); err != nil {
			return err
		}
	}
	if err := s.o.Store.Wait(ctx, tenant, v.App, v.ID, s.o.Limits.Kept, s.o.Limits.KeptBytes); err != nil {
		return err
	}
	payload, err := json.Marshal(laterJob{v.App, v.ID})
	if err != nil {
		return err
	}
	if err := s.o.Queue.Put(ctx, Job{Tenant: tenant, Kind: JobLater, Key: v.ID, Payload: payload}); err != nil {
		_ = s.o.Store.Waited(ctx, tenant, v.App, v.ID) // else it waits until it is old
		return err
	}
	return nil
}

// Workers returns what runs the handlers of requests that are kept until they can.
func (u Unchecked) Workers() []Worker {
	return []Worker{{Kind: JobLater, Off: u.s.o.Bind == nil, Do: u.s.runLater, Timeout: laterTime}}
}

// runLater runs the handler of a request as its first call. An error of the handler is in the
// record, and is none of the job's.
func (s *Service) runLater(ctx context.Context, j Job) error {
	var job laterJob
	if err := json.Unmarshal(j.Payload, &job); err != nil {
		return queue.GiveUp(err)
	}
	kept, err := s.o.Store.Kept(ctx, j.Tenant, job.App, job.ID)
	if errs.CodeOf(err) == errs.NotFound { // the app is gone, or it has waited for too long
		return nil
	}
	if err != nil {
		return err
	}
	err = s.runKept(ctx, j.Tenant, kept)
	if err != nil {
		return err
	}
	return s.o.Store.Waited(ctx, j.Tenant, job.App, job.ID)
}

func (s *Service) runKept(ctx context.Context, tenant string, kept Kept) error {
	e := Entry{Invocation: Invocation{ID: kept.ID, App: kept.App, Area: handlers.Webhooks, StartedAt: kept.ReceivedAt}}
	by, in, err := s.again(ctx, tenant, kept, &e)
	if errs.CodeOf(err) == errs.Conflict {
		e.fail(err, 0)
		s.record(ctx, tenant, e)
		return nil
	}
	if err != nil {
		return err
	}
	in.Request.Replay = false // it has not run before
	later := func(cause error) (Response, error) {
		return Response{}, queue.Later(cause, laterPause)
	}
	_, _, err = s.run(ctx, by, Call{postpone: later, counted: true}, e, in, s.clock.Now())
	if errs.CodeOf(err) == errs.Unavailable || ctx.Err() != nil {
		return err // it is tried again
	}
	return nil // recorded
}
