// Package messages keeps what the handlers of apps emit and send: events, notifications to users
// and e-mails, as rows that a queue carries out.
//
//	_, err := app.Messages.Emit(ctx, id, "order", json.RawMessage(`{"item": "chair"}`))
//	_, err = app.Messages.Notify(ctx, id, []string{"jo"}, messages.Notification{Title: "An order"})
//	page, err := app.Messages.Events(ctx, id, messages.Filter{}, paging.Query{})
//
// httpapi, the root and hosts import it; internal/store/messages stores its rows.
package messages

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// State is how far a row has been carried out.
type State string

// The states. Delivered and Dead are the last ones.
const (
	Pending    State = "pending"    // it waits
	Dispatched State = "dispatched" // it is being carried out
	Delivered  State = "delivered"  // it has been
	Failed     State = "failed"     // it has not been, and is tried again
	Dead       State = "dead"       // it has not been, and is not tried again
)

// States returns all states in the order of a row's life.
func States() []State { return []State{Pending, Dispatched, Delivered, Failed, Dead} }

// Ended reports whether nothing happens to a row in this state any more.
func (s State) Ended() bool { return s == Delivered || s == Dead }

// Type is what a message is.
type Type string

// The types.
const (
	TypeNotification Type = "notification"
	TypeEmail        Type = "email"
)

// Progress is how a row is carried out.
type Progress struct {
	State    State
	Attempts int
	Error    *string    // why the last attempt has failed; nil for none
	EndedAt  *time.Time // UTC, whole microseconds; nil while something can happen to it
}

// Event is something that a handler of an app has emitted.
type Event struct {
	Tenant    string
	ID        string          // UUID, lower case
	App       string          // id of the app
	Name      string          // [A-Za-z0-9][A-Za-z0-9_.:-]{0,127}
	Payload   json.RawMessage // at most MaxPayload bytes
	UserID    *string         // id of the principal on whose behalf the handler ran; nil for a deleted one
	Size      int             // bytes of the row's texts
	Depth     int             // how many agents and events have started each other until it: see Call
	CreatedAt time.Time       // UTC, whole microseconds
	UpdatedAt time.Time       // UTC, whole microseconds
	Progress
}

// Version changes with every change of the row.
func (e Event) Version() string {
	return guard.Version(
		e.ID, e.App, e.Name, e.Payload, e.UserID, string(e.State), e.Attempts, e.Error, e.EndedAt, e.CreatedAt,
		e.UpdatedAt,
	)
}

// Message is a notification to a user, or an e-mail.
type Message struct {
	Tenant    string
	ID        string // UUID, lower case
	App       string // id of the app
	Type      Type
	Recipient string  // a username, or an address
	UserID    *string // id of the principal on whose behalf the handler ran; nil for a deleted one
	Title     string  // the subject of an e-mail
	Body      *string // plain text; nil for none
	HTML      *string // of an e-mail; nil for none
	From      *string // of an e-mail: a name, or a name and an address that answers go to; nil for the server's own
	Path      *string // of a notification: where it leads to in the app; nil for none
	Data      json.RawMessage
	Size      int       // bytes of the row's texts
	CreatedAt time.Time // UTC, whole microseconds
	UpdatedAt time.Time // UTC, whole microseconds
	Progress
}

// Version changes with every change of the row.
func (m Message) Version() string {
	return guard.Version(m.ID, m.App, string(m.Type), m.Recipient, m.UserID, m.Title, m.Body, m.HTML, m.From,
		m.Path, m.Data, string(m.State), m.Attempts, m.Error,
		m.EndedAt, m.CreatedAt, m.UpdatedAt)
}

// Filter selects messages or events of an app; the zero value selects all.
type Filter struct {
	State State // "" for all
	Type  Type  // of messages; "" for all
}

// Usage is what the rows of an app amount to.
type Usage struct {
	Waiting int // rows that have not ended
	Day     int // rows of the last 24 hours
	Bytes   int // of all rows
}

// Summary is the number of messages of an app in each state, by type. Zeros are left out.
type Summary map[Type]map[State]int

// Store keeps events and messages. The tests beside its bun-backed store define what every
// implementation must do.
type Store interface {
	// InsertEvent adds an event.
	InsertEvent(ctx context.Context, tenant string, e Event) error
	// InsertMessages adds messages.
	InsertMessages(ctx context.Context, tenant string, all []Message) error
	// Events and Messages return a page of those of an app: -createdAt (the default) or createdAt.
	// Q finds names, titles and recipients.
	Events(ctx context.Context, tenant, app string, f Filter, q paging.Query) (paging.Page[Event], error)
	Messages(ctx context.Context, tenant, app string, f Filter, q paging.Query) (paging.Page[Message], error)
	// Event and Message return one of an app. They fail with errs.NotFound.
	Event(ctx context.Context, tenant, app, id string) (Event, error)
	Message(ctx context.Context, tenant, app, id string) (Message, error)
	// DeliverEvents ends events of any apps as Delivered, and returns them in any order, without
	// those that are not there or have ended.
	DeliverEvents(ctx context.Context, tenant string, ids []string, attempts int, now time.Time) ([]Event, error)
	// AnyMessage returns one of any app. It fails with errs.NotFound.
	AnyMessage(ctx context.Context, tenant, id string) (Message, error)
	// HasMessages reports whether one of some messages, at most MaxRecipients, is there, of any
	// app.
	HasMessages(ctx context.Context, tenant string, ids []string) (bool, error)
	// SetEvent and SetMessage change how far one has been carried out. They fail with
	// errs.NotFound.
	SetEvent(ctx context.Context, tenant, id string, p Progress, now time.Time) error
	SetMessage(ctx context.Context, tenant, id string, p Progress, now time.Time) error
	// Summary counts the messages of an app.
	Summary(ctx context.Context, tenant, app string) (Summary, error)
	// EventUsage and MessageUsage return what the rows of an app amount to; day is when the last 24
	// hours began.
	EventUsage(ctx context.Context, tenant, app string, day time.Time) (Usage, error)
	MessageUsage(ctx context.Context, tenant, app string, day time.Time) (Usage, error)

	// RenameUsers replaces usernames; names maps old ones to new ones, and no new one is an old
	// one.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error
	// ForgetUsers removes the notifications to some principals, and their names from all other
	// rows.
	ForgetUsers(ctx context.Context, tenant string, ids []string) error
	// DeleteApps removes the rows of some apps.
	DeleteApps(ctx context.Context, tenant string, apps []string) error
	// Expire ends, as Dead, what was made before a time and has not ended.
	Expire(ctx context.Context, tenant string, before, now time.Time, reason string) (int, error)
	// Sweep removes what ended before a time, and of each app what ended first beyond the last keep
	// rows.
	Sweep(ctx context.Context, tenant string, before time.Time, keep int) (int, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Users looks up the users of the caller's tenant. principals.Service implements it.
type Users interface {
	// DisplayNames returns the display names of the users with the given names, nil for a user
	// without one. It leaves out names that no user has.
	DisplayNames(ctx context.Context, names []string) (map[string]*string, error)
	// CanonicalName returns the exact name of the user with a name; one that no user has is
	// returned as it is.
	CanonicalName(ctx context.Context, name string) (string, error)
}

// Inbox shows notifications to users.
type Inbox interface {
	// Deliver adds a notification by an app to those of some users, in the transaction in ctx.
	Deliver(ctx context.Context, tenant string, users []string, n comments.Notification) error
}

// Apps is what this package needs of apps.
type Apps interface {
	// CheckInternals returns the id of an app whose insides the caller may see, or errs.NotFound or
	// errs.Forbidden.
	CheckInternals(ctx context.Context, id string) (string, error)
	// CheckRecords is CheckInternals for what is shown to those only that may change the app, also
	// with a token that can only read.
	CheckRecords(ctx context.Context, id string) (string, error)
}

// Agents are what events start. *agents.Installed implements it.
type Agents interface {
	// Listens reports whether an event of an app starts anything.
	Listens(ctx context.Context, tenant, app, event string) (bool, error)
	// Emitted starts what an event starts, in the transaction in ctx.
	Emitted(ctx context.Context, e Emitted) error
}

// The bounds of rows.
const (
	MaxPayload    = 64 << 10  // bytes of an event's payload
	MaxData       = 16 << 10  // bytes of a notification's data
	MaxTitle      = 300       // characters of titles and subjects
	MaxBody       = 4 << 10   // bytes of a notification's body
	MaxMail       = 256 << 10 // bytes of an e-mail's text, and of its HTML
	MaxPath       = 1 << 10   // bytes of a path
	MaxRecipients = 100       // of one call
)

// Limits bound what one app has. 0 stands for a default.
type Limits struct {
	Waiting int // events, and messages, that have not ended; default 10,000 of each
	Day     int // messages in 24 hours; default 10,000
	Bytes   int // of all its events, and of all its messages; default 64 MiB each
	Kept    int // events, and messages, that have ended and are kept; default 10,000 of each
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Waiting: cmp.Or(l.Waiting, 10_000),
		Day:     cmp.Or(l.Day, 10_000),
		Bytes:   cmp.Or(l.Bytes, 64<<20),
		Kept:    cmp.Or(l.Kept, 10_000),
	}
}

// How long rows are kept.
const (
	keptFor  = 30 * 24 * time.Hour // after their end
	waitsFor = 30 * 24 * time.Hour // until nobody tries any more
)

// Options configure a Service. Store, Users, Inbox, Apps, Agents and Queue are required.
type Options struct {
	Store  Store
	Users  Users
	Inbox  Inbox
	Apps   Apps
	Agents Agents
	Queue  Queue
	Sender Sender // nil: e-mails stay pending
	Limits Limits
	Feed   *entity.Changes  // nil: changes are not announced
	Now    func() time.Time // default time.Now
	NewID  func() string    // default UUIDv7
}

// The kinds of events and messages in changes. The id of one is that of its app, a slash and its
// own.
const (
	KindEvent   entity.Kind = "event"
	KindMessage entity.Kind = "message"
)

// Service implements the rules for events and messages over a Store.
type Service struct {
	o        Options
	clock    clock.Clock
	store    Store
	events   usages
	messages usages
}

// New returns a Service.
func New(o Options) *Service {
	o.Limits = o.Limits.withDefaults()
	return &Service{o: o, clock: clock.New(o.Now, o.NewID), store: o.Store}
}

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// kindApp is the kind of the apps whose rows these are.
const kindApp entity.Kind = "app"

// Hooks returns the hooks that keep events and messages up to date when apps and users change.
// Those of a purged app and those to a deleted user are deleted. Those that have ended are kept for
// 30 days, the last 10,000 of each app; those that have waited for 30 days become dead.
func (u Unchecked) Hooks() entity.Hooks {
	h := entity.Hooks{Renamed: u.s.store.RenameUsers, Deleted: u.s.deleted, Sweep: u.s.sweep}
	for _, table := range []string{"tc_events", "tc_messages"} {
		h.Due = append(h.Due, entity.Due{Table: table, Column: "created_at", Where: "ended_at IS NULL", Age: waitsFor},
			entity.Due{Table: table, Column: "ended_at", Where: "ended_at IS NOT NULL", Age: keptFor},
			entity.Due{Table: table, Column: "ended_at", Where: "ended_at IS NOT NULL", Since: true})
	}
	return h
}

func (s *Service) deleted(ctx context.Context, tenant string, gone ...entity.Key) error {
	if apps := entity.IDs(gone, kindApp); len(apps) > 0 {
		if err := s.store.DeleteApps(ctx, tenant, apps); err != nil {
			return err
		}
	}
	users := entity.IDs(gone, entity.KindUser, entity.KindTeam)
	if len(users) == 0 {
		return nil
	}
	return s.store.ForgetUsers(ctx, tenant, users)
}

func (s *Service) sweep(ctx context.Context, tenant string) (int, error) {
	now := s.clock.Stamp()
	if _, err := s.store.Expire(
		ctx, tenant, now.Add(-waitsFor), now, "It was not carried out within 30 days.",
	); err != nil {
		return 0, err
	}
	return s.store.Sweep(ctx, tenant, now.Add(-keptFor), s.o.Limits.Kept)
}
