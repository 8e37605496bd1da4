package handlers

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// ToolCall is what a tool is called with.
type ToolCall struct {
	Args json.RawMessage // JSON object
	Run  json.RawMessage // what the tool is told of the run that calls it: a JSON object
	// IdempotencyKey is the same whenever the same call is made again, because nobody knows whether
	// it was done.
	IdempotencyKey string
	// Depth is how many agents and events have started each other until the call.
	Depth int
}

// toolBody is what the module of a tool gets of a ToolCall.
type toolBody struct {
	Args           json.RawMessage `json:"args"`
	Run            json.RawMessage `json:"run"`
	IdempotencyKey string          `json:"idempotencyKey"`
}

// maxDescription is the most bytes of a tool's description.
const maxDescription = 4 << 10

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// toolPath returns the Path of a tool's file: a slash and its name, which is the path below the
// folder with _ between its parts. Errors: errs.Invalid.
func toolPath(file string) (string, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(file, string(Tools)+"/"), path.Ext(file))
	name := strings.ReplaceAll(strings.TrimSuffix(rest, "/index"), "/", "_")
	if !toolName.MatchString(name) {
		return "", errs.New(
			errs.Invalid,
			"%s:1:1: the name of a tool, which is its path with _ between the parts, has 1 to 64 letters, digits, "+
				"_ and -: %.100q has not.",
			file, name,
		)
	}
	return "/" + name, nil
}

// ToolName returns the name of a tool: [A-Za-z0-9_-]{1,64}, distinct among the tools of an app.
func (r Route) ToolName() string { return strings.TrimPrefix(r.Path, "/") }

// Description returns the member description of a tool's config, "" without one.
func (r Route) Description() (text string) {
	_ = json.Unmarshal(Member(r.Config, "description"), &text) // Build has checked it
	return text
}

// Parameters returns the member parameters of a tool's config, a JSON Schema of its arguments; nil
// without one.
func (r Route) Parameters() json.RawMessage {
	if p := Member(r.Config, "parameters"); string(p) != "null" {
		return p
	}
	return nil
}

// badToolMember returns what is wrong with a member of a tool's config, "" for nothing.
func badToolMember(name string, value json.RawMessage) string {
	switch name {
	case "description":
		text := ""
		if string(value) == "null" || json.Unmarshal(value, &text) != nil || len(text) > maxDescription {
			return ".description must be a text of at most 4096 bytes that tells a model what the tool does"
		}
	case "parameters":
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil || members == nil || string(members["type"]) != `"object"` {
			return `.parameters must be a JSON Schema of an object, such as {type: "object", properties: {order: ` +
				`{type: "string"}}}`
		}
	}
	return ""
}

// RunTool runs a tool; in.Request and in.Respond are not used. The Value of the result is what the
// tool returned, nil for nothing. What the tool does wrong is in the result. Errors: as Run;
// errs.Invalid for JSON that is nested too deep.
func (s *Service) RunTool(ctx context.Context, in Invocation, t ToolCall) (jsvm.Result, error) {
	body := toolBody{t.Args, t.Run, t.IdempotencyKey}
	if body.Args == nil {
		body.Args = json.RawMessage("{}")
	}
	if body.Run == nil {
		body.Run = json.RawMessage("null")
	}
	if levels(body.Args) > maxLevels || levels(body.Run) > maxLevels {
		return jsvm.Result{}, errs.New(
			errs.Invalid, "The arguments and the input of a run are nested %d levels deep at most.", maxLevels,
		)
	}
	arg, err := data{Method: methodsOf[Tools][0], Tool: &body}.encode(in)
	if err != nil {
		return jsvm.Result{}, err
	}
	call := jsvm.Call{
		Function: "invoke", Args: []json.RawMessage{arg}, Functions: in.Functions,
		Limits: in.Limits, Tenant: in.App.Tenant, Key: in.App.ID,
	}
	if call.Limits.Time == 0 {
		call.Limits.Time = in.Route.Timeout()
	}
	return s.call(ctx, in.App, in.Route, call)
}
