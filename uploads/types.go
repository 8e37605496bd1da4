package uploads

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts/blobs"
)

// Types of the machinery that the signatures of this package name.
type (
	// Blobs keeps blobs.
	Blobs = blobs.Store
)
