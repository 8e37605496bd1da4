package datatools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/content/datasets"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat/datatools"
)

// reader records the request.
type reader struct{ asked string }

func (r *reader) Rows(_ context.Context, name string, q datasets.Query) (json.RawMessage, error) {
	r.asked = fmt.Sprintf("%s %s %q %d", name, q.Filter, q.Sort, q.Limit)
	return json.RawMessage(`[{"a":1}]`), nil
}

func (r *reader) Count(_ context.Context, name string, filter json.RawMessage) (int, error) {
	r.asked = fmt.Sprintf("%s %s", name, filter)
	return 7, nil
}

// TestArguments: the arguments of a model are passed to the reader in the correct form, or refused.
func TestArguments(t *testing.T) {
	is := is.New(t)
	r := &reader{}
	is.Equal(len(datatools.Tools(nil, r)), 0)
	tools := datatools.Tools([]string{`sa"les`}, r)
	for arguments, want := range map[string]string{
		`{"dataset": "sales"}`: `sales  "" 50`,
		`{"dataset": "sales", "limit": 9999, "sort": "-x", "filter": {"a": 1}}`: `sales {"a": 1} "-x" 200`,
	} {
		out, err := tools[0].Run(t.Context(), ai.ToolCall{Arguments: arguments})
		is.NoErr(err)
		is.Equal(out, `[{"a":1}]`)
		is.Equal(r.asked, want)
	}
	out, err := tools[1].Run(t.Context(), ai.ToolCall{Arguments: `{"dataset": "sales"}`})
	is.NoErr(err)
	is.Equal(out, "7")
	is.Equal(r.asked, "sales ")
	for _, tool := range tools {
		is.True(json.Valid(tool.Parameters))
		_, err := tool.Run(t.Context(), ai.ToolCall{Arguments: `{"dataset": 5}`})
		is.True(errors.Is(err, errs.Invalid))
	}
}
