// Package datatools has the tools with which language models read datasets. internal/chat/assist
// and assistants/conversation import it.
package datatools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat"
)

// Limits of the rows that a model reads at once.
const (
	maxRows     = 200
	defaultRows = 50
)

// Reader reads datasets with the rights of the caller, by the names that the model knows.
type Reader interface {
	// Rows returns rows as a JSON array.
	Rows(ctx context.Context, name string, q datasets.Query) (json.RawMessage, error)
	// Count returns the number of rows that match a filter.
	Count(ctx context.Context, name string, filter json.RawMessage) (int, error)
}

// Tools returns the tools dataset_rows and dataset_count for the datasets with some names, or nil
// without names.
func Tools(names []string, read Reader) []chat.Tool {
	if len(names) == 0 {
		return nil
	}
	known, _ := json.Marshal(names) // strings can always be encoded
	parameters := func(more string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"dataset":{"type":"string","enum":` + string(known) +
			`},` +
			`"filter":{"type":"object","description":"Conditions that all must hold: {field: value} or {field: ` +
			`{operator: value}} with the operators eq, ne, lt, lte, gt, gte, in and contains"}` +
			more + `},"required":["dataset"]}`)
	}
	return []chat.Tool{
		{
			Tool: ai.Tool{Name: "dataset_rows",
				Description: fmt.Sprintf("Rows of a dataset, as JSON; %d unless limit says otherwise.", defaultRows),
				Parameters: parameters(
					fmt.Sprintf(
						`,"sort":{"type":"string","description":"A field, with a - before it for descending `+
							`order"},"limit":{"type":"integer","minimum":1,"maximum":%d}`,
						maxRows,
					))},
			Run: func(ctx context.Context, c ai.ToolCall) (string, error) { return rows(ctx, c, read) },
		},
		{
			Tool: ai.Tool{
				Name:        "dataset_count",
				Description: "How many rows of a dataset fit a filter.",
				Parameters:  parameters(""),
			},
			Run: func(ctx context.Context, c ai.ToolCall) (string, error) { return count(ctx, c, read) },
		},
	}
}

func rows(ctx context.Context, c ai.ToolCall, read Reader) (string, error) {
	var in struct {
		Dataset string          `json:"dataset"`
		Filter  json.RawMessage `json:"filter"`
		Sort    string          `json:"sort"`
		Limit   int             `json:"limit"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
		return "", errs.New(errs.Invalid, "dataset and sort must be strings, and limit a number.")
	}
	if in.Limit <= 0 {
		in.Limit = defaultRows
	}
	out, err := read.Rows(
		ctx, in.Dataset, datasets.Query{Filter: in.Filter, Sort: in.Sort, Limit: min(in.Limit, maxRows)},
	)
	return string(out), err
}

func count(ctx context.Context, c ai.ToolCall, read Reader) (string, error) {
	var in struct {
		Dataset string          `json:"dataset"`
		Filter  json.RawMessage `json:"filter"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
		return "", errs.New(errs.Invalid, "dataset must be a string.")
	}
	n, err := read.Count(ctx, in.Dataset, in.Filter)
	return fmt.Sprint(n), err
}
