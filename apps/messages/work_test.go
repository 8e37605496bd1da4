package messages_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/messages"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// post is a Sender that fails as it is told, by recipient.
type post struct {
	mu   sync.Mutex
	sent []messages.Mail
	fail map[string]error
}

func (p *post) Send(_ context.Context, m messages.Mail) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	return p.fail[m.To]
}

// TestCarriedOut: e-mails leave, wait for another try or are dead; events start what they start
// once.
func TestCarriedOut(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, db, started := is.New(t), open(t), map[string]int{}
		f := &fixture{started: func(e messages.Emitted) error {
			if started[e.Name]++; started[e.Name] == 1 {
				return errors.New("not yet")
			}
			return nil
		}}
		q := queue.New(queue.Options{
			Store: queuestore.New(db),
			Log:   slog.New(slog.DiscardHandler),
			Node:  queue.Node{Poll: 20 * time.Millisecond},
		})
		p := &post{
			fail: map[string]error{
				"later@x.example": errs.New(errs.Unavailable, "The mail server is away."),
				"never@x.example": errs.New(errs.Invalid, "No such user."),
			},
		}
		s := messages.New(messages.Options{
			Store: bunstore.New(db), Users: f, Inbox: f, Apps: f, Agents: f, Queue: q, Sender: p,
		})
		is.NoErr(q.Add(s.Unchecked().Workers()...))
		ctx, stop := context.WithCancel(actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"}))
		sent, err := s.Email(
			ctx, "shop", []string{"mia@x.example", "later@x.example", "never@x.example"},
			messages.Email{Subject: "Hi", Text: "Text", HTML: "<p>", From: "Sales"},
		)
		is.NoErr(err)
		e, err := s.Emit(ctx, "shop", "order.paid", nil)
		is.NoErr(err)
		ended := make(chan struct{})
		go func() { q.Run(ctx); close(ended) }()
		state := func(state messages.State, to string) func() bool {
			return func() bool {
				page, _, err := s.Messages(
					actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "jo"}), "shop",
					messages.Filter{State: state}, paging.Query{Limit: 10},
				)
				is.NoErr(err)
				return page.Total == 1 && page.Rows[0].Recipient == to
			}
		}
		wait := func(ok func() bool) {
			t.Helper()
			for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("waited in vain")
				}
			}
		}
		wait(state(messages.Delivered, "mia@x.example"))
		wait(state(messages.Failed, "later@x.example"))
		wait(state(messages.Dead, "never@x.example"))
		wait(func() bool {
			got, err := s.Event(ctx, "shop", e.ID)
			return err == nil && got.State == messages.Delivered
		})
		dead, err := s.Message(ctx, "shop", sent[2].ID)
		is.NoErr(err)
		is.Equal(*dead.Error, "No such user.")
		is.Equal(dead.Attempts, 1)
		is.True(dead.EndedAt != nil)
		later, err := s.Message(ctx, "shop", sent[1].ID)
		is.NoErr(err)
		is.Equal(*later.Error, "The mail server is away.")
		p.mu.Lock()
		is.Equal(len(p.sent), 3)
		for _, m := range p.sent {
			if m.To == "mia@x.example" {
				is.Equal(m, messages.Mail{
					ID:      sent[0].ID,
					To:      "mia@x.example",
					Subject: "Hi",
					Text:    "Text",
					HTML:    "<p>",
					From:    "Sales",
				})
			}
		}
		p.fail = nil
		p.mu.Unlock()
		is.NoErr(q.Requeue(ctx, "acme", sent[2].ID)) // the dead one goes on
		wait(func() bool {
			m, err := s.Message(ctx, "shop", sent[2].ID)
			return err == nil && m.State == messages.Delivered && m.Error == nil
		})
		stop()
		<-ended
		is.Equal(started, map[string]int{"order.paid": 2})
		left, err := q.Jobs(t.Context(), "acme", queue.Filter{})
		is.NoErr(err)
		is.Equal(len(left), 1) // the one that waits
	})
}
