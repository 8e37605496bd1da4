package entity

import (
	"context"
	"encoding/json"
	"io"
	"iter"
)

// Row is an entity in an archive: its columns as a JSON object. It never contains a secret, a
// password hash, a token or a value of an environment. If ids can be used again, as a user's name
// can, a member createdAt distinguishes an entity from a later one with its id: see
// bundles.Service.Deploy.
type Row struct {
	Key
	JSON json.RawMessage
}

// Rule is what an import does with a row that exists already.
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
	Owner    string    // principal id that gets the rows whose own owner the tenant does not know
	Warnings *Warnings // collects warnings that are sums over all rows; nil: each Import returns its own

	// OwnArchive reports whether the rows come from an archive of this tenant. Rows that were valid
	// under older rules, such as those for usernames, may then be restored.
	OwnArchive bool
	// CrossTenant reports a deploy from another tenant, whose caller has no rights in this one. No
	// row then gives a role, a right, a profile or content to a principal who is there: users do
	// not come, teams come without members, a row that exists keeps its owner, and a new one
	// belongs to Owner unless DeployedTeams has the row's own. A slug that another entity has is no
	// conflict, which would tell that it exists, but gets a number.
	CrossTenant bool
	// DeployedTeams has the ids of the teams that deploys of the source tenant made, this one's
	// included. It is nil without CrossTenant.
	DeployedTeams map[string]bool
	// Notify takes sentences for the tenant's own superusers, which the caller of a deploy from
	// another tenant may not read. It is nil without CrossTenant.
	Notify func(sentence string)
}

// Transferer moves the entities of one kind between tenants. All methods join the transaction in
// ctx, and keep to the tenant they are given. Implementations must pass drivertest.TestTransferer.
//
// Rows contain no secrets. A kind leaves out the columns that it knows to be secret, and passes
// JSON whose members it does not know, such as data of its users, to MaskSecrets in Export and to
// KeepSecrets in Import. Masks may make a row longer than its entity, so a kind that limits the
// size of such JSON must not count the bytes of secrets.
type Transferer interface {
	// IDs returns the ids of all entities but drafts and system entities, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Needs returns what each of some entities depends on, in a fixed order; entities that do not
	// exist are left out.
	Needs(ctx context.Context, tenant string, ids []string) (map[string][]Key, error)
	// Export returns the rows of some entities in the order of ids; the same content gives the same
	// bytes. It holds no connection while the caller works on a row. An entity that does not exist
	// is errs.NotFound.
	Export(ctx context.Context, tenant string, ids []string) iter.Seq2[Row, error]
	// Import writes rows from an archive, of one kind and with different ids, and returns what it
	// did with each. warnings are sentences for people, for instance about an unknown owner. A row
	// keeps its id. Fields that a row may not set are ignored: the row of a user makes no
	// superuser, and changes no rights of an existing user. Errors: errs.Invalid naming the row and
	// field; errs.Conflict naming the row, with the rule Fail, or if another entity has its slug.
	Import(
		ctx context.Context, tenant string, rows []Row, l ImportOptions,
	) (actions []ImportAction, warnings []string, err error)
	// Remove deletes entities; those that do not exist are no error. It returns the number of
	// deleted ones. The caller passes the entities to Registry.Deleted afterwards, except for those
	// of kinds with Type.Owns.
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
	// Files returns the files of an entity, ordered by path. No two paths may differ in case or
	// Unicode form alone, and none may be a folder of another one, as no archive can contain such
	// files.
	Files(ctx context.Context, tenant, id string) ([]File, error)
	// OpenFile returns the bytes of a file. The caller closes it.
	OpenFile(ctx context.Context, tenant, id, path string) (io.ReadCloser, error)
	// PutFile writes a file of an entity that Import has written. Errors: errs.Invalid for a bad
	// path; r's own.
	PutFile(ctx context.Context, tenant, id string, f File, r io.Reader) error
	// KeepFiles removes the files of an entity whose paths are not among these.
	KeepFiles(ctx context.Context, tenant, id string, paths []string) error
}

// Deployable is a FileTransferer of entities that run some of their files, but only after somebody
// has deployed them in the tenant: an import starts nothing.
type Deployable interface {
	FileTransferer
	// Undeployed returns a sentence for people about an entity of which an import has written a
	// file that it does not run or read before it is deployed, "" for any other file.
	Undeployed(ctx context.Context, tenant, id, path string) (string, error)
}
