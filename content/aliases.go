package content

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
)

// Types of the machinery that the signatures of this package name.
type (
	// File is one file of a library.
	File = libraries.File

	// Files reads and writes files of libraries over a Store.
	Files = libraries.Files
)
