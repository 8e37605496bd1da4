package webhooks

import (
	"github.com/tenantcontent/tenantcontent/internal/directory/owners"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// Types of the machinery that the signatures of this package name.
type (
	// HandlerApp is an app or the draft of one.
	HandlerApp = handlers.App

	// Area is a folder of handlers.
	Area = handlers.Area

	// HandlerCall is one call of a handler.
	HandlerCall = handlers.Invocation

	// Outcome is what became of an invocation.
	Outcome = handlers.Outcome

	// Owner is the user or team that the webhooks of an app run as.
	Owner = owners.Owner

	// Response is what a handler answers.
	Response = handlers.Response

	// Route is a handler: a file with the functions for one path, or a tool.
	Route = handlers.Route

	// User is who a handler runs for.
	User = handlers.User

	// Job is one piece of work.
	Job = queue.Job

	// Worker does the jobs of a kind.
	Worker = queue.Worker
)
