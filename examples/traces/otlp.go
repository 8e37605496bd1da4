package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans as JSON of OTLP over HTTP.
type exporter struct {
	endpoint string
	client   *http.Client
}

type (
	export struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   attributes   `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name string `json:"name"`
	}
	attributes struct {
		Attributes []member `json:"attributes"`
	}
	member struct {
		Key   string            `json:"key"`
		Value map[string]string `json:"value"`
	}
	span struct {
		TraceID      string   `json:"traceId"`
		SpanID       string   `json:"spanId"`
		ParentSpanID string   `json:"parentSpanId,omitempty"`
		Name         string   `json:"name"`
		Kind         int      `json:"kind"`
		Start        string   `json:"startTimeUnixNano"`
		End          string   `json:"endTimeUnixNano"`
		Attributes   []member `json:"attributes"`
		Status       status   `json:"status"`
	}
	status struct {
		Code    int    `json:"code"`
		Message string `json:"message,omitempty"`
	}
)

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	var all export
	for _, s := range spans {
		all.ResourceSpans = append(all.ResourceSpans, resourceSpans{
			Resource: attributes{members(s.Resource().Attributes())},
			ScopeSpans: []scopeSpans{{
				Scope: scope{s.InstrumentationScope().Name}, Spans: []span{encode(s)},
			}},
		})
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := e.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", e.endpoint, answer.Status)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *exporter) Shutdown(context.Context) error { return nil }

func encode(s sdktrace.ReadOnlySpan) span {
	out := span{
		TraceID: s.SpanContext().TraceID().String(), SpanID: s.SpanContext().SpanID().String(),
		Name: s.Name(), Kind: int(s.SpanKind()), Attributes: members(s.Attributes()),
		Start: strconv.FormatInt(s.StartTime().UnixNano(), 10), End: strconv.FormatInt(s.EndTime().UnixNano(), 10),
	}
	if s.Parent().IsValid() {
		out.ParentSpanID = s.Parent().SpanID().String()
	}
	if s.Status().Code == codes.Error {
		out.Status = status{2, s.Status().Description}
	}
	return out
}

// members returns attributes. Those of the library are texts and whole numbers.
func members(all []attribute.KeyValue) []member {
	out := []member{}
	for _, a := range all {
		kind := "stringValue"
		if a.Value.Type() == attribute.INT64 {
			kind = "intValue"
		}
		out = append(out, member{string(a.Key), map[string]string{kind: a.Value.Emit()}})
	}
	return out
}
