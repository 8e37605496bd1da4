package chat

import (
	"context"

	"github.com/tenantcontent/tenantcontent/ai"
)

// Request describes a call of a Provider to the function of Around.
type Request struct {
	Image     bool   // the call makes an image; else it requests an answer
	User      string // the User of the ai.Request or ai.ImageRequest
	Continues bool   // the call belongs to a conversation in which a model has answered: see Continuing
}

// Around returns a Provider that calls around instead of p. around calls do, which calls p with the
// context that it gets, and returns its error. It may also return another error without calling do.
// The Provider makes images, and lists models, if p does. If p is not configured, Around returns p.
func Around(
	p ai.Provider, around func(ctx context.Context, r Request, do func(ctx context.Context) error) error,
) ai.Provider {
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

// chatsAround is the Provider that Around returns.
type chatsAround struct {
	of     ai.Provider
	around func(ctx context.Context, r Request, do func(ctx context.Context) error) error
}

// Chat implements ai.Provider.
func (c chatsAround) Chat(
	ctx context.Context, r ai.Request, emit func(ai.Part) error,
) (answer ai.Answer, err error) {
	about := Request{User: r.User, Continues: Continuing(ctx)}
	err = c.around(ctx, about, func(ctx context.Context) (err error) {
		answer, err = c.of.Chat(ctx, r, emit)
		return err
	})
	return answer, err
}

// imagesAround is the Imager that Around returns.
type imagesAround struct {
	of     ai.Imager
	around func(ctx context.Context, r Request, do func(ctx context.Context) error) error
}

// Image implements ai.Imager.
func (i imagesAround) Image(ctx context.Context, r ai.ImageRequest) (image ai.Image, err error) {
	about := Request{Image: true, User: r.User, Continues: Continuing(ctx)}
	err = i.around(ctx, about, func(ctx context.Context) (err error) {
		image, err = i.of.Image(ctx, r)
		return err
	})
	return image, err
}
