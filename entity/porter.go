package entity

import (
	"context"
	"encoding/json"
	"io"
	"iter"
)

// Row is one entity on its way between tenants: its columns as a JSON object. It never holds a secret, a
// password hash, a token or a value of an environment. Where ids can be used again, such as a user's name, a member
// createdAt tells an entity from a later one: see bundles.Service.Deploy.
type Row struct {
	Key
	JSON json.RawMessage
}

// Rule says what an import does with a row that exists already.
type Rule string

// The rules.
const (
	Skip      Rule = "skip"
	Overwrite Rule = "overwrite"
	Fail      Rule = "fail" // errs.Conflict on the first row that exists
)

// Arrival is what an import did with a row.
type Arrival string

// The arrivals.
const (
	Created Arrival = "created"
	Updated Arrival = "updated"
	Skipped Arrival = "skipped"
)

// Landing is how rows come into a tenant.
type Landing struct {
	Rule  Rule
	Owner string // principal id that gets the rows whose own owner the tenant does not know
	Tally *Tally // takes the warnings that are sums over all rows; nil: each Import gives its own

	// OwnArchive reports that the rows come from an archive of this tenant: what was made under older rules, such as a
	// username, may come back.
	OwnArchive bool
	// CrossTenant reports a deploy from another tenant, whose caller has no rights in this one. No row then gives a role, a
	// right, a profile or content to a principal who is there: users stay as they are, teams come without members, a row
	// that exists keeps its owner, and a new one belongs to Owner unless Brought has the row's own.
	CrossTenant bool
	// Brought has the ids of the principals that deploys of the source tenant made, this one's included. It is nil without
	// CrossTenant.
	Brought map[string]bool
}

// Porter moves the entities of one kind between tenants. All methods join the transaction in ctx, and keep to the tenant
// they are given. Implementations must pass bundletest.TestPorter.
//
// No secret travels. A kind leaves out the columns that it knows to be secret; JSON that it does not know the members of,
// such as data that its users make up, it passes to MaskSecrets in Export and to KeepSecrets in Import. Masks may make a row
// longer than its entity: what a kind refuses for its size it does not refuse for what secrets take.
type Porter interface {
	// IDs returns the ids of all entities but drafts and system entities, ordered.
	IDs(ctx context.Context, tenant string) ([]string, error)
	// Needs returns what each of some entities depends on, in a fixed order; entities that do not exist are left out.
	Needs(ctx context.Context, tenant string, ids []string) (map[string][]Key, error)
	// Export returns the rows of some entities in the order of ids; the same content gives the same bytes. It holds no
	// connection while the caller works on a row. An entity that does not exist is errs.NotFound.
	Export(ctx context.Context, tenant string, ids []string) iter.Seq2[Row, error]
	// Import writes rows of other tenants, of one kind and with different ids, and says for each what happened; warnings
	// are sentences for people, such as that an owner is not known. A row keeps its id. What a row may not say, it does
	// not get: a user row makes no superuser, and changes no rights of a user who is there. Errors: errs.Invalid naming the
	// row and field; errs.Conflict naming the row, with the rule Fail, or when something else has its slug.
	Import(ctx context.Context, tenant string, rows []Row, l Landing) (arrivals []Arrival, warnings []string, err error)
	// Remove deletes entities; those that do not exist are no error. It returns the number of deleted ones.
	Remove(ctx context.Context, tenant string, ids []string) (int, error)
}

// File is one file of an entity, such as a library's.
type File struct {
	Path        string // relative, with slashes, clean
	ContentType string
	Size        int64
}

// FilePorter is a Porter whose entities have files.
type FilePorter interface {
	Porter
	// Files lists the files of an entity, ordered by path. No two paths differ in case or Unicode form alone, and none is a
	// folder of another one: no archive takes such files, so the entity could not travel.
	Files(ctx context.Context, tenant, id string) ([]File, error)
	// OpenFile returns the bytes of a file. The caller closes it.
	OpenFile(ctx context.Context, tenant, id, path string) (io.ReadCloser, error)
	// PutFile writes a file of an entity that Import has written. Errors: errs.Invalid for a bad path; r's own.
	PutFile(ctx context.Context, tenant, id string, f File, r io.Reader) error
	// KeepFiles removes the files of an entity whose paths are not among these.
	KeepFiles(ctx context.Context, tenant, id string, paths []string) error
}
