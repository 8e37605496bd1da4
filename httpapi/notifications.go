package httpapi

import (
	"net/url"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// notificationRoutes serves the caller's notifications.
type notificationRoutes struct{ *api }

// routes returns the rows of the route table.
func (a notificationRoutes) routes() []rest.Route {
	return []rest.Route{
		{
			Method:  get,
			Pattern: "/api/notifications",
			Name:    "listNotifications",
			Grants:  nothing,
			Query:   append(slices.Clone(paged), "state", "since"),
			Summary: "The caller's notifications",
			Gives:   openapi.OK(openapi.PageWith[notificationBody, unreadBody]("inf:notification")),
			Fails:   []int{400},
			Handle:  a.listNotifications,
		},
		{
			Method:  put,
			Pattern: "/api/notifications",
			Name:    "putNotifications",
			Grants:  nothing,
			Query:   none,
			Writes:  rest.InTx,
			Summary: "Mark all of the caller's notifications as read or unread",
			Takes:   openapi.Update[stateInput, notificationBody](),
			Gives:   openapi.OK(openapi.One[readNotificationsBody]()),
			Fails:   []int{400},
			Handle:  a.putNotifications,
		},
		{
			Method:  get,
			Pattern: "/api/notifications/:id",
			Name:    "getNotification",
			Grants:  nothing,
			Summary: "One of the caller's notifications",
			Gives:   openapi.OK(openapi.One[notificationBody]()),
			Fails:   []int{404},
			Handle:  a.getNotification,
		},
		{
			Method:  put,
			Pattern: "/api/notifications/:id",
			Name:    "putNotification",
			Grants:  nothing,
			Row:     "notification",
			Writes:  rest.InTx,
			Summary: "Mark a notification as read or unread",
			Takes:   openapi.Update[stateInput, notificationBody](),
			Gives:   openapi.OK(openapi.One[notificationBody]()),
			Fails:   []int{400, 404},
			Handle:  a.putNotification,
		},
	}
}

// The states of a notification for its user.
const (
	stateRead   = "read"
	stateUnread = "unread"
)

// notificationBody is a Notification as the API writes it. It is encoded by hand because it is read
// often.
type notificationBody comments.Notification

// Relations implements openapi.Related.
func (notificationBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:comment", "inf:entity", "inf:notifications"}}
}

// notificationShape has the members of a notificationBody.
type notificationShape struct {
	Tenant     string    `json:"tenant"`
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Username   string    `json:"username"`
	State      string    `json:"state" enum:"read unread"`
	ReadAt     *hal.Time `json:"readAt"`
	Delivery   string    `json:"delivery" enum:"pending dispatched delivered failed dead"`
	Title      string    `json:"title"`
	Body       string    `json:"body"`
	EntityType *string   `json:"entityType"`
	EntityID   *string   `json:"entityId"`
	CommentID  *string   `json:"commentId"`
	Path       *string   `json:"path"` // where it leads to in the app that it is about
	CreatedAt  hal.Time  `json:"createdAt"`
	UpdatedAt  hal.Time  `json:"updatedAt"`
}

// Shape implements openapi.Shaper.
func (notificationBody) Shape() any { return notificationShape{} }

// unreadBody is what a page of notifications has beside its rows.
type unreadBody struct {
	Unread int `json:"unread"` // of all of the caller's
}

// AppendJSON implements hal.Appender.
func (n notificationBody) AppendJSON(dst []byte) ([]byte, error) {
	state := stateUnread
	if n.ReadAt != nil {
		state = stateRead
	}
	var kind, entityID *string
	if k := string(n.Entity.Kind); k != "" {
		kind, entityID = &k, &n.Entity.ID
	}
	dst = hal.AppendString(append(dst, `{"tenant":`...), n.Tenant)
	dst = hal.AppendString(append(dst, `,"id":`...), n.ID)
	dst = hal.AppendString(append(dst, `,"type":`...), n.Type)
	dst = hal.AppendString(append(dst, `,"username":`...), n.Username)
	dst = hal.AppendString(append(dst, `,"state":`...), state)
	dst = hal.AppendTimeOrNull(append(dst, `,"readAt":`...), n.ReadAt)
	// how far it was sent: pending, dispatched, delivered, failed or dead
	dst = hal.AppendString(append(dst, `,"delivery":`...), string(n.State))
	dst = hal.AppendString(append(dst, `,"title":`...), n.Title)
	dst = hal.AppendString(append(dst, `,"body":`...), n.Body)
	dst = hal.AppendStringOrNull(append(dst, `,"entityType":`...), kind)
	dst = hal.AppendStringOrNull(append(dst, `,"entityId":`...), entityID)
	dst = hal.AppendStringOrNull(append(dst, `,"commentId":`...), n.CommentID)
	dst = hal.AppendStringOrNull(append(dst, `,"path":`...), n.Path) // where it leads to in the app that it is about
	dst = hal.AppendTime(append(dst, `,"createdAt":`...), n.CreatedAt)
	dst = hal.AppendTime(append(dst, `,"updatedAt":`...), n.UpdatedAt)
	return append(dst, '}'), nil
}

func (a notificationRoutes) notification(n comments.Notification) hal.Resource {
	links := commentRoutes(a).about(n.Entity, n.CommentID).With(
		"self", a.href("notifications", n.ID),
	).With("inf:notifications", a.href("notifications"))
	return hal.Resource{Links: links, Value: notificationBody(n), Row: n}
}

// listNotifications serves GET /api/notifications: 200 and a page of the caller's own
// notifications, 100 unless limit says otherwise, newest first unless sort says otherwise
// (createdAt). state=read or state=unread admits those alone, since= those that were made at that
// time or later. unread is how many of all of the caller's are unread.
func (a notificationRoutes) listNotifications(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	query, err := rest.ParseQuery(r.Request)
	if err != nil {
		return rest.Reply{}, err
	}
	filter, err := notificationFilter(query)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Comments.Notifications(r.Context(), filter, q)
	if err != nil {
		return rest.Reply{}, err
	}
	unread, err := a.Comments.Unread(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(
		a.BaseURL, r, q, page, "inf:notification", map[string]any{"unread": unread}, a.notification,
	))
}

func notificationFilter(query url.Values) (f comments.NotificationFilter, err error) {
	if query.Has("state") {
		read, err := readState(query.Get("state"))
		if err != nil {
			return f, err
		}
		f.Read = &read
	}
	if query.Has("since") {
		since, err := time.Parse(time.RFC3339, query.Get("since"))
		if err != nil || since.UTC().Year() < 1 || since.UTC().Year() > 9999 {
			return f, errs.New(errs.Invalid, "since must be a time such as 2026-11-20T20:31:00.123Z")
		}
		f.Since = since
	}
	return f, nil
}

// readState reports whether a state is read. Errors: errs.Invalid for what is neither read nor
// unread.
func readState(state string) (bool, error) {
	if state != stateRead && state != stateUnread {
		return false, errs.New(errs.Invalid, "state must be read or unread")
	}
	return state == stateRead, nil
}

// getNotification serves GET /api/notifications/{id}: 200 and one of the caller's own
// notifications; 404.
func (a notificationRoutes) getNotification(r *rest.Request) (rest.Reply, error) {
	n, err := a.Comments.Notification(r.Context(), r.Param("id"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.notification(n))
}

// stateInput is the body of a write to notifications.
type stateInput struct {
	State string `json:"state"`
}

func readStateOf(r *rest.Request) (bool, error) {
	in, err := rest.DecodeUpdate[stateInput](r, notificationBody{})
	if err != nil {
		return false, err
	}
	if in.State == "" {
		return false, errs.New(errs.Invalid, "state is required: read or unread")
	}
	return readState(in.State)
}

// putNotification serves PUT /api/notifications/{id} {state}: 200 and the notification, which is
// read or unread from then on; 400 for another state; 404.
func (a notificationRoutes) putNotification(r *rest.Request) (rest.Reply, error) {
	read, err := readStateOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	n, err := a.Comments.SetRead(r.Context(), r.Param("id"), read)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.notification(n))
}

// readNotificationsBody is what a change of all notifications has done.
type readNotificationsBody struct {
	Updated int `json:"updated"`
	Unread  int `json:"unread"`
}

// Relations implements openapi.Related.
func (readNotificationsBody) Relations() openapi.Relations { return openapi.Relations{} }

// putNotifications serves PUT /api/notifications {state}: 200, how many of the caller's
// notifications have changed, and how many are unread then in total; 400 for another state.
func (a notificationRoutes) putNotifications(r *rest.Request) (rest.Reply, error) {
	read, err := readStateOf(r)
	if err != nil {
		return rest.Reply{}, err
	}
	updated, err := a.Comments.SetAllRead(r.Context(), read)
	if err != nil {
		return rest.Reply{}, err
	}
	unread, err := a.Comments.Unread(r.Context())
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(hal.Resource{
		List:  true,
		Links: hal.Self(a.href("notifications")),
		Value: readNotificationsBody{updated, unread},
	})
}
