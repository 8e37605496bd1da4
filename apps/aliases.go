package apps

import (
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
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

	// File is one file of an app.
	File = libraries.File

	// Files reads and writes the files of apps.
	Files = libraries.Files

	// FileComparison tells which files of an app differ from those of a folder.
	FileComparison = libraries.Comparison

	// DraftFields are the fields of an app that all drafts have.
	DraftFields = drafts.Fields

	// DraftStore has the methods that are the same for all nouns whose entities are edited in
	// drafts.
	DraftStore = drafts.Store[App]

	// Lock tells who edits a draft.
	Lock = drafts.Lock

	// Manifest is the manifest of an app.
	Manifest = manifest.Manifest

	// ManifestAgent is an agent of a manifest.
	ManifestAgent = manifest.Agent

	// ManifestReader reads manifests.
	ManifestReader = manifest.Reader

	// Share is the access of one principal.
	Share = shares.Share

	// Grant is the access that all shares of an entity together grant an actor.
	Grant = shares.Grant
)
