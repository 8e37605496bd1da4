package drafts

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Type returns the entity.Type of the noun: t moves its entities between tenants, with their files.
func (r *Rules[T]) Type(t entity.Transferer) entity.Type {
	store := r.o.Store
	return entity.Type{
		Kind: r.n.Kind, Transferer: fileTransferer[T]{t, r},
		Lookup: func(ctx context.Context, tenant, id string) (entity.Ref, error) {
			e, err := r.Head(ctx, tenant, id)
			if err != nil {
				return entity.Ref{}, err
			}
			return r.n.Ref(e), nil
		},
		Find: func(ctx context.Context, tenant string, ids []string) (map[string]entity.Ref, error) {
			return transfer.Find(ctx, tenant, ids, func(ctx context.Context, tenant string, ids []string) ([]T, error) {
				all, err := store.LockSome(ctx, tenant, ids)
				return r.Alive(all), err
			}, r.n.Ref)
		},
		Owned:  store.Owned,
		Owners: store.Owners,
		Rename: store.RenameUsers,
		Reassign: func(ctx context.Context, tenant, from, to string) ([]entity.Ref, error) {
			if r.n.DraftsEnd {
				if err := r.endDrafts(ctx, tenant, from); err != nil {
					return nil, err
				}
			}
			moved, err := store.Reassign(ctx, tenant, from, to, r.Stamp())
			if err == nil && r.n.Reassigned != nil {
				err = r.n.Reassigned(ctx, tenant, moved)
			}
			return transfer.Refs(r.Alive(moved), r.n.Ref), err
		},
	}
}

// endDrafts removes the drafts that a principal owns.
func (r *Rules[T]) endDrafts(ctx context.Context, tenant, owner string) error {
	drafts, err := r.o.Store.OwnedDrafts(ctx, tenant, owner)
	if err != nil || len(drafts) == 0 {
		return err
	}
	return r.Remove(ctx, tenant, r.ids(drafts))
}

func (r *Rules[T]) ids(some []T) []string {
	return transfer.IDs(some, func(e T) string { return *r.fields(&e).ID })
}

// RemoveShares removes the shares of principals who are deleted.
func (r *Rules[T]) RemoveShares(ctx context.Context, tenant string, gone []entity.Key) error {
	principals := entity.IDs(gone, entity.KindUser, entity.KindTeam)
	if len(principals) == 0 {
		return nil
	}
	store := r.o.Store
	return store.InTx(ctx, func(ctx context.Context) error {
		shared, err := store.Shares().SharedWith(ctx, tenant, principals)
		if err != nil || len(shared) == 0 {
			return err
		}
		if _, err := store.LockSome(ctx, tenant, shared); err != nil { // an entity is locked before its shares
			return err
		}
		if err := store.Shares().RemovePrincipals(ctx, tenant, principals); err != nil {
			return err
		}
		return store.SetShared(ctx, tenant, shared)
	})
}

// SharedColumns is a share as it travels.
type SharedColumns struct {
	PrincipalID string   `json:"principalId"`
	AccessLevel int      `json:"accessLevel"`
	Roles       []string `json:"roles"`
}

// SharesToColumns returns shares as they travel.
func SharesToColumns(all []shares.Share) []SharedColumns {
	columns := make([]SharedColumns, len(all))
	for i, share := range all {
		columns[i] = SharedColumns{share.PrincipalID, int(share.Level), append([]string{}, share.Roles...)}
	}
	return columns
}

// SharesOfColumns returns the shares of a row of another tenant. Errors: errs.Invalid.
func (r *Rules[T]) SharesOfColumns(columns []SharedColumns, now time.Time) ([]shares.Share, error) {
	all, seen := make([]shares.Share, 0, len(columns)), map[string]bool{}
	for _, c := range columns {
		share := shares.Share{
			PrincipalID: c.PrincipalID,
			Level:       shares.Level(c.AccessLevel),
			Roles:       c.Roles,
			CreatedAt:   now,
			UpdatedAt:   now,
		}
		if err := share.Accept(r.n.TopShare); err != nil {
			return nil, errs.New(errs.Invalid, "shares: %s", errs.MessageOf(err))
		}
		if seen[share.PrincipalID] {
			return nil, errs.New(errs.Invalid, "shares: %s is there twice", share.PrincipalID)
		}
		seen[share.PrincipalID] = true
		all = append(all, share)
	}
	return all, nil
}

// List is a list of a row of another tenant: where it is read to.
type List struct {
	Name string
	Raw  json.RawMessage // nil for a row without it
	To   any
}

// ReadLists reads lists of a row. Errors: errs.Invalid naming the list.
func (r *Rules[T]) ReadLists(lists []List) error {
	for _, l := range lists {
		if len(l.Raw) > 0 && json.Unmarshal(l.Raw, l.To) != nil {
			return errs.New(errs.Invalid, "%s must be a list as the export of %s has it", l.Name, r.n.Article)
		}
	}
	return nil
}

// Unknown returns a function that reports whether a tenant lacks what an imported entity with an id
// refers to, and warns of it. together are the entities that come in the same import. The error is
// that of a look-up, behind which the function reports nothing.
func (r *Rules[T]) Unknown(
	ctx context.Context, tenant string, together []entity.Key, warn func(format string, args ...any),
) (unknown func(id string, key entity.Key) bool, failed func() error) {
	known, err := map[entity.Key]bool{}, error(nil)
	for _, key := range together {
		known[key] = true
	}
	unknown = func(id string, key entity.Key) bool {
		if _, asked := known[key]; !asked && err == nil {
			missing := r.Known(ctx, tenant, key)
			if known[key] = missing == nil; errs.CodeOf(missing) != errs.NotFound {
				err = missing
			}
		}
		gone := !known[key] && err == nil
		if gone {
			warn("%s %s: the %s %s is left out, which this tenant does not have.", r.n.Kind, id, key.Kind, key.ID)
		}
		return gone
	}
	return unknown, func() error { return err }
}

// fileTransferer is a transferer of entities with their files.
type fileTransferer[T Entity] struct {
	entity.Transferer
	r *Rules[T]
}

// library returns the id of the library of an entity.
func (p fileTransferer[T]) library(ctx context.Context, tenant, id string) (string, error) {
	e, err := p.r.o.Store.Head(ctx, tenant, Lookup{ID: id})
	if err != nil {
		return "", err
	}
	return *p.r.fields(&e).LibraryID, nil
}

// Files implements entity.FileTransferer.
func (p fileTransferer[T]) Files(ctx context.Context, tenant, id string) ([]entity.File, error) {
	library, err := p.library(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	all, err := p.r.o.Files.All(ctx, tenant, library)
	if err != nil {
		return nil, err
	}
	files := make([]entity.File, len(all))
	for i, f := range all {
		files[i] = entity.File{Path: f.Path, ContentType: f.ContentType, Size: f.Size}
	}
	return files, nil
}

// OpenFile implements entity.FileTransferer.
func (p fileTransferer[T]) OpenFile(ctx context.Context, tenant, id, path string) (io.ReadCloser, error) {
	library, err := p.library(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	_, content, err := p.r.o.Files.Open(ctx, tenant, library, path)
	if err != nil {
		return nil, err
	}
	return content, nil
}

// PutFile implements entity.FileTransferer. bundles has checked that the import may write.
func (p fileTransferer[T]) PutFile(ctx context.Context, tenant, id string, f entity.File, content io.Reader) error {
	library, err := p.library(ctx, tenant, id)
	if err == nil {
		_, err = p.r.o.Files.Put(ctx, tenant, library, f.Path, f.ContentType, content, func(ctx context.Context) error {
			_, err := p.r.o.Store.Lock(ctx, tenant, Lookup{ID: id})
			return err
		})
	}
	return transfer.Why(entity.Key{Kind: p.r.n.Kind, ID: id}, err)
}

// KeepFiles implements entity.FileTransferer.
func (p fileTransferer[T]) KeepFiles(ctx context.Context, tenant, id string, paths []string) error {
	return p.r.o.Store.InTx(ctx, func(ctx context.Context) error {
		e, err := p.r.o.Store.Lock(ctx, tenant, Lookup{ID: id})
		if err != nil {
			return err
		}
		return p.r.o.Files.Keep(ctx, tenant, *p.r.fields(&e).LibraryID, paths)
	})
}
