package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/ai/aitest"
	"github.com/tenantcontent/tenantcontent/ai/openai"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/assistants"
	"github.com/tenantcontent/tenantcontent/assistants/conversation"
	"github.com/tenantcontent/tenantcontent/content"
)

// model starts a model's server that answers at once, for as long as the world lasts.
func (w *world) model() (ai.Provider, error) {
	s := aitest.NewReplier(func(aitest.Request) aitest.Turn {
		return aitest.Turn{
			Text:  strings.Split(strings.Repeat("word ", 20), " "),
			Usage: ai.Usage{InputTokens: 100, OutputTokens: 20},
		}
	})
	w.modelURL = s.URL
	w.ends = append(w.ends, func() error { s.Close(); return nil })
	return openai.New(openai.Options{URL: s.URL, Models: []openai.Model{{Name: "bench"}}})
}

// maxChatOverhead is how much later than from the model's server the first byte of an answer may
// come.
const maxChatOverhead = 5 * time.Millisecond

// chatFirstByte measures the time to the first piece of text of a chat about an app, and that of
// the model's server itself.
func chatFirstByte(ctx context.Context, w *world) (result, error) {
	app, err := w.app.Apps.Create(w.admin, apps.App{Type: apps.Report, Name: "Chat"})
	if err != nil {
		return result{}, err
	}
	return firstTexts(ctx, w, "/api/apps/"+app.ID+"/chat", 0)
}

// assistantFirstByte measures the same of an assistant without knowledge.
func assistantFirstByte(ctx context.Context, w *world) (result, error) {
	as, err := w.app.Assistants.Create(w.admin, assistants.Assistant{Name: "Chat", Instructions: "Answer."})
	if err != nil {
		return result{}, err
	}
	return firstTexts(ctx, w, "/api/assistants/"+as.ID+"/_chat", 0)
}

// knowingFirstByte measures the same of an assistant that is told as many rows of a dataset of
// 10,000 as its budget has, beside a prompt of that size.
func knowingFirstByte(ctx context.Context, w *world) (result, error) {
	rows := make([]map[string]any, 10_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "city": "Berlin", "amount": i * 7 % 1000}
	}
	data, err := json.Marshal(map[string]any{
		"fields": []map[string]string{
			{"name": "id", "type": "numeric"}, {"name": "city", "type": "string"},
			{"name": "amount", "type": "numeric"},
		},
		"rows": rows,
	})
	if err != nil {
		return result{}, err
	}
	d, err := w.app.Content.Create(w.admin, content.Entity{Kind: "dataset", Name: "Orders", Data: data})
	if err != nil {
		return result{}, err
	}
	as, err := w.app.Assistants.Create(w.admin, assistants.Assistant{
		Name:     "Chat",
		Datasets: []assistants.Dataset{{DatasetID: d.ID, Mode: assistants.Full}},
		Skills:   []assistants.Skill{{Type: "query"}},
	})
	if err != nil {
		return result{}, err
	}
	return firstTexts(ctx, w, "/api/assistants/"+as.ID+"/_chat", 4*conversation.RowTokens)
}

// firstTexts measures the time to the first piece of text of a route, and that of the model's
// server itself with a prompt of some bytes.
func firstTexts(ctx context.Context, w *world, path string, prompt int) (result, error) {
	question := `{"role": "user", "content": "How are you?"}`
	told := `{"role": "system", "content": "` + strings.Repeat("x", prompt) + `"}`
	ours := func() (time.Duration, error) {
		return firstText(ctx, "http://"+w.ours+path, `{"messages": [`+question+`]}`, w.token, `data: {"text":`)
	}
	own := func() (time.Duration, error) {
		return firstText(
			ctx, w.modelURL+"/chat/completions",
			`{"model": "bench", "stream": true, "messages": [`+told+`, `+question+`]}`, "",
			`"delta": {"content": "word"}`,
		)
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
		ours: fmt.Sprintf("p50 %.2fms p99 %.2fms", a*1e3, percentile(took, 0.99)*1e3),
		bare: fmt.Sprintf("p50 %.2fms p99 %.2fms", b*1e3, percentile(bare, 0.99)*1e3), ratio: a / b,
		must: fmt.Sprintf("< 5ms more: %.2fms", (a-b)*1e3), met: a-b < maxChatOverhead.Seconds(),
	}, nil
}

// firstText returns how long a call lasts until a line of its answer that contains a text, and
// reads the rest.
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
