package messages

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// Function is a function that a handler can call: JSON of its arguments in, JSON of its result out.
type Function = func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// Functions returns emit, notify and email for the handlers of an app. The context they are called
// with has the actor whose rights the handler has.
func (s *Service) Functions(app string) map[string]Function {
	return map[string]Function{
		"emit": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			all, err := jsvm.Arguments("emit", args, 2)
			if err != nil {
				return nil, err
			}
			var name string
			if json.Unmarshal(all[0], &name) != nil {
				return nil, errs.New(errs.Invalid, "emit: the name of the event must be a string")
			}
			e, err := s.Emit(ctx, app, name, all[1])
			if err != nil {
				return nil, err
			}
			return json.Marshal(emitted{e.ID, e.App, e.Name, e.Payload, e.State, e.CreatedAt.Format(timeFormat)})
		},
		"notify": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			var n Notification
			to, one, err := addressed("notify", args, &n)
			if err != nil {
				return nil, err
			}
			if string(n.Data) == "null" {
				n.Data = nil
			}
			all, err := s.Notify(ctx, app, to, n)
			return sent(ctx, "notify", all, one, err)
		},
		"email": func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			var e Email
			to, one, err := addressed("email", args, &e)
			if err != nil {
				return nil, err
			}
			all, err := s.Email(ctx, app, to, e)
			return sent(ctx, "email", all, one, err)
		},
	}
}

// timeFormat is how scripts see times.
const timeFormat = "2006-01-02T15:04:05.000Z"

// emitted is an event as emit returns it.
type emitted struct {
	ID        string          `json:"id"`
	AppID     string          `json:"appId"`
	Name      string          `json:"name"`
	Payload   json.RawMessage `json:"payload"`
	State     State           `json:"state"`
	CreatedAt string          `json:"createdAt"`
}

// result is what notify and email return: an ID, or IDs and Queued for a list of recipients.
type result struct {
	ID     string   `json:"id,omitempty"`
	IDs    []string `json:"ids,omitempty"`
	Queued int      `json:"queued,omitempty"`
	Unsent []string `json:"unsent,omitempty"` // lines for the log, which the handler does not see
}

// sent returns the result of notify or email.
func sent(ctx context.Context, name string, all []Message, one bool, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	var r result
	if one {
		r.ID = all[0].ID
	} else {
		for _, m := range all {
			r.IDs = append(r.IDs, m.ID)
		}
		r.Queued = len(all)
	}
	if callOf(ctx).Unsent {
		for _, m := range all {
			line, err := unsent(name, m)
			if err != nil {
				return nil, err
			}
			r.Unsent = append(r.Unsent, line)
		}
	}
	return json.Marshal(r)
}

// unsent returns a line of the log about a message that was not sent.
func unsent(name string, m Message) (string, error) {
	raw, err := json.Marshal(struct {
		To    string          `json:"to"`
		From  *string         `json:"from,omitempty"`
		Title string          `json:"title"`
		Path  *string         `json:"path,omitempty"`
		Body  *string         `json:"body,omitempty"`
		HTML  *string         `json:"html,omitempty"`
		Data  json.RawMessage `json:"data,omitempty"`
	}{m.Recipient, m.From, m.Title, m.Path, m.Body, m.HTML, m.Data})
	return name + " sends nothing in a draft without ?send=true: " + string(raw), err
}

// addressed reads the arguments of notify and email: a recipient or a list of them, and an object.
func addressed(name string, args json.RawMessage, options any) (to []string, one bool, err error) {
	all, err := jsvm.Arguments(name, args, 2)
	if err != nil {
		return nil, false, err
	}
	var single string
	if one = len(all[0]) > 0 && all[0][0] == '"'; one {
		err = json.Unmarshal(all[0], &single)
		to = []string{single}
	} else {
		err = json.Unmarshal(all[0], &to)
	}
	if err != nil || len(to) == 0 {
		return nil, false, errs.New(
			errs.Invalid, "%s: the first argument must be a string or a list of strings with at least one",
			name,
		)
	}
	if len(all[1]) == 0 || all[1][0] != '{' {
		return nil, false, errs.New(errs.Invalid, "%s: the second argument must be an object", name)
	}
	d := json.NewDecoder(bytes.NewReader(all[1]))
	d.DisallowUnknownFields()
	if err := d.Decode(options); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return nil, false, errs.New(errs.Invalid, "%s: %s must be a string", name, wrong.Field)
		}
		return nil, false, errs.New(errs.Invalid, "%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return to, one, nil
}
