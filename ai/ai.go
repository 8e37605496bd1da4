// Package ai defines the interface to language models that chats, assistants and agents call, and
// the values that it exchanges.
//
//	answer, err := provider.Chat(ctx, ai.Request{Messages: messages}, func(p ai.Part) error {
//		_, err := io.WriteString(w, p.Text)
//		return err
//	})
//
// ai/openai implements it for servers with OpenAI's API, and internal/chat runs conversations with
// tools on it. A host can implement its own Provider, which must pass aitest.TestProvider.
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
	// Chat has a model continue a conversation, and calls emit with each part of the answer as it
	// arrives. It returns an error of emit unchanged, and the cause of ctx if ctx ends.
	//
	// It returns errs.Invalid for an unknown model, or a request that the model cannot answer, such
	// as one that is too long. It returns errs.Unavailable if the answer did not arrive or ended
	// early. An errs.Unavailable can wrap an errs.RetryAfter. Parts may have been emitted before an
	// error. The text of an error does not contain the key of the model's server.
	Chat(ctx context.Context, r Request, emit func(Part) error) (Answer, error)
}

// Imager is a Provider that makes images.
type Imager interface {
	// Image makes an image. It returns errors as Provider.Chat does.
	Image(ctx context.Context, r ImageRequest) (Image, error)
}

// Lister is a Provider that has a fixed list of models.
type Lister interface {
	// Models returns the possible values of Request.Model, the default first.
	Models() []string
}

// Request is a conversation that a model is to continue.
type Request struct {
	Model     string    // "": the default model
	Messages  []Message // at least one
	Tools     []Tool    // tools that the model may call; their names are distinct
	MaxTokens int       // most tokens of the answer; 0: the model's limit
	JSON      bool      // the answer must be one JSON object, which a message demands
	User      string    // a Pseudonym of the user, for the provider's records of abuse, or ""
}

// Pseudonym returns a digest of identity for Request.User, which does not reveal the user.
func Pseudonym(identity ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(identity, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Role is the author of a message.
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
	Parameters  json.RawMessage // JSON Schema of an object; nil: it has no parameters
}

// ToolCall is a request of a model to call a tool.
type ToolCall struct {
	ID        string
	Name      string
	Arguments string // as the model wrote them: usually a JSON object
}

// Object returns the arguments of a call, or {} if it has no arguments. It returns errs.Invalid if
// they are not a JSON object.
func (c ToolCall) Object() (json.RawMessage, error) {
	text := cmp.Or(strings.TrimSpace(c.Arguments), "{}")
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, errs.New(errs.Invalid, "The arguments must be a JSON object.")
	}
	return json.RawMessage(text), nil
}

// Part is a part of an answer: some text, some reasoning of the model before the text, or a
// complete call.
type Part struct {
	Text      string
	Reasoning string // is not part of the answer
	ToolCall  *ToolCall
}

// Finish is the reason why an answer ended.
type Finish string

// The reasons.
const (
	Stopped  Finish = "stop"       // the answer is complete
	Calls    Finish = "tool-calls" // the model waits for the results of its calls
	Length   Finish = "length"     // the answer was cut at MaxTokens, or at the model's own limit
	Filtered Finish = "filtered"   // the provider withheld the rest
)

// Answer describes an answer after its end.
type Answer struct {
	Model  string // as the model's server names it
	Finish Finish
	Usage  Usage
}

// Usage is the number of tokens that requests have used. It is zero if the server does not count.
type Usage struct {
	InputTokens, OutputTokens int
}

// Plus returns the sum of both.
func (u Usage) Plus(v Usage) Usage {
	return Usage{InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens}
}

// ImageRequest describes an image.
type ImageRequest struct {
	Model  string // "": the default model
	Prompt string
	Size   string // such as 1024x1024; "": the model's default
	User   string // see Request.User
}

// None is the Provider of a program without a model.
type None struct{}

// Chat returns errs.Unavailable with a sentence about how to configure a provider.
func (None) Chat(context.Context, Request, func(Part) error) (Answer, error) {
	return Answer{}, errs.New(
		errs.Unavailable,
		"This server has no language model. Its operator configures one: Config.AI in a program, "+
			"TENANTCONTENT_AI_URL, TENANTCONTENT_AI_KEY and TENANTCONTENT_AI_MODELS for the server.",
	)
}

// Configured returns the error of None if p is nil or None, and nil otherwise.
func Configured(p Provider) error {
	if _, none := p.(None); !none && p != nil {
		return nil
	}
	_, err := None{}.Chat(context.Background(), Request{}, nil)
	return err
}
