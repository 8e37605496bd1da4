package messages

import (
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// Types of the machinery that the signatures of this package name.
type (
	// Emitted is an event as what it starts gets it.
	Emitted = handlers.Event

	// Job is one piece of work.
	Job = queue.Job

	// Worker does the jobs of a kind.
	Worker = queue.Worker
)
