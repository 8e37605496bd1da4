// Package ai is the seam to language models: the interface that chats, assistants and agents call,
// and the values that it exchanges.
//
// ai/openai implements it for servers with OpenAI's API, and internal/chat runs conversations with
// tools on it. A host can bring a Provider of its own, which must pass aitest.TestProvider.
package ai

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Provider runs language models. Its methods may be called by several goroutines at once.
type Provider interface {
	// Chat has a model continue a conversation, and calls emit with the parts of its answer as they
	// come, one after the other. It returns an error of emit as it is, and the cause of ctx if that
	// ends.
	//
	// Errors: errs.Invalid for a request that the model cannot answer, such as one that is too
	// long, or for a model that there is not; errs.Unavailable if the answer did not come, or ended
	// early, which an errs.RetryAfter can be wrapped in. Parts may have been emitted by then. No
	// error has the key of the model's server in its text.
	Chat(ctx context.Context, r Request, emit func(Part) error) (Answer, error)
}

// Imager is a Provider that makes images.
type Imager interface {
	// Image makes an image. Errors: as Provider.Chat.
	Image(ctx context.Context, r ImageRequest) (Image, error)
}

// Lister is a Provider that has a fixed list of models.
type Lister interface {
	// Models returns the names that Request.Model can have, the default one first.
	Models() []string
}

// Request is a conversation that a model is to continue.
type Request struct {
	Model     string    // "" for the default one
	Messages  []Message // at least one
	Tools     []Tool    // what the model may call; their names are distinct
	MaxTokens int       // of the answer at most; 0 for the model's own limit
	JSON      bool      // the answer must be one JSON object, which a message demands
	User      string    // a Pseudonym of the user, for the provider's records of abuse; "" for none
}

// Pseudonym returns a name for Request.User that does not show what identifies the user: a digest
// of it.
func Pseudonym(identity ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(identity, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Role is who a message is from.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is a message of a conversation.
type Message struct {
	Role       Role
	Content    string
	Images     []Image    // of a message from User
	ToolCalls  []ToolCall // of a message from Assistant
	ToolCallID string     // of a message from ToolRole: the call that it is the result of
}

// Image is a picture.
type Image struct {
	ContentType string // image/png, image/jpeg, image/gif or image/webp
	Data        []byte
}

// Tool is a function that a model may call.
type Tool struct {
	Name        string // [A-Za-z0-9_-]{1,64}
	Description string
	Parameters  json.RawMessage // JSON Schema of an object; nil for no parameters
}

// ToolCall is a request of a model to call a tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // as the model wrote them: mostly, but not always, a JSON object
}

// Object returns the arguments of a call, {} if there are none. It returns errs.Invalid if they are
// not a JSON object.
func (c ToolCall) Object() (json.RawMessage, error) {
	text := cmp.Or(strings.TrimSpace(c.Arguments), "{}")
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, errs.New(errs.Invalid, "The arguments must be a JSON object.")
	}
	return json.RawMessage(text), nil
}

// Part is a part of an answer: a piece of text, a piece of what the model has thought before it, or
// a complete call.
type Part struct {
	Text      string
	Reasoning string // is not part of the answer
	ToolCall  *ToolCall
}

// Finish is why an answer ended.
type Finish string

// The reasons.
const (
	Stopped  Finish = "stop"       // the answer is complete
	Calls    Finish = "tool-calls" // the model waits for the results of its calls
	Length   Finish = "length"     // the answer was cut at MaxTokens, or at the model's own limit
	Filtered Finish = "filtered"   // the provider left the rest out
)

// Answer is what is known of an answer when it has ended.
type Answer struct {
	Model  string // as the model's server names it
	Finish Finish
	Usage  Usage
}

// Usage is what requests have used up. Servers that do not count leave it zero.
type Usage struct {
	InputTokens, OutputTokens int
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens}
}

// ImageRequest describes an image.
type ImageRequest struct {
	Model  string // "" for the default one
	Prompt string
	Size   string // such as 1024x1024; "" for the model's own
	User   string // see Request.User
}

// None is the Provider of a program without one.
type None struct{}

// Chat returns errs.Unavailable with a sentence about how to configure a provider.
func (None) Chat(context.Context, Request, func(Part) error) (Answer, error) {
	return Answer{}, errs.New(
		errs.Unavailable,
		"This server has no language model. Its operator configures one: Config.AI in a program, "+
			"TENANTCONTENT_AI_URL, TENANTCONTENT_AI_KEY and TENANTCONTENT_AI_MODELS for the server.",
	)
}

// Configured returns the error of None if there is no provider, else nil.
func Configured(p Provider) error {
	if _, none := p.(None); !none && p != nil {
		return nil
	}
	_, err := None{}.Chat(context.Background(), Request{}, nil)
	return err
}
