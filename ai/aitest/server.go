// Package aitest has a model server for tests and the checks that every ai.Provider must pass. The
// server answers with the turns of a script over real HTTP, in the format of OpenAI's chat
// completions.
//
// Tests of the nouns, of httpapi and of hosts import it.
package aitest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
)

// Turn is an answer of the server: the text, the calls, each in pieces, then Finish and Usage.
type Turn struct {
	Text   []string // pieces
	Calls  []ai.ToolCall
	Finish ai.Finish // "": ai.Calls if there are calls, else ai.Stopped
	Usage  ai.Usage

	Status int               // another status than 200, with Body
	Header map[string]string // of the answer
	Body   string            // sent instead of the fields above, if it is not empty
	Image  []byte            // of POST images/generations

	Wait  <-chan struct{} // if not nil, the server waits for it after the first piece of text
	Pause time.Duration   // between two pieces
	Cut   bool            // the server closes the connection instead of ending the answer
	Stall bool            // the server sends nothing instead of the end, until the client disconnects
	Flood bool            // the server repeats the text endlessly
}

// Request is a request that the server has received.
type Request struct {
	Path          string
	Authorization string
	Model         string    `json:"model"`
	Messages      []Message `json:"messages"`
	Tools         []struct {
		Function struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Stream              bool            `json:"stream"`
	StreamOptions       json.RawMessage `json:"stream_options"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	User                string          `json:"user"`
	Prompt              string          `json:"prompt"` // of an image
	Size                string          `json:"size"`
	Body                string          `json:"-"`
}

// Message is a message as it is sent.
type Message struct {
	Role       string `json:"role"`
	Content    any    `json:"content"` // a string, or parts
	ToolCallID string `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// Text returns the content if it is a string.
func (m Message) Text() string {
	text, _ := m.Content.(string)
	return text
}

// Last returns the last message, or the zero Message.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Server is a model server. The caller of NewServer or NewReplier must close it.
type Server struct {
	URL string // of the API, for openai.Options

	http *httptest.Server

	mu       sync.Mutex
	script   []Turn
	reply    func(Request) Turn
	requests []Request
	gone     int
}

// NewServer starts a server that answers requests with the turns of a script, in order. After the
// last turn it answers 500.
func NewServer(script ...Turn) *Server {
	s := &Server{script: script}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = s.http.URL + "/v1"
	return s
}

// NewReplier starts a server that answers each request with the result of reply. reply may be
// called by several goroutines at once.
func NewReplier(reply func(Request) Turn) *Server {
	s := NewServer()
	s.reply = reply
	return s
}

// Close ends all connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Add adds turns to the script.
func (s *Server) Add(turns ...Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, turns...)
}

// Requests returns the requests received so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Gone returns how many clients have disconnected before the end of an answer.
func (s *Server) Gone() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// turn returns the next turn.
func (s *Server) turn(r Request) Turn {
	s.mu.Lock()
	s.requests = append(s.requests, r)
	reply := s.reply
	t := Turn{Status: http.StatusInternalServerError, Body: `{"error": {"message": "the script has no more turns"}}`}
	if reply == nil && len(s.script) > 0 {
		t, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	if reply != nil {
		return reply(r)
	}
	return t
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 16<<20))
	in := Request{Path: r.URL.Path, Authorization: r.Header.Get("Authorization"), Body: string(body)}
	if err := json.Unmarshal(body, &in); err != nil || r.Method != http.MethodPost {
		http.Error(w, `{"error": {"message": "the body is no JSON"}}`, http.StatusBadRequest)
		return
	}
	t := s.turn(in)
	for name, value := range t.Header {
		w.Header().Set(name, value)
	}
	if in.Path == "/v1/images/generations" && t.Image != nil {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"created": 1, "data": [{"b64_json": %q}]}`, base64.StdEncoding.EncodeToString(t.Image))
		return
	}
	if t.Body != "" || t.Status != 0 {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(max(t.Status, http.StatusOK))
		_, _ = io.WriteString(w, t.Body)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if err := (&stream{w: w, r: r, model: in.Model, usage: in.StreamOptions != nil}).send(t); err != nil {
		s.mu.Lock()
		s.gone++
		s.mu.Unlock()
	}
}

// stream is an answer that is being sent.
type stream struct {
	w     http.ResponseWriter
	r     *http.Request
	model string
	usage bool
	pause time.Duration
}

// send sends an answer. It returns an error if the client has disconnected.
func (s *stream) send(t Turn) error {
	s.pause = t.Pause
	if err := s.delta(`{"role": "assistant", "content": ""}`, "null"); err != nil {
		return err
	}
	for i := 0; i < len(t.Text) || t.Flood; i++ {
		if err := s.delta(`{"content": `+quoted(t.Text[i%len(t.Text)])+`}`, "null"); err != nil {
			return err
		}
		if i == 0 && t.Wait != nil {
			select {
			case <-t.Wait:
			case <-s.r.Context().Done():
				return s.r.Context().Err()
			}
		}
	}
	for i, c := range t.Calls {
		if err := s.call(i, c); err != nil {
			return err
		}
	}
	switch {
	case t.Cut:
		panic(http.ErrAbortHandler)
	case t.Stall:
		<-s.r.Context().Done()
		return s.r.Context().Err()
	}
	return s.end(t)
}

// call sends a call: its name, then its arguments in two pieces.
func (s *stream) call(i int, c ai.ToolCall) error {
	half := len(c.Arguments) / 2
	for _, piece := range []string{
		fmt.Sprintf(
			`{"index": %d, "id": %s, "type": "function", "function": {"name": %s, "arguments": ""}}`, i,
			quoted(c.ID), quoted(c.Name),
		),
		fmt.Sprintf(`{"index": %d, "function": {"arguments": %s}}`, i, quoted(c.Arguments[:half])),
		fmt.Sprintf(`{"index": %d, "function": {"arguments": %s}}`, i, quoted(c.Arguments[half:])),
	} {
		if err := s.delta(`{"tool_calls": [`+piece+`]}`, "null"); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) end(t Turn) error {
	finish := t.Finish
	if finish == "" {
		finish = ai.Stopped
		if len(t.Calls) > 0 {
			finish = ai.Calls
		}
	}
	name := map[ai.Finish]string{ai.Calls: "tool_calls", ai.Filtered: "content_filter"}[finish]
	if name == "" {
		name = string(finish)
	}
	if err := s.delta(`{}`, quoted(name)); err != nil {
		return err
	}
	if s.usage {
		u := t.Usage
		if err := s.event(fmt.Sprintf(`{"id": "1", "object": "chat.completion.chunk", "model": %s, "choices": [], `+
			`"usage": {"prompt_tokens": %d, "completion_tokens": %d, "total_tokens": %d}}`,
			quoted(s.model), u.InputTokens, u.OutputTokens, u.InputTokens+u.OutputTokens)); err != nil {
			return err
		}
	}
	return s.event("[DONE]")
}

// delta sends a piece of the answer.
func (s *stream) delta(delta, finish string) error {
	return s.event(fmt.Sprintf(`{"id": "1", "object": "chat.completion.chunk", "created": 1, "model": %s, `+
		`"choices": [{"index": 0, "delta": %s, "finish_reason": %s}]}`,
		quoted(s.model), delta, finish))
}

// event sends an event after a comment, as proxies insert them.
func (s *stream) event(data string) error {
	if _, err := io.WriteString(s.w, ": keep-alive\n\ndata: "+data+"\n\n"); err != nil {
		return err
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		return err
	}
	if s.pause > 0 {
		select {
		case <-time.After(s.pause):
		case <-s.r.Context().Done():
		}
	}
	return s.r.Context().Err()
}

func quoted(text string) string {
	b, _ := json.Marshal(strings.ToValidUTF8(text, "")) // a string can always be encoded
	return string(b)
}
