package agents

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// Types of the machinery that the signatures of this package name.
type (
	// HandlerApp is an app or the draft of one.
	HandlerApp = handlers.App

	// Area is a folder of handlers.
	Area = handlers.Area

	// Event is an event of an app, as a handler or tool has emitted it.
	Event = handlers.Event

	// Invocation is one call of a handler.
	Invocation = handlers.Invocation

	// Route is a handler: a file with the functions for one path, or a tool.
	Route = handlers.Route

	// Declared is an agent as the manifest of its app declares it.
	Declared = manifest.Agent

	// ToolCall is what a tool is called with.
	ToolCall = handlers.ToolCall

	// Result is what became of an invocation.
	Result = jsvm.Result

	// Job is one piece of work.
	Job = queue.Job

	// Schedule puts a job of a kind at the times of a cron expression.
	Schedule = queue.Schedule

	// Worker does the jobs of a kind.
	Worker = queue.Worker
)
