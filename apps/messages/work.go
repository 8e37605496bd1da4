package messages

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// Queue carries out what is put in the transaction in ctx. queue.Service implements it.
type Queue interface {
	Put(ctx context.Context, jobs ...Job) error
}

// Mail is an e-mail to one address, as it leaves.
type Mail struct {
	ID         string // the same for each try to send it
	To         string // an address
	Subject    string
	Text, HTML string // one of them can be ""
	From       string // a name, or a name and an address that answers go to; "" for the server's own
}

// Sender sends e-mails.
type Sender interface {
	// Send hands an e-mail over to a mail server. It returns errs.Invalid if the server refuses
	// this e-mail for good.
	Send(ctx context.Context, m Mail) error
}

// The kinds of jobs.
const (
	JobEmail = "email"
	JobEvent = "event"
)

// tries is how often an e-mail is tried.
const tries = 3

// Workers returns what carries out events and, if there is a Sender, e-mails. Otherwise their jobs
// wait for a node that has one.
func (u Unchecked) Workers() []Worker {
	s := u.s
	return []Worker{
		{
			Kind: JobEmail, Off: s.o.Sender == nil, Tries: tries, Timeout: 2 * time.Minute,
			Backoff: mailBackoff, Do: s.mail, Dead: s.mailDead, Requeued: s.mailRequeued,
		},
		{
			Kind:     JobEvent,
			InTx:     true,
			Batch:    50,
			DoBatch:  s.start,
			Dead:     s.eventDead,
			Requeued: s.eventRequeued,
		},
	}
}

// mailBackoff returns the pause after a failed try: about a minute, then a quarter of an hour.
func mailBackoff(tries int) time.Duration {
	d := time.Minute
	if tries > 1 {
		d = 15 * time.Minute
	}
	return d*3/4 + rand.N(d/2)
}

// mail sends an e-mail. One that is gone with its app, or has been sent, is done.
func (s *Service) mail(ctx context.Context, j Job) error {
	m, err := s.store.AnyMessage(ctx, j.Tenant, j.ID)
	if errs.CodeOf(err) == errs.NotFound || err == nil && m.State.Ended() {
		return nil
	}
	if err != nil {
		return err
	}
	m.State, m.Attempts = Dispatched, j.Tries
	if err := s.store.SetMessage(ctx, j.Tenant, j.ID, m.Progress, s.clock.Stamp()); err != nil {
		return err
	}
	failure := s.o.Sender.Send(ctx, Mail{
		ID:      m.ID,
		To:      m.Recipient,
		Subject: m.Title,
		Text:    text(m.Body),
		HTML:    text(m.HTML),
		From:    text(m.From),
	})
	// it has left, even if the node stops now
	settle, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	now := s.clock.Stamp()
	if failure == nil {
		m.State, m.Error, m.EndedAt = Delivered, nil, &now
		return s.store.SetMessage(settle, j.Tenant, j.ID, m.Progress, now)
	}
	m.State, m.Error = Failed, cause(failure)
	if err := s.store.SetMessage(settle, j.Tenant, j.ID, m.Progress, now); err != nil {
		return err
	}
	if errs.CodeOf(failure) == errs.Invalid {
		return queue.GiveUp(failure)
	}
	return failure
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// cause returns an error as people see it. The database keeps no more than the queue does of it.
func cause(err error) *string {
	message := errs.MessageOf(err)
	if message == "" {
		message = "It could not be carried out."
	}
	return &message
}

func (s *Service) mailDead(ctx context.Context, j Job, failure error) error {
	now := s.clock.Stamp()
	return found(s.store.SetMessage(ctx, j.Tenant, j.ID, Progress{
		State:    Dead,
		Attempts: min(j.Tries, tries),
		Error:    cause(failure),
		EndedAt:  &now,
	}, now))
}

func (s *Service) mailRequeued(ctx context.Context, j Job) error {
	return found(s.store.SetMessage(ctx, j.Tenant, j.ID, Progress{State: Pending}, s.clock.Stamp()))
}

// batch is how many events are delivered with one statement.
const batch = 20

// start starts what events start, in the transaction that removes the jobs. One that is gone with
// its app, or has ended, is done.
func (s *Service) start(ctx context.Context, jobs []Job) (n int, err error) {
	var ids []string
	for n < min(len(jobs), batch) && jobs[n].Tries == jobs[0].Tries {
		ids = append(ids, jobs[n].ID)
		n++
	}
	now := s.clock.Stamp()
	all, err := s.store.DeliverEvents(ctx, jobs[0].Tenant, ids, jobs[0].Tries, now)
	if err != nil {
		return n, err
	}
	slices.SortFunc(all, func(a, b Event) int { return cmp.Compare(slices.Index(ids, a.ID), slices.Index(ids, b.ID)) })
	for _, e := range all {
		err := s.o.Agents.Emitted(ctx, Emitted{
			Tenant:  e.Tenant,
			ID:      e.ID,
			App:     e.App,
			Name:    e.Name,
			Payload: e.Payload,
			Depth:   e.Depth,
		})
		if errs.CodeOf(err) == errs.Busy {
			err = queue.Later(err, min(max(now.Sub(e.CreatedAt), minBusy), maxBusy))
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// The limits of the pause of an event while its agents have no room. The pause is as long
// as the event has waited so far. The event is not lost, and emit fails when too many wait.
const (
	minBusy = 15 * time.Second
	maxBusy = 10 * time.Minute
)

func (s *Service) eventDead(ctx context.Context, j Job, failure error) error {
	now := s.clock.Stamp()
	return found(s.store.SetEvent(
		ctx, j.Tenant, j.ID, Progress{State: Dead, Attempts: j.Tries, Error: cause(failure), EndedAt: &now},
		now,
	))
}

func (s *Service) eventRequeued(ctx context.Context, j Job) error {
	return found(s.store.SetEvent(ctx, j.Tenant, j.ID, Progress{State: Pending}, s.clock.Stamp()))
}

// found is err unless the row is gone, as it is with its app.
func found(err error) error {
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	return err
}
