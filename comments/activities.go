package comments

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// Activity is something that happened to an entity.
type Activity struct {
	Tenant    string
	ID        string // UUIDv7, lower case
	Type      string // such as reportAddedComment
	Entity    entity.Key
	CommentID *string   // the comment that it is about; it goes with it
	UserID    string    // username of who did it
	Excerpt   string    // the first 200 characters of the message, on one line
	CreatedAt time.Time // UTC, whole microseconds; a comment's own
}

// State is the delivery state of a notification.
type State string

// The states.
const (
	Pending    State = "pending"
	Dispatched State = "dispatched"
	Delivered  State = "delivered"
	Failed     State = "failed"
	Dead       State = "dead"
)

// Notification is a message to one user, which waits to be sent.
type Notification struct {
	Tenant    string
	ID        string // UUIDv7, lower case
	Username  string // who gets it
	Type      string // such as mention
	State     State
	Title     string
	Body      string
	Entity    entity.Key // zero for none
	CommentID *string    // it goes with it
	Path      *string    // where it leads to in the app that is the Entity; nil for none
	CreatedAt time.Time  // UTC, whole microseconds
	UpdatedAt time.Time  // UTC, whole microseconds; of its State and of ReadAt
	ReadAt    *time.Time // UTC, whole microseconds; nil while it is unread
}

// Version changes with every change of the row.
func (n Notification) Version() string {
	return guard.Version(n.ID, n.Type, n.Username, string(n.State), n.Title, n.Body, string(n.Entity.Kind),
		n.Entity.ID, n.CommentID, n.Path,
		n.ReadAt, n.CreatedAt, n.UpdatedAt)
}

// NotificationFilter selects notifications of a user; the zero value selects all.
type NotificationFilter struct {
	Since time.Time // those that were made then or later; zero for all
	Read  *bool     // those that are read, or unread; nil for both
}

// TypeMention is the Type of a notification for a user whom a comment mentions.
const TypeMention = "mention"

// Queue accepts notifications for delivery.
type Queue interface {
	// Enqueue adds notifications in the transaction in ctx. One that its user has for the same
	// comment and of the same type already is left out.
	Enqueue(ctx context.Context, tenant string, all []Notification) error
}

// people are the users whom a comment concerns: its author, the owner of the content, who wrote
// what it replies to, and who is mentioned.
type people struct {
	author    string // what the author is called
	mentions  []Mention
	concerned []string // all but the author, without repetition
}

// people returns the users whom a comment concerns, with one statement. parent is nil for a comment
// that is no reply.
func (s *Service) people(ctx context.Context, c Comment, about entity.Ref, parent *Comment) (people, error) {
	spots := scan(c.Message)
	names := []string{c.UserID}
	for _, spot := range spots {
		names = append(names, spot.names()...)
	}
	direct := []string{about.OwnerID}
	if parent != nil && !parent.AuthorGone {
		direct = append(direct, parent.UserID)
	}
	users, err := s.users.DisplayNames(ctx, append(names, direct...))
	if err != nil {
		return people{}, err
	}
	all := people{author: c.UserID, mentions: resolve(spots, users)}
	if shown := users[c.UserID]; shown != nil && !c.AuthorGone {
		all.author = *shown
	}
	for _, m := range all.mentions {
		direct = append(direct, m.Username)
	}
	for _, name := range direct {
		if _, user := users[name]; user && !c.by(name) && !slices.Contains(all.concerned, name) {
			all.concerned = append(all.concerned, name)
		}
	}
	return all, nil
}

// tell creates or rebuilds a comment's activity, and queues a notification for each mentioned user
// who has none for it.
func (s *Service) tell(ctx context.Context, c Comment, p people) error {
	excerpt := Excerpt(c.Message)
	err := s.store.PutActivity(ctx, c.Tenant, Activity{
		Tenant: c.Tenant, ID: s.clock.NewID(),
		Type: string(c.Entity.Kind) + "AddedComment", Entity: c.Entity, CommentID: &c.ID,
		UserID: c.UserID, Excerpt: excerpt, CreatedAt: c.CreatedAt,
	}, p.concerned)
	if err != nil {
		return err
	}
	var all []Notification
	for _, m := range c.Mentions {
		if c.by(m.Username) {
			continue
		}
		all = append(all, Notification{
			Tenant: c.Tenant, ID: s.clock.NewID(), Username: m.Username, Type: TypeMention, State: Pending,
			Title: p.author + " mentioned you in a comment", Body: excerpt, Entity: c.Entity, CommentID: &c.ID,
			CreatedAt: c.UpdatedAt, UpdatedAt: c.UpdatedAt,
		})
	}
	if len(all) == 0 {
		return nil
	}
	return s.queue.Enqueue(ctx, c.Tenant, all)
}

// TypeNotice is the Type of a notification that the service itself sends, TypeApp of one that a
// handler of an app sends.
const (
	TypeNotice = "notice"
	TypeApp    = "app"
)

// appNotices is how long notifications of apps are kept.
const appNotices = 90 * 24 * time.Hour

// keepFor is how long activities and all notifications are kept, unless Options says otherwise.
const keepFor = 400 * 24 * time.Hour

// maxExcerpt is the most characters of an excerpt.
const maxExcerpt = 200

// Excerpt returns the first 200 characters of a message on one line, with single spaces between its
// words.
func Excerpt(message string) string {
	var b strings.Builder
	n := 0
	for word := range strings.FieldsSeq(message) {
		if n > 0 {
			word = " " + word
		}
		for _, r := range word {
			if n == maxExcerpt {
				return strings.TrimSuffix(b.String(), " ")
			}
			b.WriteRune(r)
			n++
		}
	}
	return b.String()
}
