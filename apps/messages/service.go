package messages

import (
	"context"
	"encoding/json"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fields"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

var eventName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)

// Emit adds an event of an app. One that starts nothing is delivered at once. The app is that of a
// handler that runs with the rights of the actor, so nothing else is checked. Errors: errs.Invalid
// naming what is wrong; errs.Busy if the app has too many events that wait, or too many bytes of
// them.
func (s *Service) Emit(ctx context.Context, app, event string, payload json.RawMessage) (Event, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Event{}, err
	}
	if !eventName.MatchString(event) {
		return Event{}, errs.New(
			errs.Invalid,
			"The name of an event has 1 to 128 letters, digits and _ . : - and begins with a letter or digit.",
		)
	}
	if payload, err = fields.JSON("payload", payload, MaxPayload); err != nil {
		return Event{}, err
	}
	if payload == nil {
		payload = json.RawMessage("null")
	}
	now := s.clock.Stamp()
	e := Event{
		Tenant: a.Tenant, ID: s.newID(ctx, 0), App: app,
		Name: event, Payload: payload, UserID: &a.User, Size: len(event) + len(payload),
		CreatedAt: now, UpdatedAt: now, Progress: Progress{State: Pending},
	}
	if was, done, err := s.emitted(ctx, a.Tenant, app, e.ID); done || err != nil {
		return was, err
	}
	e.Depth = callOf(ctx).Depth
	listens, err := s.o.Agents.Listens(ctx, a.Tenant, app, event)
	if err != nil {
		return Event{}, err
	}
	if listens && e.Depth > MaxDepth {
		return Event{}, errs.New(
			errs.Invalid,
			"emit: agents and events have started each other %d deep, and %s would start one more.", MaxDepth,
			event,
		)
	}
	if !listens {
		e.State, e.EndedAt = Delivered, &now
	}
	add := Usage{Bytes: e.Size, Day: 1}
	if listens {
		add.Waiting = 1
	}
	if err := s.events.reserve(ctx, now, a.Tenant, app, add, s.store.EventUsage, func(u Usage) error {
		switch l := s.o.Limits; {
		case u.Waiting > l.Waiting:
			return errs.New(
				errs.Busy,
				"%d events of the app wait to be carried out, and no more can be emitted until some have been.",
				l.Waiting,
			)
		case u.Bytes > l.Bytes:
			return errs.New(
				errs.Busy, "The events of the app have more than %d bytes together. They are kept for 30 days.",
				l.Bytes,
			)
		}
		return nil
	}); err != nil {
		return Event{}, err
	}
	of := entity.Subject{Kind: KindEvent, ID: s.o.Feed.Part(app, e.ID), Action: entity.ActionCreate}
	if !listens {
		return e, s.o.Feed.In(ctx, nil, a.Tenant, of, func(ctx context.Context) error {
			return s.store.InsertEvent(ctx, a.Tenant, e)
		})
	}
	return e, s.o.Feed.In(ctx, s.store.InTx, a.Tenant, of, func(ctx context.Context) error {
		if err := s.store.InsertEvent(ctx, a.Tenant, e); err != nil {
			return err
		}
		return s.o.Queue.Put(ctx, Job{Tenant: a.Tenant, ID: e.ID, Kind: JobEvent})
	})
}

// Notification is what users are notified of.
type Notification struct {
	Title string          `json:"title"`
	Body  string          `json:"body"` // "" for none
	Path  string          `json:"path"` // where it leads to in the app, such as orders/5; "" for none
	Data  json.RawMessage `json:"data"` // nil for none
}

// Notify notifies users: the notifications are among their own at once, and the messages are the
// record of it. It is for handlers, as Emit is.
// Errors: errs.Invalid naming the field, or the users who are not there; errs.Busy if the app has
// sent too much.
func (s *Service) Notify(ctx context.Context, app string, usernames []string, n Notification) ([]Message, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	if err := recipients("username", usernames); err != nil {
		return nil, err
	}
	if err := title("title", n.Title); err != nil {
		return nil, err
	}
	if len(n.Body) > MaxBody || !escapes.Storable(n.Body) {
		return nil, errs.New(errs.Invalid, "body must be text of at most %d bytes", MaxBody)
	}
	if err := path(n.Path); err != nil {
		return nil, err
	}
	if n.Data, err = fields.JSON("data", n.Data, MaxData); err != nil {
		return nil, err
	}
	users, err := s.users(ctx, usernames)
	if err != nil {
		return nil, err
	}
	m := Message{Type: TypeNotification, Title: n.Title, Body: optional(n.Body), Path: optional(n.Path), Data: n.Data}
	all := s.addressed(ctx, a, app, users, m)
	for i := range all {
		all[i].State, all[i].Attempts, all[i].EndedAt = Delivered, 1, &all[i].CreatedAt
	}
	return all, s.send(ctx, a.Tenant, app, all, func(ctx context.Context) error {
		return s.o.Inbox.Deliver(ctx, a.Tenant, users, comments.Notification{
			Title: n.Title, Body: n.Body, Entity: entity.Key{Kind: kindApp, ID: app}, Path: m.Path,
		})
	})
}

// Email is an e-mail. It has Text, HTML, both or neither.
type Email struct {
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html"`
	From    string `json:"from"` // a name, or a name and an address that answers go to; "" for the server's own
}

// Email queues an e-mail for addresses: each gets its own. It leaves from the server's own address
// whatever From is, so that no app can write in the name of others. It is for handlers, as Emit is.
// Errors: errs.Invalid naming the field or address; errs.Busy if the app has sent too much.
func (s *Service) Email(ctx context.Context, app string, addresses []string, e Email) ([]Message, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	if err := recipients("to", addresses); err != nil {
		return nil, err
	}
	if err := title("subject", e.Subject); err != nil {
		return nil, err
	}
	for _, f := range []struct{ field, text string }{{"text", e.Text}, {"html", e.HTML}} {
		if len(f.text) > MaxMail || !escapes.Storable(f.text) {
			return nil, errs.New(errs.Invalid, "%s must be text of at most %d bytes", f.field, MaxMail)
		}
	}
	from, err := sender(e.From)
	if err != nil {
		return nil, err
	}
	to := make([]string, 0, len(addresses))
	for _, address := range addresses {
		clean, err := mailbox(address)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(to, clean) {
			to = append(to, clean)
		}
	}
	m := Message{
		Type:  TypeEmail,
		Title: e.Subject,
		Body:  optional(e.Text),
		HTML:  optional(e.HTML),
		From:  optional(from),
	}
	all := s.addressed(ctx, a, app, to, m)
	return all, s.send(ctx, a.Tenant, app, all, func(ctx context.Context) error {
		jobs := make([]Job, len(all))
		for i, m := range all {
			jobs[i] = Job{Tenant: a.Tenant, ID: m.ID, Kind: JobEmail}
		}
		return s.o.Queue.Put(ctx, jobs...)
	})
}

// addressed returns a message to each recipient.
func (s *Service) addressed(ctx context.Context, a actor.Actor, app string, recipients []string, m Message) []Message {
	now := s.clock.Stamp()
	all := make([]Message, len(recipients))
	for i, to := range recipients {
		m.Tenant, m.ID, m.App, m.Recipient, m.UserID = a.Tenant, s.newID(ctx, i), app, to, &a.User
		m.CreatedAt, m.UpdatedAt, m.Progress = now, now, Progress{State: Pending}
		m.Size = len(to) + len(m.Title) + len(m.Data)
		for _, text := range []*string{m.Body, m.HTML, m.From, m.Path} {
			if text != nil {
				m.Size += len(*text)
			}
		}
		all[i] = m
	}
	return all
}

// send stores messages and does something more with them in the same transaction, unless a call
// with the same key has done so before.
func (s *Service) send(
	ctx context.Context, tenant, app string, all []Message, more func(ctx context.Context) error,
) error {
	if callOf(ctx).Unsent {
		return nil
	}
	if done, err := s.sent(ctx, tenant, all); done || err != nil {
		return err
	}
	add := Usage{Day: len(all)}
	for _, m := range all {
		add.Bytes += m.Size
		if !m.State.Ended() {
			add.Waiting++
		}
	}
	if err := s.messages.reserve(ctx, s.clock.Stamp(), tenant, app, add, s.store.MessageUsage, func(u Usage) error {
		switch l := s.o.Limits; {
		case u.Waiting > l.Waiting:
			return errs.New(
				errs.Busy,
				"%d messages of the app wait to be sent, and no more can be added until some have been.",
				l.Waiting,
			)
		case u.Day > l.Day:
			return errs.New(
				errs.Busy, "The app has sent %d messages within 24 hours. No more are accepted today.", l.Day,
			)
		case u.Bytes > l.Bytes:
			return errs.New(
				errs.Busy,
				"The messages of the app have more than %d bytes together. They are kept for 30 days.", l.Bytes,
			)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.InsertMessages(ctx, tenant, all); err != nil {
			return err
		}
		if s.o.Feed != nil {
			keys := make([]entity.Key, len(all))
			for i, m := range all {
				keys[i] = entity.Key{Kind: KindMessage, ID: s.o.Feed.Part(app, m.ID)}
			}
			if err := s.o.Feed.Each(ctx, tenant, entity.ActionCreate, keys...); err != nil {
				return err
			}
		}
		return more(ctx)
	})
}

// users returns the exact names of users, each once. Errors: errs.Invalid naming those who are not
// there.
func (s *Service) users(ctx context.Context, names []string) ([]string, error) {
	found, err := s.o.Users.DisplayNames(ctx, names)
	if err != nil {
		return nil, err
	}
	var users, unknown []string
	for _, name := range names {
		exact := name
		if _, ok := found[name]; !ok {
			if exact, err = s.o.Users.CanonicalName(ctx, name); err != nil {
				return nil, err
			}
		}
		if _, ok := found[exact]; !ok {
			unknown = append(unknown, name)
		} else if !slices.Contains(users, exact) {
			users = append(users, exact)
		}
	}
	if len(unknown) > 0 {
		return nil, errs.New(errs.Invalid, "There is no user %s.", strings.Join(unknown, ", "))
	}
	return users, nil
}

func recipients(field string, all []string) error {
	if len(all) == 0 || len(all) > MaxRecipients {
		return errs.New(errs.Invalid, "%s must be one or up to %d", field, MaxRecipients)
	}
	for _, to := range all {
		if !escapes.Storable(to) || len(to) > 320 {
			return errs.New(errs.Invalid, "%s must be text of at most 320 bytes", field)
		}
	}
	return nil
}

// title checks a line of text.
func title(field, s string) error {
	if strings.TrimSpace(s) == "" || !escapes.StorableWithin(s, MaxTitle) ||
		strings.ContainsFunc(s, unicode.IsControl) {
		return errs.New(errs.Invalid, "%s is required: a line of at most %d characters", field, MaxTitle)
	}
	return nil
}

// path checks where a notification leads to: below the app, never to another site.
func path(p string) error {
	switch {
	case len(p) > MaxPath, !escapes.Storable(p), strings.ContainsFunc(p, func(r rune) bool {
		return unicode.IsControl(r) || r == ' ' || r == '\\'
	}):
		return errs.New(errs.Invalid, "path must be text of at most %d bytes without spaces and backslashes", MaxPath)
	case strings.HasPrefix(p, "//"),
		strings.Contains(strings.SplitN(strings.SplitN(p, "/", 2)[0], "?", 2)[0], ":") && !strings.HasPrefix(p, "#"),
		slices.Contains(strings.FieldsFunc(p, func(r rune) bool { return r == '/' || r == '?' || r == '#' }), ".."):
		return errs.New(errs.Invalid, "path must be a path in the app, such as orders/5")
	}
	return nil
}

// mailbox returns an address in its plain form.
func mailbox(s string) (string, error) {
	a, err := mail.ParseAddress(s)
	if err != nil || len(a.Address) > 254 || strings.ContainsFunc(a.Address, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}) {
		return "", errs.New(errs.Invalid, "%q is no e-mail address", s)
	}
	return a.Address, nil
}

// sender checks From and returns it in one form: a name, or a name and an address.
func sender(s string) (string, error) {
	s = strings.TrimSpace(s)
	bad := errs.New(
		errs.Invalid,
		"from must be a name of at most 100 characters, or a name and an address, such as Sales <sales@example.com>",
	)
	switch {
	case s == "":
		return "", nil
	case !escapes.Storable(s) || strings.ContainsFunc(s, unicode.IsControl) || len(s) > 512:
		return "", bad
	case !strings.ContainsAny(s, "<>@"):
		if utf8.RuneCountInString(s) > 100 {
			return "", bad
		}
		return s, nil
	}
	address, err := mailbox(s)
	a, _ := mail.ParseAddress(s)
	if err != nil || utf8.RuneCountInString(a.Name) > 100 {
		return "", bad
	}
	if a.Name == "" {
		return address, nil
	}
	return strings.NewReplacer("<", "", ">", "").Replace(a.Name) + " <" + address + ">", nil
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Events returns a page of the events of an app, newest first, to those who see its insides.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a filter, sort or cursor that does not
// fit.
func (s *Service) Events(ctx context.Context, app string, f Filter, q paging.Query) (paging.Page[Event], error) {
	tenant, app, err := s.find(ctx, app, s.o.Apps.CheckInternals)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return paging.Page[Event]{}, err
	}
	return s.store.Events(ctx, tenant, app, f, q)
}

// Messages returns a page of the messages of an app, as Events does, and a Summary of all of them,
// to those who may change the app.
func (s *Service) Messages(
	ctx context.Context, app string, f Filter, q paging.Query,
) (paging.Page[Message], Summary, error) {
	tenant, app, err := s.find(ctx, app, s.o.Apps.CheckRecords)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return paging.Page[Message]{}, nil, err
	}
	page, err := s.store.Messages(ctx, tenant, app, f, q)
	if err != nil {
		return page, nil, err
	}
	all, err := s.store.Summary(ctx, tenant, app)
	return page, all, err
}

// Event returns an event of an app to those who see its insides. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) Event(ctx context.Context, app, id string) (Event, error) {
	tenant, app, err := s.find(ctx, app, s.o.Apps.CheckInternals)
	if err != nil {
		return Event{}, err
	}
	id, ok := uuids.Parse(id)
	if !ok {
		return Event{}, errs.New(errs.NotFound, "Event not found.")
	}
	return s.store.Event(ctx, tenant, app, id)
}

// Message returns a message of an app to those who may change it. Errors: errs.NotFound;
// errs.Forbidden.
func (s *Service) Message(ctx context.Context, app, id string) (Message, error) {
	tenant, app, err := s.find(ctx, app, s.o.Apps.CheckRecords)
	if err != nil {
		return Message{}, err
	}
	id, ok := uuids.Parse(id)
	if !ok {
		return Message{}, errs.New(errs.NotFound, "Message not found.")
	}
	return s.store.Message(ctx, tenant, app, id)
}

// find returns the caller's tenant, and the id that one of the methods of Apps returns.
func (s *Service) find(
	ctx context.Context, id string, by func(context.Context, string) (string, error),
) (tenant, app string, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", "", err
	}
	app, err = by(ctx, id)
	return a.Tenant, app, err
}

// check reports what is wrong with a filter.
func (f Filter) check() error {
	if f.State != "" && !slices.Contains(States(), f.State) {
		return errs.New(errs.Invalid, "state must be pending, dispatched, delivered, failed or dead")
	}
	if f.Type != "" && f.Type != TypeNotification && f.Type != TypeEmail {
		return errs.New(errs.Invalid, "type must be notification or email")
	}
	return nil
}

// usages are the Usages of apps as of a moment ago, with what this process has added since: a look
// at all rows of an app for each new one would be slow. So the limits of an app are exceeded by
// what other processes add meanwhile.
type usages struct {
	mu   sync.Mutex
	apps map[appKey]*usage
}

type appKey struct{ tenant, app string }

type usage struct {
	Usage
	at time.Time
}

const (
	usageLifetime = 5 * time.Second
	// of a usage for which rows are refused: much may have been carried out since
	refusalLifetime = 100 * time.Millisecond
	maxUsages       = 10_000
)

// reserve adds what is about to be written to the usage of an app, unless check refuses the sum.
func (u *usages) reserve(
	ctx context.Context, now time.Time, tenant, app string, add Usage,
	load func(ctx context.Context, tenant, app string, day time.Time) (Usage, error), check func(Usage) error,
) error {
	key := appKey{tenant, app}
	u.mu.Lock()
	defer u.mu.Unlock()
	for lifetime := usageLifetime; ; lifetime = refusalLifetime {
		have := u.apps[key]
		if have == nil || now.Sub(have.at) >= lifetime || now.Before(have.at) {
			u.mu.Unlock()
			loaded, err := load(ctx, tenant, app, now.Add(-24*time.Hour))
			u.mu.Lock()
			if err != nil {
				return err
			}
			if u.apps == nil || len(u.apps) >= maxUsages {
				u.apps = map[appKey]*usage{}
			}
			have = &usage{loaded, now}
			u.apps[key] = have
		}
		sum := Usage{Waiting: have.Waiting + add.Waiting, Day: have.Day + add.Day, Bytes: have.Bytes + add.Bytes}
		err := check(sum)
		if err == nil {
			have.Usage = sum
			return nil
		}
		if lifetime == refusalLifetime {
			return err
		}
	}
}
