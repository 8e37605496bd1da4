package httpapi

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/rest"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// assistantChatRoutes serves what a language model answers for an assistant. Holders of a token of
// an assistant call them, too.
type assistantChatRoutes struct{ chats }

// routes returns the rows of the route table, unless the host keeps assistants itself.
func (a assistantChatRoutes) routes() []rest.Route {
	if slices.Contains(a.HostKinds, assistants.Kind) {
		return nil
	}
	return []rest.Route{
		{
			Method:  post,
			Pattern: "/api/assistants/:id/_chat",
			Name:    "chatWithAssistant",
			Grants:  nothing,
			AnyType: true,
			Caller:  a.chatter,
			Summary: "Talk to an assistant",
			Guard:   a.needsModel,
			Takes:   openapi.Input[chatInput](),
			Gives:   openapi.OK(openapi.Bytes("text/event-stream")),
			Fails:   []int{400, 403, 404, 503},
			Handle:  a.chatWithAssistant,
		},
		{
			Method:  post,
			Pattern: "/api/assistants/:id/_image",
			Name:    "makeAssistantImage",
			Grants:  nothing,
			AnyType: true,
			Caller:  a.chatter,
			Options: imageInput{},
			Summary: "Make an image",
			Guard:   a.needsImages,
			Gives:   openapi.OK(openapi.Bytes("image/*")),
			Fails:   []int{400, 403, 404},
			Handle:  a.makeAssistantImage,
		},
	}
}

// talkable returns the assistant of a request, or a draft, that the caller or visitor may talk to.
// Errors: errs.NotFound; errs.Forbidden.
func (a chats) talkable(r *rest.Request) (assistants.Assistant, error) {
	return a.Assistants.CheckTalk(r.Context(), r.Param("id"), visitOf(r).visitor != nil)
}

// chatWithAssistant serves POST /api/assistants/{id}/_chat {messages, model?}: 200 and the answer
// of the assistant as server-sent events, see chatEvents. messages is the whole conversation, as
// nothing of it is kept. What the assistant knows and its tools have the rights of the caller. A
// draft answers those who may change it. 400 for a model that there is not, and for instructions
// that cannot be expanded; 403; 404; 429 for too many at once.
func (a assistantChatRoutes) chatWithAssistant(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Decode[chatInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	as, err := a.talkable(r)
	if err != nil {
		return rest.Reply{}, err
	}
	messages, model, err := a.conversation(in)
	if err != nil {
		return rest.Reply{}, err
	}
	return a.chatEvents(r, func(ctx context.Context) (chat.Options, func(), error) {
		return a.Conversations.Begin(ctx, as, conversation.Input{
			Messages: messages,
			Model:    model,
			Models:   a.models(),
			User:     modelUser(r),
			Visitor:  visitOf(r).visitor != nil,
		})
	}, as.ID)
}

// needsImages guards the routes that a model answers with images: see needsAI; 503 without such a
// model.
func (a assistantChatRoutes) needsImages(r *rest.Request) error {
	if err := a.needsAI(r); err != nil {
		return err
	}
	return conversation.MakesImages(a.AI)
}

// imageInput describes an image.
type imageInput struct {
	Prompt rest.Field[string] `json:"prompt"`
	Size   rest.Field[string] `json:"size"`
}

// makeAssistantImage serves POST /api/assistants/{id}/_image {prompt, size?}: 200 and an image, of
// at most 8 MiB, with its content type; it is not kept. 400 naming the field; 403; 404; 429 for too
// many at once; 502 for an image that is too large.
func (a assistantChatRoutes) makeAssistantImage(r *rest.Request) (rest.Reply, error) {
	in, err := rest.Options[imageInput](r)
	if err != nil {
		return rest.Reply{}, err
	}
	if _, err := a.talkable(r); err != nil {
		return rest.Reply{}, err
	}
	wanted := ai.ImageRequest{User: modelUser(r)}
	in.Prompt.Apply(&wanted.Prompt)
	in.Size.Apply(&wanted.Size)
	var image ai.Image
	if err := a.ask(r, func(ctx context.Context) error {
		return a.Conversations.Image(ctx, wanted, func(made ai.Image) error {
			image = made
			return nil
		})
	}); err != nil {
		return rest.Reply{}, err
	}
	return rest.Reply{Status: http.StatusOK, Header: map[string]string{"Content-Type": image.ContentType},
		Holds: int64(len(image.Data)), Stream: func(w io.Writer) error {
			_, err := w.Write(image.Data)
			return err
		}}, nil
}
