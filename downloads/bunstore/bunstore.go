// Package bunstore stores downloads in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"github.com/uptrace/bun"

	filestore "github.com/tenantcontent/tenantcontent/blobs/files/bunstore"
)

// New makes a downloads.Store. The tables must be there: see tenantcontent.Migrate.
func New(db *bun.DB) *filestore.Store { return filestore.New(db, "tc_downloads", "Download") }
