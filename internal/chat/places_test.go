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
	ask := func(ctx context.Context, of ai.Provider, user string, role ai.Role) {
		_, err := of.Chat(ctx, ai.Request{User: user, Messages: []ai.Message{{Role: role}}}, nil)
		answers <- err
	}
	for range chat.MaxAtOnceOfUser {
		go ask(acme, people, "mia", ai.User)
		is.Equal(<-s.begun, "mia")
	}
	for _, agent := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		go ask(acme, agents, agent, ai.User)
		is.Equal(<-s.begun, agent)
	}
	for user, of := range map[string]ai.Provider{"mia": people, "i": agents} {
		ask(acme, of, user, ai.User)
		is.Equal(errs.CodeOf(<-answers), errs.Busy)
		_, err := of.(ai.Imager).Image(acme, ai.ImageRequest{User: user})
		is.Equal(errs.CodeOf(err), errs.Busy)
	}
	evil := actor.With(t.Context(), actor.Actor{Tenant: "evil", User: "mia"})
	for user, ctx := range map[string]context.Context{"tim": acme, "mia": evil} { // they have other places
		_, err := people.(ai.Imager).Image(ctx, ai.ImageRequest{User: user})
		is.NoErr(err)
	}
	go ask(acme, people, "mia", ai.ToolRole)
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
