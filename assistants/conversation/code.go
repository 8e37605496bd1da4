package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/ai"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// codeLimits bound the code that a model runs.
var codeLimits = jsvm.Limits{
	Time:      10 * time.Second,
	Memory:    64 << 20,
	Output:    32 << 10,
	LogBytes:  16 << 10,
	LogLines:  200,
	Calls:     1,
	CallBytes: 1,
}

// maxCode is the most bytes of the code.
const maxCode = 128 << 10

// openCode opens the skill code: JavaScript that reaches nothing.
func (s *Service) openCode(_ context.Context, u Use) ([]Tool, func(), error) {
	return []Tool{{
		Tool: ai.Tool{
			Name: "run_code",
			Description: "Runs JavaScript and returns its result and what it logs. The code is the body of an " +
				"asynchronous function: it returns its result with return. " +
				"It has the language alone: no network, no files, no packages, no data but what it is written with.",
			Parameters: json.RawMessage(
				`{"type":"object","properties":{"code":{"type":"string"}},"required":["code"]}`,
			),
		},
		Run: func(ctx context.Context, c ai.ToolCall) (string, error) { return s.runCode(ctx, u.Assistant.ID, c) },
	}}, nil, nil
}

// runCode is the tool run_code.
func (s *Service) runCode(ctx context.Context, key string, c ai.ToolCall) (string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return "", err
	}
	var in struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil || in.Code == "" || len(in.Code) > maxCode {
		return "", errs.New(errs.Invalid, "code must be text of 1 to %d bytes.", maxCode)
	}
	const entry = "code.js"
	source := jsvm.Files{entry: "export async function run() {" + in.Code + "\n}\n"}
	program, err := s.o.Scripts.Compile(ctx, jsvm.Source{Files: source, Entry: entry, Tenant: a.Tenant, Key: key})
	if err != nil {
		return "", err
	}
	r, err := s.o.Scripts.Run(ctx, program, jsvm.Call{Function: "run", Limits: codeLimits, Tenant: a.Tenant, Key: key})
	if err != nil {
		return "", err
	}
	out := struct {
		Result json.RawMessage `json:"result,omitempty"`
		Error  string          `json:"error,omitempty"`
		Logs   []string        `json:"logs,omitempty"`
	}{Result: r.Value}
	for _, l := range r.Logs {
		out.Logs = append(out.Logs, l.Level+": "+l.Text)
	}
	if r.LogsDropped > 0 {
		out.Logs = append(out.Logs, fmt.Sprintf("%d more lines are left out", r.LogsDropped))
	}
	if r.Outcome != jsvm.OK {
		if out.Error = string(r.Outcome); r.Error != nil {
			out.Error += ": " + r.Error.Error()
		}
	}
	encoded, err := json.Marshal(out)
	return string(encoded), err
}
