package chat

import (
	"context"

	"github.com/tenantcontent/tenantcontent/ai"
)

// Request is a call of a Provider, for what is done around it.
type Request struct {
	Image     bool   // it makes an image; else it continues a conversation
	User      string // of ai.Request and ai.ImageRequest
	Continues bool   // it has the results of the model's last calls: something has been done for it
}

// Around returns a Provider that calls around in place of each call of p: around returns the error
// of do, which makes the call, or calls it not at all and returns another one. The Provider makes
// images, and has a list of models, if p does. One that is not configured is returned as it is.
func Around(p ai.Provider, around func(ctx context.Context, r Request, do func() error) error) ai.Provider {
	if ai.Configured(p) != nil {
		return p
	}
	images, makes := p.(ai.Imager)
	list, lists := p.(ai.Lister)
	chats, pictures := chatsAround{p, around}, imagesAround{images, around}
	switch {
	case makes && lists:
		return struct {
			chatsAround
			imagesAround
			ai.Lister
		}{chats, pictures, list}
	case makes:
		return struct {
			chatsAround
			imagesAround
		}{chats, pictures}
	case lists:
		return struct {
			chatsAround
			ai.Lister
		}{chats, list}
	}
	return chats
}

// chatsAround is a Provider with something around its calls.
type chatsAround struct {
	of     ai.Provider
	around func(ctx context.Context, r Request, do func() error) error
}

// Chat implements ai.Provider.
func (c chatsAround) Chat(
	ctx context.Context, r ai.Request, emit func(ai.Part) error,
) (answer ai.Answer, err error) {
	n := len(r.Messages)
	about := Request{User: r.User, Continues: n > 0 && r.Messages[n-1].Role == ai.ToolRole}
	err = c.around(ctx, about, func() (err error) {
		answer, err = c.of.Chat(ctx, r, emit)
		return err
	})
	return answer, err
}

// imagesAround is an Imager with something around its calls.
type imagesAround struct {
	of     ai.Imager
	around func(ctx context.Context, r Request, do func() error) error
}

// Image implements ai.Imager.
func (i imagesAround) Image(ctx context.Context, r ai.ImageRequest) (image ai.Image, err error) {
	err = i.around(ctx, Request{Image: true, User: r.User}, func() (err error) {
		image, err = i.of.Image(ctx, r)
		return err
	})
	return image, err
}
