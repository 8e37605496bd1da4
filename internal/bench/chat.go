package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/apps"
)

// model starts a model's server that answers at once, for as long as the world lasts.
func (w *world) model() (ai.Provider, error) {
	s := aitest.NewReplier(func(aitest.Request) aitest.Turn {
		return aitest.Turn{Text: strings.Split(strings.Repeat("word ", 20), " "), Usage: ai.Usage{InputTokens: 100, OutputTokens: 20}}
	})
	w.modelURL = s.URL
	w.ends = append(w.ends, func() error { s.Close(); return nil })
	return openai.New(openai.Options{URL: s.URL, Models: []openai.Model{{Name: "bench"}}})
}

// maxChatOverhead is how much later than from the model's server the first byte of an answer may come.
const maxChatOverhead = 5 * time.Millisecond

// chatFirstByte measures the time to the first piece of text of a chat about an app, and that of the model's server itself.
func chatFirstByte(ctx context.Context, w *world) (result, error) {
	app, err := w.app.Apps.Create(w.admin, apps.App{Type: apps.Report, Name: "Chat"})
	if err != nil {
		return result{}, err
	}
	question := `[{"role": "user", "content": "How are you?"}]`
	ours := func() (time.Duration, error) {
		return firstText(ctx, "http://"+w.ours+"/api/apps/"+app.ID+"/chat", `{"messages": `+question+`}`, w.token, `data: {"text":`)
	}
	own := func() (time.Duration, error) {
		return firstText(ctx, w.modelURL+"/chat/completions", `{"model": "bench", "stream": true, "messages": `+question+`}`, "", `"delta": {"content": "word"}`)
	}
	const calls = 500
	var took, bare []float64 // seconds
	for i := range calls + 20 {
		a, err := ours()
		if err != nil {
			return result{}, err
		}
		b, err := own()
		if err != nil {
			return result{}, err
		}
		if i >= 20 { // the first ones warm up
			took, bare = append(took, a.Seconds()), append(bare, b.Seconds())
		}
	}
	a, b := percentile(took, 0.5), percentile(bare, 0.5)
	return result{
		ours: fmt.Sprintf("p50 %.2fms p99 %.2fms", a*1e3, percentile(took, 0.99)*1e3), bare: fmt.Sprintf("p50 %.2fms p99 %.2fms", b*1e3, percentile(bare, 0.99)*1e3), ratio: a / b,
		must: fmt.Sprintf("< 5ms more: %.2fms", (a-b)*1e3), met: a-b < maxChatOverhead.Seconds(),
	}, nil
}

// firstText returns how long a call lasts until a line of its answer that contains a text, and reads the rest.
func firstText(ctx context.Context, url, body, token, text string) (took time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	began := time.Now()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if took == 0 && strings.Contains(lines.Text(), text) {
			took = time.Since(began)
		}
	}
	if took == 0 {
		return 0, fmt.Errorf("%s: %s without text: %v", url, res.Status, lines.Err())
	}
	return took, lines.Err()
}
