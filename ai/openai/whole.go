package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
)

// whole is an answer that a server has sent in one object, although a stream was requested.
type whole struct {
	Model   string          `json:"model,omitempty"`
	Choices []wholeChoice   `json:"choices"`
	Usage   json.RawMessage `json:"usage,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type wholeChoice struct {
	Index        int            `json:"index"`
	Message      map[string]any `json:"message,omitempty"`
	Delta        map[string]any `json:"delta,omitempty"`
	FinishReason *string        `json:"finish_reason"`
}

// streamed replaces the body of a response, one JSON object that it reads from from, with a stream
// of one event. It returns a refusal for an object that is an error.
func streamed(res *http.Response, from io.Reader, body io.Closer) error {
	raw, err := io.ReadAll(from)
	_ = body.Close()
	if err != nil {
		return err
	}
	var w whole
	if err := json.Unmarshal(raw, &w); err != nil {
		return errors.New("the answer is neither a stream of events nor JSON")
	}
	if len(w.Error) > 0 && string(w.Error) != "null" || len(w.Choices) == 0 {
		return &refusal{status: http.StatusBadGateway, body: string(raw[:min(len(raw), maxRefusal)])}
	}
	for i := range w.Choices {
		c := &w.Choices[i]
		if c.Message != nil {
			c.Delta, c.Message = c.Message, nil
		}
		calls, _ := c.Delta["tool_calls"].([]any)
		for n, call := range calls {
			if members, ok := call.(map[string]any); ok && members["index"] == nil {
				members["index"] = n
			}
		}
	}
	event, err := json.Marshal(w)
	if err != nil {
		return err
	}
	res.Header.Set("Content-Type", "text/event-stream")
	res.Body = io.NopCloser(bytes.NewReader(append(append([]byte("data: "), event...), "\n\ndata: [DONE]\n\n"...)))
	return nil
}

// said returns the sentence of an error that a server has sent as JSON, or "".
func said(text string) string {
	from := strings.IndexAny(text, "{\"")
	if from < 0 {
		return ""
	}
	var sent any
	if json.NewDecoder(strings.NewReader(text[from:])).Decode(&sent) != nil {
		return ""
	}
	for range 4 {
		switch of := sent.(type) {
		case string:
			return of
		case []any:
			if len(of) == 0 {
				return ""
			}
			sent = of[0]
		case map[string]any:
			for _, name := range []string{"error", "message", "detail", "msg"} {
				if sent = of[name]; sent != nil {
					break
				}
			}
		default:
			return ""
		}
	}
	return ""
}
