// Package comments manages comments on entities, with replies of any depth and mentions of users,
// and the activities, feeds and notifications that result from them.
//
//	made, err := app.Comments.Create(ctx, entity.Key{Kind: "report", ID: id}, "Look at this, @jo")
//	_, err = app.Comments.Reply(ctx, made.ID, "I did.")
//	page, err := app.Comments.List(ctx, entity.Key{Kind: "report", ID: id}, paging.Query{Limit: 20})
//	n, err := app.Comments.Unread(ctx)
//
// httpapi, the root and hosts import it; internal/store/comments stores its rows.
package comments

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Kind is the kind of comments in changes.
const Kind entity.Kind = "comment"

// MaxMessage is the most bytes of a message.
const MaxMessage = 64 << 10

// MaxRows is the most rows that one transaction removes with comments.
const MaxRows = 1000

// Comment is a comment of a user on an entity, or a reply to another comment on it.
type Comment struct {
	Tenant    string
	ID        string // UUIDv7, lower case
	Message   string // UTF-8 without NUL, at most MaxMessage bytes, maybe empty
	Public    bool
	UserID    string     // username of the author
	Entity    entity.Key // what it is about; the same for a whole thread
	ParentID  *string    // the comment it replies to; nil on top
	Mentions  []Mention  // the users it mentions, in order of appearance, at most 100; nil for none
	CreatedAt time.Time  // UTC, whole microseconds
	UpdatedAt time.Time  // UTC, whole microseconds
	EditedAt  *time.Time // when the message was last changed, by whomever; nil when it is as it was written

	// AuthorGone reports whether the author has been deleted. A user with the name UserID is then
	// another person, without the rights of an author. It stays set, even if the user is restored.
	AuthorGone bool

	May Permissions // of the caller; set by the Service on every answer
}

// by reports whether a user is the author.
func (c Comment) by(username string) bool { return !c.AuthorGone && c.UserID == username }

// Permissions is what the caller may do with a comment.
type Permissions struct {
	Edit, Delete bool
}

// Version changes with every change of the row.
func (c Comment) Version() string {
	mentioned := make([]string, len(c.Mentions))
	for i, m := range c.Mentions {
		mentioned[i] = m.Username
	}
	return guard.Version(
		c.ID, c.Message, c.Public, c.UserID, c.AuthorGone, c.ParentID, mentioned, c.CreatedAt, c.UpdatedAt,
		c.EditedAt,
	)
}

// Mention is one user that a message mentions, as the user was called then.
type Mention struct {
	Username    string
	DisplayName *string
}

// Edit is what an edit may change of a comment; nil leaves alone.
type Edit struct {
	Message *string
	Public  *bool
}

// apply changes a comment. Errors: errs.Invalid for a message that is not valid.
func (e Edit) apply(c *Comment, at time.Time) error {
	if e.Message != nil {
		if err := validMessage(*e.Message); err != nil {
			return err
		}
		if c.Message != *e.Message {
			c.Message, c.EditedAt = *e.Message, &at
		}
	}
	if e.Public != nil {
		c.Public = *e.Public
	}
	c.UpdatedAt = at
	return nil
}

// Store keeps comments, activities and notifications. The tests beside its bun-backed store say
// what every implementation must do.
type Store interface {
	// Get fails with errs.NotFound when the tenant has no comment with this id.
	Get(ctx context.Context, tenant, id string) (Comment, error)
	// Replies returns a page of the direct replies to a comment, newest first (-createdAt), or by
	// createdAt. It costs the same in a thread of any length. It fails with errs.NotFound when the
	// comment does not exist.
	Replies(ctx context.Context, tenant, id string, q paging.Query) (paging.Page[Comment], error)
	// List returns a page of the comments on an entity that reply to none, as Replies does.
	List(ctx context.Context, tenant string, of entity.Key, q paging.Query) (paging.Page[Comment], error)
	// Insert adds a comment. It fails with errs.NotFound when the parent does not exist, or is
	// about something else, and with errs.Forbidden when the author does not exist.
	Insert(ctx context.Context, tenant string, c Comment) error
	// Update calls edit with the stored comment and writes its Message, Public, Mentions, UpdatedAt
	// and EditedAt; no other write to this comment comes between. An error from edit is returned as
	// is and writes nothing.
	Update(ctx context.Context, tenant, id string, edit func(*Comment) error) (Comment, error)
	// Delete removes a comment with all replies below it, their activities and notifications,
	// however deep. They are gone for all other methods at once; when there are more than MaxRows
	// rows, these are left to RemoveRest and rest is true; at is the time. No reply that is added
	// meanwhile is left without its parent. It fails with errs.NotFound.
	Delete(ctx context.Context, tenant, id string, at time.Time) (rest bool, err error)
	// DeleteAll removes all comments on some entities of a kind, as Delete does, and returns those
	// of the entities whose rows are left to RemoveRest. None is no error. Comments on the entities
	// that are added later stay.
	DeleteAll(
		ctx context.Context, tenant string, kind entity.Kind, ids []string, at time.Time,
	) (later []string, err error)
	// RemoveRest removes some n rows of removed comments on an entity in one transaction, and
	// reports whether there are more.
	RemoveRest(ctx context.Context, tenant string, of entity.Key, n int) (more bool, err error)
	// RemoveAccount removes some n rows of the feed and notifications of a deleted user in one
	// transaction, and reports whether there may be more. account is the user's: see bunx.Account.
	// When the user was deleted, all comments of the user became AuthorGone, and the next one of
	// the name has neither.
	RemoveAccount(ctx context.Context, tenant, account string, n int) (more bool, err error)
	// RenameUsers replaces usernames in comments, mentions and activities; names maps old ones to
	// new ones, and no new one is an old one. Messages stay as they are, and so does what others
	// said who had the names before and are gone. Feeds and notifications follow their users.
	RenameUsers(ctx context.Context, tenant string, names map[string]string) error

	// PutActivity adds an activity, or rebuilds the one that its comment has, which keeps id and
	// time; concerned are the users in whose feeds it is.
	PutActivity(ctx context.Context, tenant string, a Activity, concerned []string) error
	// Activities returns a page of the activities on an entity, or of all with the zero Key, newest
	// first.
	Activities(ctx context.Context, tenant string, of entity.Key, q paging.Query) (paging.Page[Activity], error)
	// Activity returns one activity. It fails with errs.NotFound.
	Activity(ctx context.Context, tenant, id string) (Activity, error)
	// Feed returns a page of the activities that concern a user, newest first.
	Feed(ctx context.Context, tenant, username string, q paging.Query) (paging.Page[Activity], error)
	// Notifications returns a page of a user's notifications, newest first.
	Notifications(
		ctx context.Context, tenant, username string, f NotificationFilter, q paging.Query,
	) (paging.Page[Notification], error)
	// Notification returns one of a user's notifications. It fails with errs.NotFound.
	Notification(ctx context.Context, tenant, username, id string) (Notification, error)
	// SetRead sets ReadAt, nil for unread, and UpdatedAt of one of a user's notifications, and
	// returns it as it is then. One that is read, or unread, already stays as it is. It checks the
	// guard in ctx. It fails with errs.NotFound.
	SetRead(ctx context.Context, tenant, username, id string, read bool, at time.Time) (Notification, error)
	// DeleteNotices removes the notifications about an entity that are of no comment.
	DeleteNotices(ctx context.Context, tenant string, of entity.Key) error
	// SweepNotices removes the delivered notifications of a type that were made before a time, and
	// returns their number.
	SweepNotices(ctx context.Context, tenant, noticeType string, before time.Time) (int, error)
	// SweepOld removes the activities, with what feeds have of them, and the notifications that
	// were made before a time, and returns their number.
	SweepOld(ctx context.Context, tenant string, before time.Time) (int, error)
	// SetAllRead is like SetRead for all notifications of a user, and returns how many have
	// changed.
	SetAllRead(ctx context.Context, tenant, username string, read bool, at time.Time) (int, error)
	// Unread returns how many of a user's notifications are unread.
	Unread(ctx context.Context, tenant, username string) (int, error)

	DependentStore

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
	// Count returns how many comments a tenant has, with removed ones whose rows are left.
	Count(ctx context.Context, tenant string) (int, error)
}

// Users are the people of a tenant. *principals.Service implements it.
type Users interface {
	// DisplayNames returns the users of the caller's tenant whose names are among these, ignoring
	// case: the exact name of each with the display name, nil for none.
	DisplayNames(ctx context.Context, names []string) (map[string]*string, error)
}

// Service implements the rules for comments over a Store.
type Service struct {
	store    Store
	queue    Queue
	entities *entity.Registry
	users    Users
	keepFor  time.Duration
	feed     *entity.Changes
	clock    clock.Clock
	removals Removals
}

// Options configure a Service. Store, Queue, Entities and Users are required.
type Options struct {
	Store    Store
	Queue    Queue            // of notifications; the Store of internal/store/comments is one
	Entities *entity.Registry // what can be commented
	Users    Users
	// how long activities and notifications are kept; default 400 days, for ever if it is negative
	KeepFor time.Duration
	Feed    *entity.Changes  // nil: changes are not announced
	Now     func() time.Time // default time.Now
	NewID   func() string    // default UUIDv7
	// for the rows of what many comments were removed with; nil leaves the rows where they are
	Removals Removals
}

// New returns a Service.
func New(o Options) *Service {
	if o.KeepFor == 0 {
		o.KeepFor = keepFor
	}
	return &Service{
		store: o.Store, queue: o.Queue, entities: o.Entities, users: o.Users,
		keepFor: o.KeepFor, feed: o.Feed, clock: clock.New(o.Now, o.NewID), removals: o.Removals,
	}
}

// canonicalID returns a UUID in the one form that ids have. Errors: errs.Invalid for any other
// text.
func canonicalID(id string) (string, error) {
	key, ok := uuids.Parse(id)
	if !ok {
		return "", errs.New(errs.Invalid, "id must be a UUID")
	}
	return key, nil
}

// find finds an entity that can be commented, by id or natural id. Errors: errs.Invalid "Unknown
// entity type for comment" when the kind cannot be; errs.NotFound.
func (s *Service) find(ctx context.Context, tenant string, of entity.Key) (entity.Ref, error) {
	if !s.takes(of.Kind) {
		return entity.Ref{}, errs.New(errs.Invalid, "Unknown entity type for comment")
	}
	if err := s.visible(ctx, of); err != nil {
		return entity.Ref{}, err
	}
	return s.entities.Lookup(ctx, tenant, of.Kind, of.ID)
}

// visible returns an error if the caller does not see an entity.
func (s *Service) visible(ctx context.Context, of entity.Key) error {
	t, ok := s.entities.Type(of.Kind)
	if !ok || t.Visible == nil {
		return nil
	}
	return t.Visible(ctx, of.ID)
}

// gone returns an error for a comment or activity on an entity that the caller does not see: it is
// as if it were not there.
func (s *Service) gone(ctx context.Context, of entity.Key, what string) error {
	err := s.visible(ctx, of)
	switch errs.CodeOf(err) {
	case errs.NotFound, errs.Forbidden, errs.Invalid:
		return errs.New(errs.NotFound, "%s not found.", what)
	}
	return err
}

// takes reports whether entities of a kind can be commented here.
func (s *Service) takes(kind entity.Kind) bool {
	t, ok := s.entities.Type(kind)
	return ok && t.Commented && t.Lookup != nil
}

// see is like show, and looks up the owner of the entity if it matters.
func (s *Service) see(ctx context.Context, a actor.Actor, all []Comment) error {
	var owner string
	other := slices.IndexFunc(all, func(c Comment) bool { return !c.by(a.User) })
	if other >= 0 && !editsAll(a) {
		var err error
		if owner, err = s.owner(ctx, a.Tenant, all[other].Entity); err != nil {
			return err
		}
	}
	show(a, all, owner)
	return nil
}

func editsAll(a actor.Actor) bool { return a.Superuser || a.Role() >= actor.Admin }

// show sets what the caller may do with comments on an entity with this owner. The author and
// superusers may do everything; admins and the owner may edit. A read-only token may do nothing.
func show(a actor.Actor, all []Comment, owner string) {
	editor := editsAll(a) || owner == a.User
	for i := range all {
		own := all[i].by(a.User)
		all[i].May = Permissions{Edit: !a.ReadOnly && (own || editor), Delete: !a.ReadOnly && (own || a.Superuser)}
	}
}

// owner returns the principal id of who owns an entity, "" when it cannot be found any more.
func (s *Service) owner(ctx context.Context, tenant string, of entity.Key) (string, error) {
	ref, err := s.find(ctx, tenant, of)
	switch errs.CodeOf(err) {
	case errs.NotFound, errs.Invalid, errs.Forbidden:
		return "", nil
	}
	return ref.OwnerID, err
}
