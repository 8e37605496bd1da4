package assistants

import (
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Types of the machinery that the signatures of this package name.
type (
	// Confirmations asks people whether calls of a model's tools may be done.
	Confirmations = confirmations.Service

	// File is one file of a library.
	File = libraries.File

	// Files reads and writes files of libraries over a Store.
	Files = libraries.Files

	// Diff is what a draft changes.
	Diff = drafts.Diff

	// Directory looks up the principals of a tenant.
	Directory = drafts.Directory

	// DraftFields are the fields of an assistant that all drafts have.
	DraftFields = drafts.Fields

	// DraftStore has the methods that are the same for all nouns whose entities are edited in
	// drafts.
	DraftStore = drafts.Store[Assistant]

	// Lock tells who edits a draft.
	Lock = drafts.Lock

	// Sealer encrypts secrets so that a value opens only in the place it was sealed for.
	Sealer = drafts.Sealer

	// Share is the access of one principal.
	Share = shares.Share

	// Grant is the access that all shares of an entity together grant an actor.
	Grant = shares.Grant
)
