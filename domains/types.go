package domains

import (
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// Types of the machinery that the signatures of this package name.
type (
	// PersonOptions are the options of SyncPerson.
	PersonOptions = dirsync.PersonOptions

	// Report is the result of a Sync, or of its dry run.
	Report = dirsync.Report

	// Snapshot is the content of a directory.
	Snapshot = dirsync.Snapshot

	// SyncOptions are the options of Sync.
	SyncOptions = dirsync.SyncOptions

	// Schedule puts a job of a kind at the times of a cron expression.
	Schedule = queue.Schedule

	// Worker does the jobs of a kind.
	Worker = queue.Worker
)
