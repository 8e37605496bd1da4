package chat_test

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// stalling is a Provider that does not answer before release is closed, and makes images.
type stalling struct {
	begun   chan string // the users of requests
	release chan struct{}
}

// Chat implements ai.Provider.
func (s stalling) Chat(ctx context.Context, r ai.Request, _ func(ai.Part) error) (ai.Answer, error) {
	s.begun <- r.User
	<-s.release
	return ai.Answer{Model: r.Model}, nil
}

// Image implements ai.Imager.
func (s stalling) Image(context.Context, ai.ImageRequest) (ai.Image, error) {
	return ai.Image{ContentType: "image/png"}, nil
}

// TestPlaces: the places of a user and of a group are limited, also for images. Without a free
// place, a new call is refused, and a call that continues a conversation waits.
func TestPlaces(t *testing.T) {
	is := is.New(t)
	s := stalling{make(chan string, 100), make(chan struct{})}
	places := chat.NewPlaces(0)
	people, agents := places.For(s, ""), places.For(s, "agents")
	acme := actor.With(t.Context(), actor.Actor{Tenant: "acme", User: "mia"})
	answers := make(chan error, 100)
	ask := func(ctx context.Context, of ai.Provider, user string) {
		_, err := of.Chat(ctx, ai.Request{User: user}, nil)
		answers <- err
	}
	for range chat.MaxAtOnceOfUser {
		go ask(acme, people, "mia")
		is.Equal(<-s.begun, "mia")
	}
	for _, agent := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		go ask(acme, agents, agent)
		is.Equal(<-s.begun, agent)
	}
	for user, of := range map[string]ai.Provider{"mia": people, "i": agents} {
		ask(acme, of, user)
		is.Equal(errs.CodeOf(<-answers), errs.Busy)
		_, err := of.(ai.Imager).Image(acme, ai.ImageRequest{User: user})
		is.Equal(errs.CodeOf(err), errs.Busy)
	}
	evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "mia"})
	for user, ctx := range map[string]context.Context{"tim": acme, "mia": evil} { // they have other places
		_, err := people.(ai.Imager).Image(ctx, ai.ImageRequest{User: user})
		is.NoErr(err)
	}
	go ask(chat.Continue(acme), people, "mia")
	select {
	case err := <-answers:
		t.Fatalf("a call that continues a conversation ended with %v, not after the others", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(s.release)
	for range 2*chat.MaxAtOnceOfUser + 1 {
		is.NoErr(<-answers)
	}
}

// TestPlacesWithoutUser: a call without the User of a request counts for the user who makes it,
// together with those that name this user.
func TestPlacesWithoutUser(t *testing.T) {
	is := is.New(t)
	s := stalling{make(chan string, 100), make(chan struct{})}
	people := chat.NewPlaces(0).For(s, "")
	mia, tim := actor.Actor{Tenant: "acme", User: "mia"}, actor.Actor{Tenant: "acme", User: "tim"}
	answers := make(chan error, chat.MaxAtOnceOfUser)
	for i := range chat.MaxAtOnceOfUser {
		r := ai.Request{}
		if i%2 == 0 {
			r.User = chat.UserOf(mia)
		}
		go func() {
			_, err := people.Chat(actor.With(t.Context(), mia), r, nil)
			answers <- err
		}()
		is.Equal(<-s.begun, r.User)
	}
	image := func(ctx context.Context, user string) errs.Code {
		_, err := people.(ai.Imager).Image(ctx, ai.ImageRequest{User: user})
		return errs.CodeOf(err)
	}
	is.Equal(image(actor.With(t.Context(), mia), ""), errs.Busy)
	is.Equal(image(actor.With(t.Context(), mia), chat.UserOf(mia)), errs.Busy)
	is.Equal(image(actor.With(t.Context(), tim), ""), errs.Code(""))
	close(s.release)
	for range chat.MaxAtOnceOfUser {
		is.NoErr(<-answers)
	}
}

// drawing is a Provider that calls a tool in its first answer, and makes images.
type drawing struct{ answers *int }

// Chat implements ai.Provider.
func (d drawing) Chat(_ context.Context, _ ai.Request, emit func(ai.Part) error) (ai.Answer, error) {
	if *d.answers++; *d.answers > 1 {
		return ai.Answer{Finish: ai.Stopped}, emit(ai.Part{Text: "Done."})
	}
	return ai.Answer{}, emit(ai.Part{ToolCall: &ai.ToolCall{ID: "a", Name: "draw", Arguments: "{}"}})
}

// Image implements ai.Imager.
func (drawing) Image(context.Context, ai.ImageRequest) (ai.Image, error) { return ai.Image{}, nil }

// TestContinues: all calls of a conversation but the first one continue it, also those that its
// tools make.
func TestContinues(t *testing.T) {
	is := is.New(t)
	var got []chat.Request
	p := chat.Around(drawing{new(int)}, func(
		ctx context.Context, r chat.Request, do func(context.Context) error,
	) error {
		got = append(got, r)
		return do(ctx)
	})
	draw := chat.Tool{Tool: ai.Tool{Name: "draw"}, Run: func(ctx context.Context, _ ai.ToolCall) (string, error) {
		_, err := p.(ai.Imager).Image(ctx, ai.ImageRequest{User: "u"})
		return "It is shown.", err
	}}
	_, err := chat.Run(
		t.Context(), chat.Options{Provider: p, Request: ask, Tools: []chat.Tool{draw}},
		func(chat.Event) error { return nil },
	)
	is.NoErr(err)
	is.Equal(got, []chat.Request{{}, {Image: true, User: "u", Continues: true}, {Continues: true}})
}
