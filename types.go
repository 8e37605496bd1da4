package tenantcontent

import (
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// Types of the machinery that a host makes, or passes on.
type (
	// Scripts runs the JavaScript of tenants: javascript.New returns one.
	Scripts = jsvm.Scripts

	// Workspaces keeps the SQL databases of apps: database.OpenWorkspaces returns one.
	Workspaces = workspaces.Driver

	// Node is how much of the work of the queue a program does.
	Node = queue.Node

	// Worker does the jobs of a kind.
	Worker = queue.Worker

	// Queue has jobs that are done after an answer.
	Queue = queue.Service
)
