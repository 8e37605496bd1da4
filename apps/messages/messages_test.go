package messages_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/store/messages"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/paging"
)

// fixture is a Service with the users jo and Mia, and the app shop, which jo alone may look into.
type fixture struct {
	*messages.Service
	now   time.Time
	ids   int
	shown []string // in the inboxes
	full  error    // of the inbox
	jobs  []queue.Job
	store messages.Store

	started func(messages.Emitted) error // nil: nothing is started
}

func (f *fixture) DisplayNames(_ context.Context, names []string) (map[string]*string, error) {
	found := map[string]*string{}
	for _, name := range names {
		switch strings.ToLower(name) {
		case "jo":
			found["jo"] = nil
		case "mia":
			found["Mia"] = nil
		}
	}
	return found, nil
}

func (f *fixture) CanonicalName(_ context.Context, name string) (string, error) {
	if strings.EqualFold(name, "mia") {
		return "Mia", nil
	}
	return name, nil
}

func (f *fixture) Deliver(_ context.Context, tenant string, users []string, n comments.Notification) error {
	to := ""
	if n.Path != nil {
		to = *n.Path
	}
	f.shown = append(f.shown, fmt.Sprint(tenant, " ", n.Entity, " ", users, " ", n.Title, " ", n.Body, " ", to))
	return f.full
}

func (f *fixture) CheckInternals(ctx context.Context, id string) (string, error) {
	a, err := actor.From(ctx)
	if err != nil || id != "shop" {
		return "", errs.New(errs.NotFound, "App not found.")
	}
	if a.User != "jo" {
		return "", errs.New(errs.Forbidden, "no")
	}
	return id, nil
}

func (f *fixture) CheckRecords(ctx context.Context, id string) (string, error) {
	return f.CheckInternals(ctx, id)
}

func (f *fixture) Put(_ context.Context, jobs ...queue.Job) error {
	f.jobs = append(f.jobs, jobs...)
	return nil
}

func (f *fixture) Listens(_ context.Context, _, _, event string) (bool, error) {
	return event == "order.paid", nil
}

func (f *fixture) Emitted(_ context.Context, e messages.Emitted) error {
	if f.started == nil {
		return nil
	}
	return f.started(e)
}

func newFixture(t *testing.T, limits messages.Limits) *fixture {
	f := &fixture{now: time.Date(2026, 11, 16, 9, 0, 0, 0, time.UTC)}
	f.store = bunstore.New(dbtest.SQLite(t))
	f.Service = messages.New(messages.Options{
		Store: f.store, Users: f, Inbox: f, Apps: f, Agents: f, Queue: f, Limits: limits,
		Now: func() time.Time { return f.now },
		NewID: func() string {
			f.ids++
			return fmt.Sprintf("01932e00-0000-7000-8000-%012d", f.ids)
		},
	})
	return f
}

func by(t *testing.T, user string) context.Context {
	return actor.With(t.Context(), actor.Actor{Tenant: "acme", User: user})
}

func TestEmit(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	ctx := by(t, "jo")
	e, err := f.Emit(ctx, "shop", "order.paid", json.RawMessage(` {"n": 1} `))
	is.NoErr(err)
	is.Equal(e.State, messages.Pending)
	is.Equal(string(e.Payload), `{"n": 1}`)
	got, err := f.Event(ctx, "shop", strings.ToUpper(e.ID))
	is.NoErr(err)
	is.Equal(got, e)
	e, err = f.Emit(ctx, "shop", "viewed", nil)
	is.NoErr(err)
	is.Equal(e.State, messages.Delivered) // nothing listens
	is.Equal(*e.EndedAt, f.now)
	is.Equal(string(e.Payload), "null")
	for _, c := range []struct{ name, payload string }{
		{"", `1`}, {"a b", `1`}, {".a", `1`}, {strings.Repeat("a", 129), `1`},
		{"a", `{`}, {"a", `"\u0000"`}, {"a", `"` + strings.Repeat("x", messages.MaxPayload) + `"`}, {"a", "\"\xff\""},
	} {
		_, err := f.Emit(ctx, "shop", c.name, json.RawMessage(c.payload))
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	_, err = f.Emit(t.Context(), "shop", "a", nil)
	is.Equal(errs.CodeOf(err), errs.Unauthenticated)
}

func TestNotify(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	ctx := by(t, "jo")
	all, err := f.Notify(ctx, "shop", []string{"MIA", "jo", "Mia"}, messages.Notification{
		Title: "Paid",
		Body:  "Thanks",
		Path:  "orders/5?x=a:b#top",
		Data:  json.RawMessage(`{"n":5}`),
	})
	is.NoErr(err)
	is.Equal(len(all), 2)
	is.Equal(f.shown, []string{"acme {app shop} [Mia jo] Paid Thanks orders/5?x=a:b#top"})
	m, err := f.Message(ctx, "shop", all[0].ID)
	is.NoErr(err)
	is.Equal(m, all[0])
	is.Equal([]any{m.Recipient, m.State, m.Attempts, *m.UserID}, []any{"Mia", messages.Delivered, 1, "jo"})

	_, err = f.Notify(ctx, "shop", []string{"bob", "jo", "ann"}, messages.Notification{Title: "x"})
	is.Equal(errs.MessageOf(err), "There is no user bob, ann.")
	long := make([]string, messages.MaxRecipients+1)
	for _, c := range []struct {
		to []string
		n  messages.Notification
	}{
		{nil, messages.Notification{Title: "x"}},
		{long, messages.Notification{Title: "x"}}, {[]string{"\x00"}, messages.Notification{Title: "x"}},
		{[]string{"jo"}, messages.Notification{}},
		{[]string{"jo"}, messages.Notification{Title: "a\nb"}},
		{[]string{"jo"}, messages.Notification{Title: strings.Repeat("x", 301)}},
		{[]string{"jo"}, messages.Notification{Title: "x", Body: strings.Repeat("x", messages.MaxBody+1)}},
		{[]string{"jo"}, messages.Notification{Title: "x", Body: "\x00"}},
		{[]string{"jo"}, messages.Notification{Title: "x", Data: json.RawMessage(`{`)}},
	} {
		_, err := f.Notify(ctx, "shop", c.to, c.n)
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	for path, ok := range map[string]bool{
		"": true, "/": true, "orders/5": true, "/orders?a=b": true, "#/a:b": true, "?q=http://x": true, "a..b": true,
		"//evil.example": false, "https://evil.example": false, "javascript:alert(1)": false, "../x": false,
		"a/../../b": false, "a b": false, `\\evil`: false, "a\n": false,
	} {
		_, err := f.Notify(ctx, "shop", []string{"jo"}, messages.Notification{Title: "x", Path: path})
		if (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
	f.full = errs.New(errs.Unavailable, "away")
	before := f.ids
	_, err = f.Notify(ctx, "shop", []string{"jo"}, messages.Notification{Title: "never"})
	is.Equal(err, f.full)
	_, err = f.Message(ctx, "shop", fmt.Sprintf("01932e00-0000-7000-8000-%012d", before+1))
	is.Equal(errs.CodeOf(err), errs.NotFound) // no record of what was not delivered
}

func TestEmail(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	ctx := by(t, "jo")
	all, err := f.Email(ctx, "shop", []string{"Ann <ann@example.com>", "ann@example.com", "bob@example.com"},
		messages.Email{
			Subject: "Paid",
			HTML:    "<b>Thanks</b>",
			From:    `"Shop" <shop@example.com>`,
		})
	is.NoErr(err)
	is.Equal(len(all), 2)
	m, err := f.Message(ctx, "shop", all[1].ID)
	is.NoErr(err)
	is.Equal(m, all[1])
	is.Equal([]any{
		m.Type, m.Recipient, m.Title, *m.HTML, *m.From, m.Body == nil, m.State,
	},
		[]any{
			messages.TypeEmail, "bob@example.com", "Paid", "<b>Thanks</b>", "Shop <shop@example.com>", true,
			messages.Pending,
		})
	for from, want := range map[string]string{
		"":                 "",
		"The Shop, Ltd.":   "The Shop, Ltd.",
		"shop@example.com": "shop@example.com",
		"A <a@b.c>":        "A <a@b.c>",
	} {
		all, err := f.Email(ctx, "shop", []string{"a@b.c"}, messages.Email{Subject: "x", Text: "x", From: from})
		is.NoErr(err)
		if got := all[0].From; got == nil && want != "" || got != nil && *got != want {
			t.Errorf("%q: %v", from, got)
		}
	}
	all, err = f.Email(ctx, "shop", []string{"a@b.c"}, messages.Email{Subject: "Paid"}) // a subject is enough
	is.NoErr(err)
	is.Equal([]any{all[0].Title, all[0].HTML == nil, all[0].Body == nil}, []any{"Paid", true, true})
	text := messages.Email{Subject: "x", Text: "x"}
	for _, c := range []struct {
		to []string
		e  messages.Email
	}{
		{nil, text}, {[]string{"nobody"}, text}, {[]string{"a@b\r\nBcc: c@d"}, text},
		{[]string{"a@b.c, d@e.f"}, text}, {[]string{""}, text}, {[]string{`"a b"@c.d`}, text},
		{[]string{"a@b.c"}, messages.Email{Text: "x"}},
		{[]string{"a@b.c"}, messages.Email{Subject: "a\r\nBcc: x", Text: "x"}},
		{[]string{"a@b.c"}, messages.Email{Subject: "x", HTML: strings.Repeat("x", messages.MaxMail+1)}},
		{[]string{"a@b.c"}, messages.Email{Subject: "x", Text: "x", From: "a@b, c@d"}},
		{[]string{"a@b.c"}, messages.Email{Subject: "x", Text: "x", From: "a\nb"}},
		{[]string{"a@b.c"}, messages.Email{Subject: "x", Text: "x", From: strings.Repeat("x", 101)}},
	} {
		_, err := f.Email(ctx, "shop", c.to, c.e)
		if errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%q %v: %v", c.to, c.e.From, err)
		}
	}
}

// TestLimits: a flood is refused in words, and what has ended, or is older than a day, makes room.
func TestLimits(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{Waiting: 3, Day: 5, Bytes: 1000})
	ctx := by(t, "jo")
	for range 3 {
		_, err := f.Emit(ctx, "shop", "order.paid", nil)
		is.NoErr(err)
	}
	_, err := f.Emit(ctx, "shop", "order.paid", nil)
	is.Equal(errs.CodeOf(err), errs.Busy)
	_, err = f.Emit(ctx, "shop", "viewed", nil) // does not wait
	is.NoErr(err)
	_, err = f.Emit(ctx, "other", "order.paid", nil)
	is.NoErr(err)
	_, err = f.Emit(ctx, "shop", "viewed", json.RawMessage(`"`+strings.Repeat("x", 1000)+`"`))
	is.Equal(errs.CodeOf(err), errs.Busy)

	page, err := f.Events(ctx, "shop", messages.Filter{State: messages.Pending}, paging.Query{Limit: 1})
	is.NoErr(err)
	_, err = f.store.DeliverEvents(ctx, "acme", []string{page.Rows[0].ID}, 1, f.now)
	is.NoErr(err)
	f.now = f.now.Add(time.Second)
	_, err = f.Emit(ctx, "shop", "order.paid", nil) // who would be refused is counted again
	is.NoErr(err)
	_, err = f.Emit(ctx, "shop", "order.paid", nil)
	is.Equal(errs.CodeOf(err), errs.Busy)

	mail := messages.Email{Subject: "x", Text: "x"}
	_, err = f.Email(ctx, "shop", []string{"a@b.c", "b@b.c", "c@b.c", "d@b.c"}, mail)
	is.Equal(errs.CodeOf(err), errs.Busy)
	_, err = f.Email(ctx, "shop", []string{"a@b.c", "b@b.c", "c@b.c"}, mail)
	is.NoErr(err)
	_, err = f.Email(ctx, "shop", []string{"a@b.c"}, mail)
	is.Equal(errs.CodeOf(err), errs.Busy)
	for range 2 {
		_, err = f.Notify(ctx, "shop", []string{"jo"}, messages.Notification{Title: "x"})
		is.NoErr(err)
	}
	_, err = f.Notify(ctx, "shop", []string{"jo"}, messages.Notification{Title: "x"})
	is.Equal(errs.MessageOf(err), "The app has sent 5 messages within 24 hours. No more are accepted today.")
	is.Equal(len(f.shown), 2)
	f.now = f.now.Add(25 * time.Hour)
	_, err = f.Notify(ctx, "shop", []string{"jo"}, messages.Notification{Title: "x"})
	is.NoErr(err)

	f.now = f.now.Add(31 * 24 * time.Hour)
	_, err = f.Unchecked().Hooks().Sweep(ctx, "acme")
	is.NoErr(err)
	dead, all, err := f.Messages(ctx, "shop", messages.Filter{State: messages.Dead}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(all[messages.TypeEmail], map[messages.State]int{messages.Dead: 3})
	is.Equal(dead.Total, 3) // the e-mails that nobody has sent
	f.now = f.now.Add(6 * time.Second)
	_, err = f.Email(ctx, "shop", []string{"a@b.c"}, mail)
	is.NoErr(err)
}

func TestReading(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	_, _, err := f.Messages(by(t, "mia"), "shop", messages.Filter{}, paging.Query{})
	is.Equal(errs.CodeOf(err), errs.Forbidden)
	_, err = f.Events(by(t, "jo"), "none", messages.Filter{}, paging.Query{})
	is.Equal(errs.CodeOf(err), errs.NotFound)
	for _, filter := range []messages.Filter{{State: "sent"}, {Type: "sms"}} {
		_, _, err := f.Messages(by(t, "jo"), "shop", filter, paging.Query{})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	for _, id := range []string{"x", "01932e00-0000-7000-8000-000000000099"} {
		_, err := f.Message(by(t, "jo"), "shop", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = f.Event(by(t, "jo"), "shop", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
}

// TestFunctions: what handlers call, and what they get.
func TestFunctions(t *testing.T) {
	f := newFixture(t, messages.Limits{})
	functions := f.Functions("shop")
	for _, c := range []struct{ name, args, want string }{
		{
			"emit", `["order.paid",{"n":1}]`,
			`{"id":"01932e00-0000-7000-8000-000000000001","appId":"shop","name":"order.paid","payload":{"n":1},"state":"pending","createdAt":"2026-11-16T09:00:00.000Z"}`,
		},
		{
			"emit", `["viewed"]`,
			`{"id":"01932e00-0000-7000-8000-000000000002","appId":"shop","name":"viewed","payload":null,"state":"delivered","createdAt":"2026-11-16T09:00:00.000Z"}`,
		},
		{"notify", `["jo",{"title":"x"}]`, `{"id":"01932e00-0000-7000-8000-000000000003"}`},
		{
			"notify", `[["jo","mia"],{"title":"x","body":"y","path":"z","data":null}]`,
			`{"ids":["01932e00-0000-7000-8000-000000000004","01932e00-0000-7000-8000-000000000005"],"queued":2}`,
		},
		{"email", `["a@b.c",{"subject":"x","html":"y"}]`, `{"id":"01932e00-0000-7000-8000-000000000006"}`},
		{"emit", `[5]`, "invalid: emit: the name of the event must be a string"},
		{"notify", `[]`, "invalid: notify: the first argument must be a string or a list of strings with at least one"},
		{
			"notify", `[[],{}]`,
			"invalid: notify: the first argument must be a string or a list of strings with at least one",
		},
		{
			"notify", `[[1],{}]`,
			"invalid: notify: the first argument must be a string or a list of strings with at least one",
		},
		{"notify", `["jo"]`, "invalid: notify: the second argument must be an object"},
		{"notify", `["jo",{"title":5}]`, "invalid: notify: title must be a string"},
		{"notify", `["jo",{"titel":"x"}]`, `invalid: notify: unknown field "titel"`},
		{"email", `["a@b.c",{"subject":"x","html":["y"]}]`, "invalid: email: html must be a string"},
		{"email", `["a@b.c",{},1]`, "invalid: email takes 2 arguments at most, not 3"},
	} {
		got, err := functions[c.name](by(t, "jo"), json.RawMessage(c.args))
		if err != nil {
			got = json.RawMessage(string(errs.CodeOf(err)) + ": " + errs.MessageOf(err))
		}
		if string(got) != c.want {
			t.Errorf("%s%s: %s, want %s", c.name, c.args, got, c.want)
		}
	}
}

// TestUnsent: what is not sent is checked, told, and not stored.
func TestUnsent(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	functions, ctx := f.Functions("shop"), messages.WithCall(by(t, "jo"), messages.Call{Unsent: true})
	got, err := functions["notify"](ctx, json.RawMessage(`["jo",{"title":"x","body":"y","data":{"n":1}}]`))
	is.NoErr(err)
	is.Equal(
		string(got),
		`{"id":"01932e00-0000-7000-8000-000000000001","unsent":["notify sends nothing in a draft without `+
			`?send=true: {\"to\":\"jo\",\"title\":\"x\",\"body\":\"y\",\"data\":{\"n\":1}}"]}`,
	)
	got, err = functions["email"](ctx, json.RawMessage(`[["a@b.c"],{"subject":"x","html":"y","from":"Z"}]`))
	is.NoErr(err)
	is.Equal(
		string(got),
		`{"ids":["01932e00-0000-7000-8000-000000000002"],"queued":1,"unsent":["email sends nothing in a draft `+
			`without ?send=true: {\"to\":\"a@b.c\",\"from\":\"Z\",\"title\":\"x\",\"html\":\"y\"}"]}`,
	)
	_, err = functions["email"](ctx, json.RawMessage(`["a",{"subject":"x"}]`))
	is.Equal(errs.CodeOf(err), errs.Invalid)
	page, _, err := f.Messages(by(t, "jo"), "shop", messages.Filter{}, paging.Query{})
	is.NoErr(err)
	is.Equal(page.Total, 0)
	is.Equal(len(f.shown)+len(f.jobs), 0)
}

// TestRepeatedCall: what a tool emits and sends once more with the same key is there once; and
// agents and events end that start each other.
func TestRepeatedCall(t *testing.T) {
	is, f := is.New(t), newFixture(t, messages.Limits{})
	var events, told, mailed []string
	for _, key := range []string{"run-2/a/1", "run-2/a/1", "run-2/b/1"} {
		ctx := messages.WithCall(by(t, "jo"), messages.Call{Depth: messages.MaxDepth, Key: key})
		e, err := f.Emit(ctx, "shop", "order.paid", nil)
		is.NoErr(err)
		is.Equal(e.Depth, messages.MaxDepth)
		all, err := f.Notify(ctx, "shop", []string{"jo", "mia"}, messages.Notification{Title: "Paid"})
		is.NoErr(err)
		events, told = append(events, e.ID), append(told, all[0].ID, all[1].ID)
		ctx = messages.WithCall(ctx, messages.Call{Key: key + "/email"})
		all, err = f.Email(ctx, "shop", []string{"ann@example.com"}, messages.Email{Subject: "Paid"})
		is.NoErr(err)
		mailed = append(mailed, all[0].ID)
	}
	is.Equal([]bool{
		events[0] == events[1], events[1] == events[2], told[0] == told[2], told[0] == told[1],
		told[2] == told[4], mailed[0] == mailed[1], mailed[1] == mailed[2],
	},
		[]bool{true, false, true, false, false, true, false})
	is.Equal(len(f.shown), 2)
	page, err := f.Events(by(t, "jo"), "shop", messages.Filter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(page.Total, 2)
	sent, _, err := f.Messages(by(t, "jo"), "shop", messages.Filter{}, paging.Query{Limit: 10})
	is.NoErr(err)
	is.Equal(sent.Total, 6)

	deep := messages.WithCall(by(t, "jo"), messages.Call{Depth: messages.MaxDepth + 1, Key: "run-3/a/1"})
	_, err = f.Emit(deep, "shop", "order.paid", nil)
	is.Equal(errs.CodeOf(err), errs.Invalid)
	_, err = f.Emit(deep, "shop", "viewed", nil) // starts nothing
	is.NoErr(err)
}
