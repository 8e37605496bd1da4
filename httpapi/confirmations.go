package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/confirmations"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
)

// modelPlace is the place of a conversation among those that models work on: see api.modelCall.
type modelPlace struct {
	a     *api
	r     *request
	leave func()
}

// takePlace waits for a place. Errors: errs.Busy.
func (a *api) takePlace(r *request) (*modelPlace, error) {
	leave, err := a.modelCall(r)
	return &modelPlace{a, r, leave}, err
}

// modelCallRetry is the pause before a conversation tries to get its place back.
const modelCallRetry = 200 * time.Millisecond

// free gives the place to others.
func (p *modelPlace) free() {
	if p.leave != nil {
		p.leave()
		p.leave = nil
	}
}

// back takes a place again, for which it waits longer than a new conversation: until a time. Errors: errs.Busy.
func (p *modelPlace) back(ctx context.Context, until time.Time) (err error) {
	for {
		p.leave, err = p.a.modelCall(p.r)
		if errs.CodeOf(err) != errs.Busy || p.a.Now().After(until) {
			return err
		}
		select { // a refusal can come at once
		case <-ctx.Done():
			return err
		case <-time.After(modelCallRetry):
		}
	}
}

// confirmEvent asks the person for a decision.
type confirmEvent struct {
	CallID         string   `json:"callId"`
	Name           string   `json:"name"`
	Arguments      string   `json:"arguments"` // a JSON object, exactly as the tool gets it
	ConfirmationID string   `json:"confirmationId"`
	ExpiresAt      hal.Time `json:"expiresAt"`
}

// person returns who makes a request, as a text: the caller, or the visitor with this token, and not the user who made it.
func person(r *request) string {
	if r.visitor != nil {
		return "visitor " + r.visitor.Token
	}
	return "user " + r.who.User
}

// confirm asks the caller of a conversation with an assistant to confirm a call, with the event confirm, and waits for the decision at
// decideCall. The conversation has no place meanwhile. A conversation that gets none after the decision ends with end, its call undone.
func (a *api) confirm(ctx context.Context, r *request, assistant string, place *modelPlace, call ai.ToolCall, send func(string, any) error, end context.CancelCauseFunc) (bool, error) {
	until := time.Time{}
	approved, err := a.Confirmations.Ask(ctx, assistant, person(r), func(c confirmations.Confirmation) error {
		until = c.ExpiresAt
		place.free()
		return send("confirm", confirmEvent{call.ID, call.Name, call.Arguments, c.ID, hal.Time(c.ExpiresAt)})
	})
	if place.leave == nil && ctx.Err() == nil {
		if busy := place.back(ctx, until); busy != nil {
			end(busy)
			return false, errors.Join(err, busy)
		}
	}
	return approved, err
}

// confirmInput is a decision.
type confirmInput struct {
	ConfirmationID field[string] `json:"confirmationId"`
	Approve        field[bool]   `json:"approve"`
}

// confirmationRoutes serves the calls of assistants that wait for a person.
type confirmationRoutes struct{ *api }

// routes returns the rows of the route table, unless the host keeps assistants itself.
func (a confirmationRoutes) routes() []Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	return []Route{
		{Method: post, Pattern: "/api/assistants/:id/_chat/_confirm", Name: "confirmAssistantCall", Grants: decisions, Chatter: true, Writes: InTx, Options: confirmInput{}, Summary: "Allow or decline a call that an assistant waits with", guard: a.needsAI, handle: a.confirmCall},
	}
}

// confirmCall serves POST /api/assistants/{id}/_chat/_confirm {confirmationId, approve}: 200, and the conversation that waits with the event confirm
// goes on, whichever server has it: the call is done, or declined. 404 for whom the event was not sent to, and once it is decided or over.
func (a confirmationRoutes) confirmCall(r *request) (reply, error) {
	in, err := options[confirmInput](r)
	if err != nil {
		return reply{}, err
	}
	id, approve := "", false
	in.ConfirmationID.apply(&id)
	in.Approve.apply(&approve)
	switch {
	case id == "":
		return reply{}, errs.New(errs.Invalid, "confirmationId is required: the event confirm has it")
	case in.Approve.Value == nil:
		return reply{}, errs.New(errs.Invalid, "approve is required: true or false")
	}
	as, err := a.talkable(r)
	if err != nil {
		return reply{}, err
	}
	if err := a.Confirmations.Decide(r.Context(), as.ID, person(r), id, approve); err != nil {
		return reply{}, err
	}
	return done()
}
