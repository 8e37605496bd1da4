// Package database has the stores of single nouns, for programs that want one of them and not the
// whole App of package tenantcontent, and Migrate, which makes their tables.
//
//	err := database.Migrate(ctx, db)
//	keys, err := tenants.ParseKeys(secretKey)
//	all := tenants.New(tenants.Options{Store: database.Tenants(db), Keys: keys})
//	palette := colors.New(colors.Options{Store: database.Colors(db)})
//
// It links no SQL driver: db is the program's own *bun.DB, PostgreSQL or SQLite, or one that
// package database/sqlite or database/postgres has opened. A linker leaves out the nouns that a
// program does not name. A noun that needs others to work, such as apps, has no store here: the
// root builds it.
package database

import (
	"context"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/colors"
	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
	instructionstore "github.com/tenantcontent/tenantcontent/internal/store/aiinstr"
	blobstore "github.com/tenantcontent/tenantcontent/internal/store/blobs"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	commentstore "github.com/tenantcontent/tenantcontent/internal/store/comments"
	contentstore "github.com/tenantcontent/tenantcontent/internal/store/content"
	filestore "github.com/tenantcontent/tenantcontent/internal/store/files"
	librarystore "github.com/tenantcontent/tenantcontent/internal/store/libraries"
	"github.com/tenantcontent/tenantcontent/internal/store/migrations"
	principalstore "github.com/tenantcontent/tenantcontent/internal/store/principals"
	sessionstore "github.com/tenantcontent/tenantcontent/internal/store/sessions"
	tenantstore "github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// Migrate brings a database up to this version, with the tables of all nouns, or does nothing when
// it is there already. Several processes may call it at once. tenantcontent.Migrate is the same.
// Errors: errs.Invalid for a database that a newer version has migrated.
func Migrate(ctx context.Context, db *bun.DB) error { return migrations.Run(ctx, db) }

// Tenants returns the store of tenants, for tenants.Options. Rows of all other stores are of one of
// its tenants.
func Tenants(db *bun.DB) tenants.Store { return tenantstore.New(db) }

// Principals returns the store of users and teams, for principals.Options.
func Principals(db *bun.DB) principals.Store { return principalstore.New(db) }

// Sessions returns the store of sessions and API tokens, for sessions.Options.
func Sessions(db *bun.DB) sessions.Store { return sessionstore.New(db) }

// Colors returns the store of colors, for colors.Options.
func Colors(db *bun.DB) colors.Store { return colorstore.New(db) }

// AIInstructions returns the store of instructions, for aiinstr.Options.
func AIInstructions(db *bun.DB) aiinstr.Store { return instructionstore.New(db) }

// Comments returns the store of comments, for comments.Options.
func Comments(db *bun.DB) comments.Store { return commentstore.New(db) }

// CommentQueue returns where the notifications about comments are put, for comments.Options.
func CommentQueue(db *bun.DB) comments.Queue { return commentstore.New(db) }

// Content returns the store of reports, datasets and the other kinds of content, for
// content.Options.
func Content(db *bun.DB) content.Store { return contentstore.New(db) }

// LibraryFiles returns the files of libraries, for content.Options. limit is the most bytes of a
// file.
func LibraryFiles(db *bun.DB, limit int64) *content.Files {
	return libraries.New(libraries.Options{
		Store: librarystore.New(db, content.Library),
		Blobs: blobstore.New(db),
		Limit: limit,
	})
}

// Uploads returns the store of uploads, for files.NewUploads.
func Uploads(db *bun.DB) files.Store { return filestore.Uploads(db) }

// Downloads returns the store of downloads, for files.NewDownloads.
func Downloads(db *bun.DB) files.Store { return filestore.Downloads(db) }

// Blobs returns where the bytes of files are, for files.Options, and of pictures, for
// principals.Options.
func Blobs(db *bun.DB) files.Blobs { return blobstore.New(db) }
