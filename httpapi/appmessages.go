package httpapi

import (
	"encoding/json"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/hal"
)

// appMessageRoutes serves the messages that apps send.
type appMessageRoutes struct{ *api }

// routes returns the rows of what handlers of apps have emitted and sent, unless the host keeps
// apps itself.
func (a appMessageRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, apps.Kind) {
		return nil
	}
	const sent, emitted = "/api/apps/:id/messages", "/api/apps/:id/events"
	filtered := append(slices.Clone(searched), "state")
	return []rest.Route{
		{
			Method:  get,
			Pattern: sent,
			Name:    "listAppMessages",
			Grants:  programs,
			Query:   append(slices.Clone(filtered), "type"),
			Summary: "The notifications and e-mails that an app has sent",
			Gives:   openapi.OK(openapi.PageWith[messageBody, messagesBody]("inf:app-message")),
			Fails:   []int{400, 403, 404},
			Handle:  a.listAppMessages,
		},
		{
			Method:  get,
			Pattern: sent + "/:messageId",
			Name:    "getAppMessage",
			Grants:  programs,
			Summary: "One notification or e-mail that an app has sent",
			Gives:   openapi.OK(openapi.One[messageBody]()),
			Fails:   []int{404},
			Handle:  a.getAppMessage,
		},
		{
			Method:  get,
			Pattern: emitted,
			Name:    "listAppEvents",
			Grants:  programs,
			Query:   filtered,
			Summary: "The events that an app has emitted",
			Gives:   openapi.OK(openapi.Page[eventBody]("inf:app-event")),
			Fails:   []int{400, 403},
			Handle:  a.listAppEvents,
		},
		{
			Method:  get,
			Pattern: emitted + "/:eventId",
			Name:    "getAppEvent",
			Grants:  programs,
			Summary: "One event that an app has emitted",
			Gives:   openapi.OK(openapi.One[eventBody]()),
			Fails:   []int{404},
			Handle:  a.getAppEvent,
		},
	}
}

// progressBody is how a row has been carried out.
type progressBody struct {
	State    string    `json:"state"` // pending, dispatched, delivered, failed or dead
	Attempts int       `json:"attempts"`
	Error    *string   `json:"error"`
	EndedAt  *hal.Time `json:"endedAt"`
}

func newProgress(p messages.Progress) progressBody {
	return progressBody{string(p.State), p.Attempts, p.Error, hal.OrNull(p.EndedAt)}
}

// messageBody is a Message as the API writes it.
type messageBody struct {
	Tenant    string          `json:"tenant"`
	ID        string          `json:"id"`
	AppID     string          `json:"appId"`
	Type      string          `json:"type"` // notification or email
	Recipient string          `json:"recipient"`
	UserID    *string         `json:"userId"` // on whose behalf
	Title     string          `json:"title"`
	Body      *string         `json:"body"`
	HTML      *string         `json:"html"`
	From      *string         `json:"from"`
	Path      *string         `json:"path"`
	Data      json.RawMessage `json:"data"`
	progressBody
	CreatedAt hal.Time `json:"createdAt"`
	UpdatedAt hal.Time `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (messageBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-messages"}}
}

func (a appMessageRoutes) message(m messages.Message) hal.Resource {
	links := hal.Self(a.href(
		"apps", m.App, "messages", m.ID,
	)).With("inf:app-messages", a.href("apps", m.App, "messages")).With("inf:app", a.href("apps", m.App))
	return hal.Resource{Links: links, Row: m, Value: messageBody{
		Tenant: m.Tenant, ID: m.ID, AppID: m.App, Type: string(m.Type),
		Recipient: m.Recipient, UserID: m.UserID, Title: m.Title, Body: m.Body, HTML: m.HTML,
		From: m.From, Path: m.Path, Data: m.Data,
		progressBody: newProgress(m.Progress), CreatedAt: hal.Time(m.CreatedAt), UpdatedAt: hal.Time(m.UpdatedAt),
	}}
}

// eventBody is an Event as the API writes it.
type eventBody struct {
	Tenant  string          `json:"tenant"`
	ID      string          `json:"id"`
	AppID   string          `json:"appId"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload"`
	UserID  *string         `json:"userId"` // on whose behalf
	progressBody
	CreatedAt hal.Time `json:"createdAt"`
	UpdatedAt hal.Time `json:"updatedAt"`
}

// Relations implements openapi.Related.
func (eventBody) Relations() openapi.Relations {
	return openapi.Relations{Links: []string{"inf:app", "inf:app-events"}}
}

func (a appMessageRoutes) event(e messages.Event) hal.Resource {
	links := hal.Self(a.href(
		"apps", e.App, "events", e.ID,
	)).With("inf:app-events", a.href("apps", e.App, "events")).With("inf:app", a.href("apps", e.App))
	return hal.Resource{Links: links, Row: e, Value: eventBody{
		Tenant: e.Tenant, ID: e.ID, AppID: e.App,
		Name: e.Name, Payload: e.Payload, UserID: e.UserID, progressBody: newProgress(e.Progress),
		CreatedAt: hal.Time(e.CreatedAt), UpdatedAt: hal.Time(e.UpdatedAt),
	}}
}

// messageFilter reads the filters of a list of messages or events.
func messageFilter(r *rest.Request) (messages.Filter, error) {
	query, err := rest.ParseQuery(r.Request)
	return messages.Filter{State: messages.State(query.Get("state")), Type: messages.Type(query.Get("type"))}, err
}

// listAppMessages serves GET /api/apps/{id}/messages: 200 and a page of the notifications and
// e-mails that handlers of the app have sent, 100 unless limit says otherwise, newest first unless
// sort says otherwise (createdAt). q finds titles and recipients; state and type select; 400 for
// others than there are; 403 for those who may not change the app; 404. summary is how many of all
// its messages are in each state, by type.
func (a appMessageRoutes) listAppMessages(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	f, err := messageFilter(r)
	if err != nil {
		return rest.Reply{}, err
	}
	page, summary, err := a.Messages.Messages(r.Context(), r.Param("id"), f, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(
		a.BaseURL, r, q, page, "inf:app-message", map[string]any{"summary": summaryBody(summary)}, a.message,
	))
}

// messagesBody is what a page of messages has beside its rows.
type messagesBody struct {
	Summary map[string]map[string]int `json:"summary"` // how many there are by type and state
}

// summaryBody returns a Summary with all types and states.
func summaryBody(s messages.Summary) map[messages.Type]map[messages.State]int {
	all := map[messages.Type]map[messages.State]int{messages.TypeNotification: {}, messages.TypeEmail: {}}
	for of, counts := range all {
		for _, state := range messages.States() {
			counts[state] = s[of][state]
		}
	}
	return all
}

// getAppMessage serves GET /api/apps/{id}/messages/{messageId}: 200 and the message; 403; 404.
func (a appMessageRoutes) getAppMessage(r *rest.Request) (rest.Reply, error) {
	m, err := a.Messages.Message(r.Context(), r.Param("id"), r.Param("messageId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.message(m))
}

// listAppEvents serves GET /api/apps/{id}/events: 200 and a page of the events that handlers of the
// app have emitted, as listAppMessages does, to those who see the insides of the app. q finds
// names.
func (a appMessageRoutes) listAppEvents(r *rest.Request) (rest.Reply, error) {
	q, err := r.Page(100)
	if err != nil {
		return rest.Reply{}, err
	}
	f, err := messageFilter(r)
	if err != nil {
		return rest.Reply{}, err
	}
	page, err := a.Messages.Events(r.Context(), r.Param("id"), f, q)
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(rest.Collection(a.BaseURL, r, q, page, "inf:app-event", nil, a.event))
}

// getAppEvent serves GET /api/apps/{id}/events/{eventId}: 200 and the event; 403; 404.
func (a appMessageRoutes) getAppEvent(r *rest.Request) (rest.Reply, error) {
	e, err := a.Messages.Event(r.Context(), r.Param("id"), r.Param("eventId"))
	if err != nil {
		return rest.Reply{}, err
	}
	return rest.OK(a.event(e))
}
