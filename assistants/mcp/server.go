package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
)

// The bounds of what is read of a server, beside those of link.
const (
	maxPages      = 10 // of its list of tools
	maxReconnects = 3  // in one conversation
	maxMessage    = 1 << 10
	maxKept       = 256 << 10 // bytes of the list of tools that a connection may keep
)

// codeRejected is the code of the errors that the SDK returns for requests that did not reach a
// server, or that it refused for now: the session goes on.
const codeRejected = -32005

// server is the server of a skill in one conversation: one connection, made again if it breaks.
type server struct {
	skill  *skill
	config config
	link   *link
	client *http.Client
	redact func(string) string
	log    *slog.Logger
	id     string // of the conversation, for idempotency keys

	mu         sync.Mutex
	session    *sdk.ClientSession // nil: it must be made
	reconnects int
	calls      int
}

// connect returns the session, which it makes if there is none.
func (s *server) connect(ctx context.Context) (*sdk.ClientSession, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		return s.session, nil
	}
	if s.reconnects++; s.reconnects > maxReconnects+1 {
		return nil, errors.New("the connection has broken too often")
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "tenantcontent", Version: "1"}, &sdk.ClientOptions{
		// it offers the server nothing: no sampling, no questions to people, no folders
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	session, err := c.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: s.config.URL, HTTPClient: s.client,
		MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: int(s.skill.MaxBytes),
	}, nil)
	if err == nil {
		s.session = session
	}
	return session, err
}

// drop ends a session that is not used again.
func (s *server) drop(session *sdk.ClientSession) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.session = nil
	}
	if session != nil {
		go func() { _ = session.Close() }() // it tells the server, which may be slow: 5 seconds at most
	}
}

// forget ends the connection, if much was sent on it: its client keeps lists of tools. The next
// call makes another one.
func (s *server) forget() {
	if s.skill.MaxBytes*connectFactor-s.link.left() <= maxKept {
		return
	}
	s.mu.Lock()
	session := s.session
	s.reconnects-- // it is not broken
	s.mu.Unlock()
	s.drop(session)
}

// close ends the connection.
func (s *server) close() {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	s.drop(session)
}

// list returns the tools of the server that the configuration has, in the order of its list.
func (s *server) list(ctx context.Context) ([]*sdk.Tool, error) {
	s.link.allow(s.skill.MaxBytes, connectFactor)
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]*sdk.Tool, len(s.config.Tools))
	p := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := session.ListTools(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if at := slices.Index(s.config.Tools, t.Name); at >= 0 && found[at] == nil {
				found[at] = t
			}
		}
		if p.Cursor = page.NextCursor; p.Cursor == "" {
			break
		}
	}
	return found, nil
}

// tools returns the tools that a model is given of those of a list, in which nil is one that the
// server does not have. Errors, beside the tools: errs.NotFound naming those.
func (s *server) tools(skill string, listed []*sdk.Tool) (tools []chat.Tool, err error) {
	var missing []string
	left := maxSchemas
	names := map[string]bool{}
	for i, t := range listed {
		if t == nil {
			missing = append(missing, s.config.Tools[i])
			continue
		}
		own := strings.Clone(t.Name) // of all that the server has sent of a tool, nothing else is kept
		name, schema := toolName(skill, t.Name, names), s.schema(t)
		if left -= len(schema); left < 0 {
			missing = append(missing, t.Name+" (its parameters are too long)")
			left += len(schema)
			continue
		}
		readOnly := t.Annotations != nil && t.Annotations.ReadOnlyHint
		tools = append(tools, chat.Tool{
			Tool: ai.Tool{
				Name:        name,
				Description: s.short(cmp.Or(t.Description, t.Title), maxDescription),
				Parameters:  schema,
			},
			Confirm: s.config.Confirm == confirmAlways || s.config.Confirm == confirmChanges && !readOnly,
			Run:     func(ctx context.Context, c ai.ToolCall) (string, error) { return s.call(ctx, own, c) },
		})
	}
	if len(missing) > 0 {
		s.log.Warn("an MCP server does not have tools that a skill names", "tools", strings.Join(missing, ", "))
		err = errs.New(
			errs.NotFound, "The MCP server does not have these tools, which are not available now: %s.",
			s.short(strings.Join(missing, ", "), maxMessage),
		)
	}
	return tools, err
}

// call does a call of a tool.
func (s *server) call(ctx context.Context, tool string, c ai.ToolCall) (string, error) {
	s.mu.Lock()
	s.calls++
	p := &sdk.CallToolParams{
		Meta: sdk.Meta{"idempotencyKey": fmt.Sprintf("%s.%d.%.100s", s.id, s.calls, c.ID)},
		Name: tool, Arguments: json.RawMessage(c.Arguments),
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, s.skill.Call, errSlow)
	defer cancel()
	result, err := s.try(ctx, p)
	if errors.Is(err, sdk.ErrSessionMissing) { // the server has forgotten the session, and so has not done the call
		result, err = s.try(ctx, p)
	}
	if err != nil {
		return "", s.explain(ctx, "do the call", err)
	}
	text := s.text(result)
	switch {
	case result.NeedsInput():
		return "", errs.New(errs.Invalid, "The tool asks for more input from a person, which it cannot have here.")
	case result.IsError:
		return "", errs.New(errs.Invalid, "%s", cmp.Or(text, "The tool has failed."))
	}
	return text, nil
}

// try does a call once. A session that is broken is not used again.
func (s *server) try(ctx context.Context, p *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	s.link.allow(s.skill.MaxBytes, 1)
	session, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, p)
	var refused *jsonrpc.Error
	if err != nil && !errors.As(err, &refused) {
		s.drop(session)
	}
	return result, err
}

// explain returns the error of a request for the model, and writes it into the log: what the server
// was to do, and why it has not.
func (s *server) explain(ctx context.Context, what string, err error) error {
	slow := errors.Is(context.Cause(ctx), errSlow)
	if ctx.Err() != nil && !slow {
		return context.Cause(ctx)
	}
	status, failed := s.link.failure()
	cause := s.short(err.Error(), maxMessage)
	s.log.WarnContext(ctx, "an MCP server failed", "err", cause, "status", status)
	unavailable := func(why string) error {
		return errs.Wrap(errs.Unavailable, errors.New(cause), "The MCP server did not %s: %s", what, why)
	}
	var refused *jsonrpc.Error
	answered := errors.As(err, &refused) && refused.Code != codeRejected
	switch {
	case slow:
		return unavailable("it has not answered in time. What it was asked for may be done all the same.")
	case errors.Is(failed, errLarge):
		return unavailable("its answer is too large.")
	case errors.Is(failed, errRequests):
		return unavailable("it has asked for too much itself.")
	case errors.Is(failed, egress.ErrDenied):
		return unavailable("connections to its address are denied by the configuration of this server.")
	case answered:
		return unavailable("it answers: " + s.short(refused.Message, maxMessage))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return unavailable(fmt.Sprintf("it does not accept the headers of the skill (status %d).", status))
	case status >= 300 && status < 400:
		return unavailable("it redirects to another address, which is not followed. The skill must have the right one.")
	case status != 0:
		return unavailable(fmt.Sprintf("it answers with the status %d.", status))
	case failed != nil:
		return unavailable("it cannot be reached.")
	}
	return unavailable("its answer cannot be read.")
}
