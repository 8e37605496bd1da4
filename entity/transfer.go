package entity

import (
	"context"
	"encoding/json"
	"io"
	"iter"
)

// Row is an entity in an archive: its columns as a JSON object. It never contains a secret, a
// password hash, a token or a value of an environment. If ids can be reused, as the names of users
// can, the member createdAt distinguishes an entity from a later one with its id: see
// bundles.Deployment.
type Row struct {
	Key
	JSON json.RawMessage
}

// Rule is what an import does with a row that already exists.
type Rule string

// The rules.
const (
	Skip      Rule = "skip"
	Overwrite Rule = "overwrite"
	Fail      Rule = "fail" // errs.Conflict on the first row that exists
)

// ImportAction is what an import has done with a row.
type ImportAction string

// The import actions.
const (
	Created ImportAction = "created"
	Updated ImportAction = "updated"
	Skipped ImportAction = "skipped"
)

// ImportOptions has the options of an import of rows into a tenant.
type ImportOptions struct {
	Rule     Rule
	Owner    string    // principal id that becomes the owner of rows whose owner does not exist in the tenant
	Warnings *Warnings // collects warnings that are sums over all rows; nil: each Import returns its own

	// OwnArchive reports whether the rows come from an archive of this tenant. Rows that were valid
	// under older rules, such as those for usernames, may then be restored.
	OwnArchive bool
	// CrossTenant reports a deploy from another tenant, whose caller has no rights in this one. The
	// rows must not assign a role, a right, a profile or content to an existing principal. So users
	// are not imported, and teams are imported without members. An existing row keeps its owner,
	// and a new row belongs to Owner unless DeployedTeams has the owner of the row. If another
	// entity has the slug of a row, the row gets a slug with a number: a conflict would reveal that
	// the entity exists.
	CrossTenant bool
	// DeployedTeams has the ids of the teams that deploys of the source tenant created, including
	// this one. It is nil without CrossTenant.
	DeployedTeams map[string]bool
	// Notify receives sentences for the superusers of the tenant, which the caller of a deploy from
	// another tenant may not read. It is nil without CrossTenant.
	Notify func(sentence string)
}

// Transferer moves the entities of one kind between tenants. All methods join the transaction in
// ctx, and read and change only rows of the given tenant. Implementations must pass
// drivertest.TestTransferer.
//
// Rows contain no secrets. A kind leaves out the columns that it knows to be secret. It passes JSON
// whose members it does not define, such as data of its users, to MaskSecrets in Export and to
// KeepSecrets in Import. Masks may make a row longer than its entity, so a kind that limits the
// size of such JSON must not count the bytes of secrets.
type Transferer interface {
	// IDs returns the ids of all entities but drafts and system entities, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Needs returns the entities that each of some entities depends on, in a fixed order. Entities
	// that do not exist are left out.
	Needs(ctx context.Context, tenant string, ids []string) (map[string][]Key, error)
	// Export returns the rows of some entities in the order of ids. The same content has the same
	// bytes. It does not hold a connection while the caller works on a row. It fails with
	// errs.NotFound if an entity does not exist.
	Export(ctx context.Context, tenant string, ids []string) iter.Seq2[Row, error]
	// Import writes rows from an archive, of one kind and with different ids, and returns what it
	// did with each. warnings are sentences for people, for instance about an unknown owner. A row
	// keeps its id. Fields that a row may not set are ignored: the row of a user cannot create a
	// superuser or change the rights of an existing user. Errors: errs.Invalid naming the row and
	// field; errs.Conflict naming the row, with the rule Fail, or if another entity has its slug.
	Import(
		ctx context.Context, tenant string, rows []Row, l ImportOptions,
	) (actions []ImportAction, warnings []string, err error)
	// Remove deletes entities and returns their number. It ignores entities that do not exist. The
	// caller passes the entities to Registry.Deleted afterwards, except for those of kinds with
	// Type.Owns.
	Remove(ctx context.Context, tenant string, ids []string) (int, error)
}

// File is one file of an entity, such as a library's.
type File struct {
	Path        string // relative, with slashes, clean
	ContentType string
	Size        int64
}

// FileTransferer is a Transferer whose entities have files.
type FileTransferer interface {
	Transferer
	// Files returns the files of an entity, ordered by path. Two paths must not differ only in case
	// or Unicode form, and a path must not be a folder of another one, because archives cannot
	// contain such files.
	Files(ctx context.Context, tenant, id string) ([]File, error)
	// OpenFile opens a file. The caller closes it.
	OpenFile(ctx context.Context, tenant, id, path string) (io.ReadCloser, error)
	// PutFile writes a file of an entity that Import has written. It returns errs.Invalid for a bad
	// path, and the errors of r.
	PutFile(ctx context.Context, tenant, id string, f File, r io.Reader) error
	// KeepFiles removes the files of an entity whose paths are not in paths.
	KeepFiles(ctx context.Context, tenant, id string, paths []string) error
}

// Deployable is a FileTransferer of entities that run some of their files, but only after they were
// deployed in the tenant: an import does not start anything.
type Deployable interface {
	FileTransferer
	// Undeployed returns a sentence for people if an imported file is not run or read until the
	// entity is deployed, "" for any other file.
	Undeployed(ctx context.Context, tenant, id, path string) (string, error)
}
