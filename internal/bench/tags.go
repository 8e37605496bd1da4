package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// unchangedSmall reads a color that the client has already, against a read of the whole color.
func unchangedSmall(_ context.Context, w *world) (result, error) {
	return w.unchanged(callers, "/api/colors/color-000001")
}

// unchangedLarge reads a dataset of nearly 1 MiB that the client has already, against a read of the
// whole dataset.
func unchangedLarge(_ context.Context, w *world) (result, error) {
	body, err := json.Marshal(map[string]any{
		"name": "Large",
		"data": map[string]string{"text": strings.Repeat("some text ", 100_000)},
	})
	if err != nil {
		return result{}, err
	}
	answer, err := w.send(http.MethodPost, "/api/datasets", string(body))
	if err != nil {
		return result{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	var made struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
		return result{}, err
	}
	return w.unchanged(1, "/api/datasets/"+made.ID)
}

// unchanged measures reads of one resource with its tag (304) against those without (200), in
// requests a second.
func (w *world) unchanged(n int, path string) (result, error) {
	answer, err := w.send(http.MethodGet, path, "")
	if err != nil {
		return result{}, err
	}
	_ = answer.Body.Close()
	tag := answer.Header.Get("ETag")
	side := func(header string, small bool) func() (float64, error) {
		return func() (float64, error) {
			return throughput(w.ours, w.token, n, 1500*time.Millisecond, func(c *caller, _, _ int) error {
				c.more = header
				size, err := c.do(http.MethodGet, path, "")
				if err == nil && small != (size == 0) {
					err = fmt.Errorf("an answer of %d bytes with %q", size, header)
				}
				return err
			})
		}
	}
	ours, whole, ratio, err := inTurn(side("If-None-Match: "+tag+"\r\n", true), side("", false))
	return result{
		ours: perSecond(ours) + " unchanged", bare: perSecond(whole) + " whole",
		ratio: ratio, must: "> 1.00", met: ratio > 1,
	}, err
}

// send sends one request as the superuser.
func (w *world) send(method, path, body string) (*http.Response, error) {
	return w.sendAs("application/json", method, path, body)
}

// sendAs is send for a body of a media type.
func (w *world) sendAs(mediaType, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequest(method, "http://"+w.ours+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	r.Header.Set("Content-Type", mediaType)
	answer, err := http.DefaultClient.Do(r)
	if err == nil && answer.StatusCode >= 300 {
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s %s: %s %s", method, path, answer.Status, text)
	}
	return answer, err
}
