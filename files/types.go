package files

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// Types of the machinery that the signatures of this package name.
type (
	// Reader reads a blob.
	Reader = blobs.Reader

	// Blobs keeps blobs.
	Blobs = blobs.Store
)
