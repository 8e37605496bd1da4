package ai_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
)

// parrot is a Provider of a host: it repeats the last message.
type parrot struct{}

func (parrot) Chat(_ context.Context, r ai.Request, emit func(ai.Part) error) (ai.Answer, error) {
	last := r.Messages[len(r.Messages)-1].Content
	if err := emit(ai.Part{Text: last}); err != nil {
		return ai.Answer{}, err
	}
	return ai.Answer{Model: "parrot", Finish: ai.Stopped, Usage: ai.Usage{InputTokens: 1, OutputTokens: 1}}, nil
}

func Example() {
	ask := ai.Request{Messages: []ai.Message{{Role: ai.User, Content: "Hello"}}}
	for _, p := range []ai.Provider{parrot{}, ai.None{}} {
		answer, err := p.Chat(context.Background(), ask, func(p ai.Part) error {
			fmt.Println(p.Text)
			return nil
		})
		fmt.Println(answer.Finish, errors.Is(err, errs.Unavailable))
	}
	// Output:
	// Hello
	// stop false
	//  true
}
