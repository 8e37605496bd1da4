package messages

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Call is what is known of a call of emit, notify or email by a tool of an agent or by a draft.
type Call struct {
	// Depth is how many agents and events have started each other until the call. An event beyond
	// MaxDepth that would start something is refused.
	Depth int
	// Key identifies the call. A call that is repeated because its outcome is unknown has the same
	// key, and what was done is not done again. An empty Key identifies nothing.
	Key string
	// Unsent checks notifications and e-mails as always, but neither sends nor stores them.
	Unsent bool
}

// MaxDepth is how many agents and events can start each other.
const MaxDepth = 3

type callKey struct{}

// WithCall returns a context for a call by a tool.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) Call {
	c, _ := ctx.Value(callKey{}).(Call)
	return c
}

// keyed is the namespace of ids that are made of keys.
var keyed = uuid.NewSHA1(uuid.Nil, []byte("messages of tenantcontent"))

// newID returns the id of the nth row that a call adds, which the call adds again if it is made
// again with its key.
func (s *Service) newID(ctx context.Context, n int) string {
	c := callOf(ctx)
	if c.Key == "" {
		return s.clock.NewID()
	}
	return uuid.NewSHA1(keyed, []byte(c.Key+"/"+strconv.Itoa(n))).String()
}

// emitted returns the event that a call has added before, with the same key.
func (s *Service) emitted(ctx context.Context, tenant, app, id string) (e Event, done bool, err error) {
	if callOf(ctx).Key == "" {
		return Event{}, false, nil
	}
	e, err = s.store.Event(ctx, tenant, app, id)
	if errs.CodeOf(err) == errs.NotFound {
		return Event{}, false, nil
	}
	return e, err == nil, err
}

// sent reports whether a call has added messages before, with the same key. It adds all of them or
// none.
func (s *Service) sent(ctx context.Context, tenant string, all []Message) (bool, error) {
	if callOf(ctx).Key == "" {
		return false, nil
	}
	ids := make([]string, len(all))
	for i, m := range all { // those to people who are gone may be, too
		ids[i] = m.ID
	}
	return s.store.HasMessages(ctx, tenant, ids)
}
