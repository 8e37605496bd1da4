package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
)

// receiver is a receiver of OTLP that keeps spans as "name < parent".
type receiver struct {
	mu  sync.Mutex
	all []span
	bad []string
}

// ServeHTTP implements http.Handler.
func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var in export
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&in)
	if err != nil || r.Method+r.URL.Path+r.Header.Get("Content-Type") != "POST/v1/tracesapplication/json" {
		c.bad = append(c.bad, fmt.Sprint(r.Method, r.URL, err))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	for _, resource := range in.ResourceSpans {
		if fmt.Sprint(resource.Resource.Attributes) != "[{service.name map[stringValue:example]}]" {
			c.bad = append(c.bad, fmt.Sprint(resource.Resource))
		}
		for _, s := range resource.ScopeSpans {
			c.all = append(c.all, s.Spans...)
		}
	}
	_, _ = w.Write([]byte("{}"))
}

func TestRun(t *testing.T) {
	is := is.New(t)
	var got receiver
	server := httptest.NewServer(&got)
	defer server.Close()
	var out strings.Builder
	is.NoErr(run(t.Context(), t.TempDir(), server.URL, &out))
	is.Equal(out.String(), "msg=request path=/api/colors status=200 "+
		"trace_id=4bf92f3577b34da6a3ce929d0e0e4736\n200\n")

	is.Equal(len(got.bad), 0)
	names := map[string]string{"00f067aa0ba902b7": "the caller"}
	for _, s := range got.all {
		names[s.SpanID] = s.Name
	}
	var lines []string
	for _, s := range got.all {
		is.True(s.Start <= s.End && s.TraceID == "4bf92f3577b34da6a3ce929d0e0e4736")
		lines = append(lines, fmt.Sprintf("%s < %s (%d)", s.Name, names[s.ParentSpanID], s.Kind))
	}
	slices.Sort(lines)
	is.Equal(slices.Compact(lines), []string{
		"GET /api/colors < the caller (2)", "SELECT < GET /api/colors (3)",
	})
	for _, s := range got.all {
		is.True(!strings.Contains(fmt.Sprint(s), "limit"))
	}
}

// TestRunWithoutReceiver: requests are served although no span can be sent.
func TestRunWithoutReceiver(t *testing.T) {
	is := is.New(t)
	var out strings.Builder
	is.NoErr(run(t.Context(), t.TempDir(), "http://127.0.0.1:1", &out))
	is.True(strings.Contains(out.String(), "200\n"))
}
