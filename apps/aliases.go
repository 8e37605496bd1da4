package apps

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
)

// Types of the machinery that the signatures of this package name.
type (
	// HandlerApp is an app or the draft of one.
	HandlerApp = handlers.App

	// Build is what the files of an app are as handlers.
	Build = handlers.Build

	// Route is a handler: a file with the functions for one path, or a tool.
	Route = handlers.Route

	// Grant is the access that all shares of an entity together grant an actor.
	Grant = shares.Grant
)
