package assistants

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Type returns the entity.Type of assistants.
func (u Unchecked) Type() entity.Type {
	t := u.s.rules.Type(u.s.transferer())
	t.Commented = true
	t.Visible = func(ctx context.Context, id string) error {
		_, err := u.s.Ref(ctx, id)
		return err
	}
	return t
}

// Secrets returns the secrets of an assistant in the clear, for its skills alone.
func (u Unchecked) Secrets(as Assistant) (map[string]string, error) {
	return u.s.secrets.Open(Fields(&as))
}

// Files returns a page of an assistant's files, ordered by path, for its conversations alone.
func (u Unchecked) Files(ctx context.Context, as Assistant, q paging.Query) (paging.Page[File], error) {
	return u.s.files.Page(ctx, as.Tenant, as.LibraryID, q)
}

// File returns a file of an assistant, for its conversations alone. Errors: errs.NotFound.
func (u Unchecked) File(ctx context.Context, as Assistant, path string) (File, error) {
	return u.s.files.Get(ctx, as.Tenant, as.LibraryID, path)
}

// OpenFile returns a file of an assistant with its bytes, which the caller closes. Only the
// assistant's conversations use it. Errors: errs.NotFound.
func (u Unchecked) OpenFile(ctx context.Context, as Assistant, path string) (File, io.ReadCloser, error) {
	return u.s.files.Open(ctx, as.Tenant, as.LibraryID, path)
}

// Hooks returns what is done with assistants and shares: shares follow users who are renamed, and
// go with the users and teams that are deleted; what assistants have of entities goes with these;
// assistants are counted, and so are the drafts that go with them; and the column of secrets.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Renamed: u.s.store.Shares().RenameUsers,
		Deleted: u.s.removeReferences, Counts: entity.CountRows(36, "assistants", u.s.store.Count),
		Dependents: u.s.dependents,
		Sealed:     []entity.SealedColumn{{Table: sealedTable, Column: sealedColumn, Key: "id"}},
	}
}

// dependents counts the drafts of assistants.
func (s *Service) dependents(
	ctx context.Context, tenant string, kind entity.Kind, ids []string, _ time.Time,
) ([]entity.Dependent, error) {
	if kind != Kind {
		return nil, nil
	}
	drafted, err := s.store.Drafted(ctx, tenant, ids)
	return []entity.Dependent{{Count: entity.Count{N: len(drafted), Of: "draft"}, Rank: 7}}, err
}

// removeReferences removes the shares of principals who are deleted, and what assistants have of
// entities that are.
func (s *Service) removeReferences(ctx context.Context, tenant string, gone ...entity.Key) error {
	known := slices.DeleteFunc(slices.Clone(gone), func(k entity.Key) bool {
		return k.Kind != kindDataset && !slices.Contains(ReferenceKinds(), k.Kind)
	})
	if err := s.forget(ctx, tenant, known); err != nil {
		return err
	}
	return s.rules.RemoveShares(ctx, tenant, gone)
}

// forget removes entities from assistants.
func (s *Service) forget(ctx context.Context, tenant string, gone []entity.Key) error {
	if len(gone) == 0 {
		return nil
	}
	ids, err := s.store.Using(ctx, tenant, gone)
	if err != nil || len(ids) == 0 {
		return err
	}
	locked, err := s.store.LockSome(ctx, tenant, ids)
	if err != nil {
		return err
	}
	for _, as := range locked {
		_, err := s.store.Update(ctx, tenant, drafts.Lookup{ID: as.ID}, func(as *Assistant) error {
			as.Datasets = slices.DeleteFunc(slices.Clone(as.Datasets), func(d Dataset) bool {
				return slices.Contains(gone, d.key())
			})
			as.References = slices.DeleteFunc(slices.Clone(as.References), func(r Reference) bool {
				return slices.Contains(gone, r.key())
			})
			as.UpdatedAt = s.rules.Stamp()
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d Dataset) key() entity.Key { return entity.Key{Kind: kindDataset, ID: d.DatasetID} }

func (r Reference) key() entity.Key {
	return entity.Key{Kind: entity.Kind(r.EntityType), ID: r.EntityID}
}

// Uses reports whether the assistant uses one of some entities.
func (a Assistant) Uses(some []entity.Key) bool {
	return slices.ContainsFunc(a.Datasets, func(d Dataset) bool { return slices.Contains(some, d.key()) }) ||
		slices.ContainsFunc(a.References, func(r Reference) bool { return slices.Contains(some, r.key()) })
}
