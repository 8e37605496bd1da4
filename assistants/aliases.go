package assistants

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Types of the machinery that the signatures of this package name.
type (
	// File is one file of a library.
	File = libraries.File

	// Files reads and writes files of libraries over a Store.
	Files = libraries.Files

	// Grant is the access that all shares of an entity together grant an actor.
	Grant = shares.Grant
)
