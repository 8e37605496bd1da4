package httpapi

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
)

// confirmEvent asks the person for a decision.
type confirmEvent struct {
	CallID         string   `json:"callId"`
	Name           string   `json:"name"`
	Arguments      string   `json:"arguments"` // a JSON object, exactly as the tool gets it
	ConfirmationID string   `json:"confirmationId"`
	ExpiresAt      hal.Time `json:"expiresAt"`
}

// person returns who makes a request, as a text: the caller, or the visitor with this token, and
// not the user who made it.
func person(r *rest.Request) string {
	if visitOf(r).visitor != nil {
		return "visitor " + visitOf(r).visitor.Token
	}
	return "user " + r.Who.User
}

// confirm asks the caller of a conversation with an assistant to confirm a call, with the event
// confirm, and waits for the decision at decideCall.
func (a chats) confirm(
	ctx context.Context, r *rest.Request, assistant string, call ai.ToolCall, send func(string, any) error,
) (bool, error) {
	return a.Confirmations.Ask(ctx, assistant, person(r), func(c confirmations.Confirmation) error {
		return send("confirm", confirmEvent{call.ID, call.Name, call.Arguments, c.ID, hal.Time(c.ExpiresAt)})
	})
}

// confirmInput is a decision.
type confirmInput struct {
	ConfirmationID rest.Field[string] `json:"confirmationId"`
	Approve        rest.Field[bool]   `json:"approve"`
}

// confirmationRoutes serves the calls of assistants that wait for a person.
type confirmationRoutes struct{ chats }

// routes returns the rows of the route table, unless the host keeps assistants itself.
func (a confirmationRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:  post,
			Pattern: "/api/assistants/:id/_chat/_confirm",
			Name:    "confirmAssistantCall",
			Grants:  decisions,
			Caller:  a.chatter,
			Writes:  rest.InTx,
			Options: confirmInput{},
			Summary: "Allow or decline a call that an assistant waits with",
			Guard:   a.needsAI,
			Gives:   openapi.OK(openapi.None()),
			Fails:   []int{400, 403, 404},
			Handle:  a.confirmCall,
		},
	}
}

// confirmCall serves POST /api/assistants/{id}/_chat/_confirm {confirmationId, approve}: 200, and
// the conversation that waits with the event confirm goes on, whichever server has it: the call is
// done, or declined. 404 for whom the event was not sent to, and once it is decided or over.
func (a confirmationRoutes) confirmCall(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[confirmInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	id, approve := "", false
	in.ConfirmationID.Apply(&id)
	in.Approve.Apply(&approve)
	switch {
	case id == "":
		return rest.Reply{}, errs.New(errs.Invalid, "confirmationId is required: the event confirm has it")
	case in.Approve.Value == nil:
		return rest.Reply{}, errs.New(errs.Invalid, "approve is required: true or false")
	}
	as, err := a.talkable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	if err := a.Confirmations.Decide(r.Context(), as.ID, person(r), id, approve); err != nil {
		return rest.Reply{}, err
	}
	return rest.Done()
}
