package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) messages.Store) {
	for name, check := range map[string]func(*testing.T, messages.Store){
		"RoundTrip": testRoundTrip, "Pages": testPages, "Search": testSearch, "Usage": testUsage, "Summary": testSummary,
		"People": testPeople, "Apps": testApps,
		"Sweep": testSweep, "FailedTxWritesNone": testFailedTx, "Progress": testProgress,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func event(n int, app string) messages.Event {
	user := "jo"
	return messages.Event{
		Tenant: "acme", ID: id(n), App: app,
		Name: fmt.Sprintf("order.%d", n), Payload: json.RawMessage(`{"n":1}`), UserID: &user, Size: 10,
		CreatedAt: monday, UpdatedAt: monday, Progress: messages.Progress{State: messages.Pending},
	}
}

func message(n int, app string) messages.Message {
	user := "jo"
	return messages.Message{
		Tenant: "acme", ID: id(n), App: app, Type: messages.TypeNotification,
		Recipient: "mia", UserID: &user, Title: fmt.Sprintf("Order %d", n), Size: 100,
		CreatedAt: monday, UpdatedAt: monday, Progress: messages.Progress{State: messages.Pending},
	}
}

// ended returns the progress of a row that has ended.
func ended(at time.Time) messages.Progress {
	why := "why"
	return messages.Progress{State: messages.Delivered, Attempts: 2, Error: &why, EndedAt: &at}
}

func put(t *testing.T, s messages.Store, tenant string, rows ...any) {
	t.Helper()
	for _, row := range rows {
		switch row := row.(type) {
		case messages.Event:
			is.New(t).NoErr(s.InsertEvent(t.Context(), tenant, row))
		case messages.Message:
			is.New(t).NoErr(s.InsertMessages(t.Context(), tenant, []messages.Message{row}))
		}
	}
}

func testRoundTrip(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	text := "ä '; DROP --"
	e := event(1, "shop")
	e.Depth = 2
	e.Payload, e.UpdatedAt, e.Progress = json.RawMessage(`{"a":[1,"ü\n"]}`), tuesday, ended(tuesday)
	fieldtest.Full(t, e)
	m := message(1, "shop")
	m.Body, m.HTML, m.From, m.Path, m.Data, m.UpdatedAt, m.Progress =
		&text, &text, &text, &text, json.RawMessage(`[null]`), tuesday, ended(tuesday)
	fieldtest.Full(t, m)
	put(t, s, "acme", e, m, message(2, "shop"))
	gotEvent, err := s.Event(ctx, "acme", "shop", id(1))
	is.NoErr(err)
	is.Equal(gotEvent, e)
	got, err := s.Message(ctx, "acme", "shop", id(1))
	is.NoErr(err)
	is.Equal(got, m)
	got, err = s.Message(ctx, "acme", "shop", id(2))
	is.NoErr(err)
	is.Equal(got, message(2, "shop"))
	for _, at := range [][3]string{{"evil", "shop", id(1)}, {"acme", "other", id(1)}, {"acme", "shop", id(9)}} {
		_, err := s.Event(ctx, at[0], at[1], at[2])
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Message(ctx, at[0], at[1], at[2])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.NoErr(s.InsertMessages(ctx, "acme", nil))
}

func testPages(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	late, mail := message(3, "shop"), message(4, "shop")
	late.CreatedAt, late.Progress = tuesday, ended(tuesday)
	mail.Type, mail.Recipient = messages.TypeEmail, "Eve@example.com"
	lateEvent := event(3, "shop")
	lateEvent.CreatedAt, lateEvent.Progress = tuesday, ended(tuesday)
	put(
		t, s, "acme", message(1, "shop"), message(2, "other"), late, mail, event(1, "shop"), event(2, "other"),
		lateEvent,
	)
	foreign, foreignEvent := message(7, "shop"), event(7, "shop")
	put(t, s, "evil", foreign, foreignEvent)
	ids := func(f messages.Filter, q paging.Query) (all []string) {
		if q.Limit == 0 {
			q.Limit = 10
		}
		page, err := s.Messages(ctx, "acme", "shop", f, q)
		is.NoErr(err)
		for _, m := range page.Rows {
			all = append(all, m.ID)
		}
		return all
	}
	is.Equal(ids(messages.Filter{}, paging.Query{}), []string{id(3), id(4), id(1)})
	is.Equal(ids(messages.Filter{}, paging.Query{Sort: "createdAt", Limit: 2}), []string{id(1), id(4)})
	is.Equal(ids(messages.Filter{State: messages.Pending}, paging.Query{}), []string{id(4), id(1)})
	is.Equal(ids(messages.Filter{Type: messages.TypeEmail}, paging.Query{}), []string{id(4)})
	is.Equal(ids(messages.Filter{State: messages.Dead}, paging.Query{}), nil)
	is.Equal(ids(messages.Filter{}, paging.Query{Q: "EVE@"}), []string{id(4)})
	is.Equal(ids(messages.Filter{}, paging.Query{Q: "order 3"}), []string{id(3)})
	page, err := s.Events(ctx, "acme", "shop", messages.Filter{}, paging.Query{Limit: 1})
	is.NoErr(err)
	is.Equal(page.Total, 2)
	is.Equal(page.Rows[0].ID, id(3))
	page, err = s.Events(
		ctx, "acme", "shop", messages.Filter{State: messages.Pending}, paging.Query{Limit: 5, Q: "ORDER"},
	)
	is.NoErr(err)
	is.Equal(len(page.Rows), 1)
	_, err = s.Events(ctx, "acme", "shop", messages.Filter{}, paging.Query{Limit: 5, Sort: "name"})
	is.Equal(errs.CodeOf(err), errs.Invalid)
}

func testUsage(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	late, lateEvent := message(2, "shop"), event(2, "shop")
	late.CreatedAt, late.Progress, lateEvent.CreatedAt, lateEvent.Progress =
		tuesday, ended(tuesday), tuesday, ended(tuesday)
	put(t, s, "acme", message(1, "shop"), late, message(3, "other"), event(1, "shop"), lateEvent)
	put(t, s, "evil", message(1, "shop"))
	u, err := s.MessageUsage(ctx, "acme", "shop", tuesday)
	is.NoErr(err)
	is.Equal(u, messages.Usage{Waiting: 1, Day: 1, Bytes: 200})
	u, err = s.EventUsage(ctx, "acme", "shop", monday)
	is.NoErr(err)
	is.Equal(u, messages.Usage{Waiting: 1, Day: 2, Bytes: 20})
	u, err = s.EventUsage(ctx, "acme", "none", monday)
	is.NoErr(err)
	is.Equal(u, messages.Usage{})
}

func testSummary(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	mail, late := message(2, "shop"), message(3, "shop")
	mail.Type, late.Progress = messages.TypeEmail, ended(tuesday)
	put(t, s, "acme", message(1, "shop"), mail, late, message(4, "shop"), message(5, "other"))
	put(t, s, "evil", message(1, "shop"))
	all, err := s.Summary(ctx, "acme", "shop")
	is.NoErr(err)
	is.Equal(all, messages.Summary{
		messages.TypeNotification: {messages.Pending: 2, messages.Delivered: 1},
		messages.TypeEmail:        {messages.Pending: 1},
	})
	all, err = s.Summary(ctx, "acme", "none")
	is.NoErr(err)
	is.Equal(all, messages.Summary{})
}

func testPeople(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	mail := message(2, "shop")
	mail.Type = messages.TypeEmail // to an address that is also a username
	put(t, s, "acme", message(1, "shop"), mail, event(1, "shop"))
	put(t, s, "evil", message(1, "shop"), event(1, "shop"))
	is.NoErr(s.RenameUsers(ctx, "acme", map[string]string{"jo": "joan", "mia": "maria"}))
	check := func(tenant string, n int, recipient, user string) {
		t.Helper()
		m, err := s.Message(ctx, tenant, "shop", id(n))
		is.NoErr(err)
		is.Equal(m.Recipient, recipient)
		if user == "" {
			is.True(m.UserID == nil)
		} else {
			is.Equal(*m.UserID, user)
		}
	}
	check("acme", 1, "maria", "joan")
	check("acme", 2, "mia", "joan")
	check("evil", 1, "mia", "jo")
	e, err := s.Event(ctx, "acme", "shop", id(1))
	is.NoErr(err)
	is.Equal(*e.UserID, "joan")

	is.NoErr(s.ForgetUsers(ctx, "acme", []string{"joan"}))
	check("acme", 1, "maria", "")
	e, err = s.Event(ctx, "acme", "shop", id(1))
	is.NoErr(err)
	is.True(e.UserID == nil)
	is.NoErr(s.ForgetUsers(ctx, "acme", []string{"maria", "mia"}))
	_, err = s.Message(ctx, "acme", "shop", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	check("acme", 2, "mia", "")
	check("evil", 1, "mia", "jo")
}

func testApps(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", message(1, "shop"), message(2, "other"), event(1, "shop"), event(2, "other"))
	put(t, s, "evil", message(1, "shop"), event(1, "shop"))
	is.NoErr(s.DeleteApps(ctx, "acme", []string{"shop", "none"}))
	_, err := s.Message(ctx, "acme", "shop", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Event(ctx, "acme", "shop", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Message(ctx, "acme", "other", id(2))
	is.NoErr(err)
	_, err = s.Event(ctx, "evil", "shop", id(1))
	is.NoErr(err)
}

func testSweep(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 4 {
		m, e := message(n, "shop"), event(n, "shop")
		m.Progress, e.Progress =
			ended(monday.Add(time.Duration(n)*time.Hour)), ended(monday.Add(time.Duration(n)*time.Hour))
		put(t, s, "acme", m, e)
		put(t, s, "evil", m)
	}
	put(t, s, "acme", message(8, "shop"), event(8, "shop"), message(9, "other"))
	left := func(tenant string) (ids []string) {
		page, err := s.Messages(ctx, tenant, "shop", messages.Filter{}, paging.Query{Limit: 10, Sort: "createdAt"})
		is.NoErr(err)
		for _, m := range page.Rows {
			ids = append(ids, m.ID)
		}
		return ids
	}
	n, err := s.Sweep(ctx, "acme", monday.Add(time.Minute), 2)
	is.NoErr(err)
	is.Equal(n, 4) // of each the first, because it is old, and the next, because two are kept
	is.Equal(left("acme"), []string{id(2), id(3), id(8)})
	is.Equal(len(left("evil")), 4)

	n, err = s.Expire(ctx, "acme", monday, tuesday, "late")
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Expire(ctx, "acme", monday.Add(time.Second), tuesday, "late")
	is.NoErr(err)
	is.Equal(n, 3)
	e, err := s.Event(ctx, "acme", "shop", id(8))
	is.NoErr(err)
	is.Equal(e.State, messages.Dead)
	is.Equal(*e.Error, "late")
	is.Equal(*e.EndedAt, tuesday)
	is.Equal(e.UpdatedAt, tuesday)
}

func testFailedTx(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	fault := errors.New("fault")
	is.Equal(s.InTx(ctx, func(ctx context.Context) error {
		if err := s.InsertMessages(ctx, "acme", []messages.Message{message(1, "shop")}); err != nil {
			return err
		}
		if err := s.InsertEvent(ctx, "acme", event(1, "shop")); err != nil {
			return err
		}
		return fault
	}), fault)
	_, err := s.Message(ctx, "acme", "shop", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Event(ctx, "acme", "shop", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testProgress(t *testing.T, s messages.Store) {
	is, ctx := is.New(t), t.Context()
	e, m := event(1, "shop"), message(2, "shop")
	put(t, s, "acme", e, m, message(3, "shop"))
	for _, p := range []messages.Progress{ended(tuesday), {State: messages.Dispatched, Attempts: 1}} {
		is.NoErr(s.SetEvent(ctx, "acme", e.ID, p, tuesday))
		is.NoErr(s.SetMessage(ctx, "acme", m.ID, p, tuesday))
		e.Progress, e.UpdatedAt, m.Progress, m.UpdatedAt = p, tuesday, p, tuesday
		gotEvent, err := s.Event(ctx, "acme", "shop", e.ID)
		is.NoErr(err)
		is.Equal(gotEvent, e)
		gotMessage, err := s.AnyMessage(ctx, "acme", m.ID)
		is.NoErr(err)
		is.Equal(gotMessage, m)
	}
	for _, c := range [][2]string{{"evil", m.ID}, {"acme", id(9)}} {
		is.Equal(errs.CodeOf(s.SetMessage(ctx, c[0], c[1], ended(monday), monday)), errs.NotFound)
		_, err := s.AnyMessage(ctx, c[0], c[1])
		is.Equal(errs.CodeOf(err), errs.NotFound)
		there, err := s.HasMessages(ctx, c[0], []string{c[1]})
		is.NoErr(err)
		is.True(!there)
	}
	there, err := s.HasMessages(ctx, "acme", []string{id(9), m.ID})
	is.NoErr(err)
	is.True(there)
	is.Equal(errs.CodeOf(s.SetEvent(ctx, "evil", e.ID, ended(monday), monday)), errs.NotFound)
	second := event(4, "other")
	put(t, s, "acme", second)
	delivered := messages.Progress{State: messages.Delivered, Attempts: 3, EndedAt: &monday}
	second.Progress, second.UpdatedAt = delivered, monday
	want := []messages.Event{second}
	if e.State != messages.Delivered {
		e.Progress, e.UpdatedAt = delivered, monday
		want = []messages.Event{e, second}
	}
	none, err := s.DeliverEvents(ctx, "evil", []string{e.ID, second.ID}, 3, monday)
	is.NoErr(err)
	is.Equal(len(none), 0)
	all, err := s.DeliverEvents(ctx, "acme", []string{id(9), second.ID, e.ID}, 3, monday)
	is.NoErr(err)
	slices.SortFunc(all, func(a, b messages.Event) int { return strings.Compare(a.ID, b.ID) })
	is.Equal(all, want)
	none, err = s.DeliverEvents(ctx, "acme", []string{second.ID, e.ID}, 3, monday) // they have ended
	is.NoErr(err)
	is.Equal(len(none), 0)
	got, err := s.Event(ctx, "acme", "shop", e.ID)
	is.NoErr(err)
	is.Equal(got, e)
	other, err := s.AnyMessage(ctx, "acme", id(3))
	is.NoErr(err)
	is.Equal(other.Progress, messages.Progress{State: messages.Pending})
}
