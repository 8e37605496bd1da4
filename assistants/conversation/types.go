package conversation

import (
	"github.com/tenantcontent/tenantcontent/internal/chat"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// Types of the machinery that the signatures of this package name.
type (
	// ChatOptions configure a Run.
	ChatOptions = chat.Options

	// Tool is a function that a model may call, and what it does.
	Tool = chat.Tool

	// Runtime compiles and runs scripts.
	Runtime = jsvm.Runtime
)
