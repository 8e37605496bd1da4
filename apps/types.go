package apps

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Type returns the entity.Type of apps.
func (u Unchecked) Type() entity.Type {
	t := u.s.rules.Type(u.s.transferer())
	t.Transferer = deployable{t.Transferer.(entity.FileTransferer), u.s.store}
	return t
}

// Hooks returns what is done with apps and shares: shares follow users who are renamed, and go with
// the users and teams that are deleted; apps are counted, and so are the drafts, favorites, visits
// and views that go with deleted apps and users; and the columns of secrets.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Renamed: u.s.renameUsers, Deleted: u.s.removeReferences,
		RemoveRest: u.s.removeRest, Counts: entity.CountRows(35, "apps", u.s.store.Count),
		Dependents: u.s.dependents,
		Sealed: []entity.SealedColumn{
			{Table: sealedTable, Column: sealedColumn, Key: "id"},
			{Table: sealedTable, Column: webhookColumn, Key: "id"},
		},
	}
}

// renameUsers changes the names in shares, and in what users have of apps.
func (s *Service) renameUsers(ctx context.Context, tenant string, names map[string]string) error {
	if err := s.store.Shares().RenameUsers(ctx, tenant, names); err != nil {
		return err
	}
	return s.store.RenameAccounts(ctx, tenant, names)
}

// removeRest removes what a deleted user had of apps.
func (s *Service) removeRest(ctx context.Context, tenant string, of entity.Key, n int) (more bool, err error) {
	if of.Kind != entity.KindUser {
		return false, nil
	}
	return s.store.RemoveAccount(ctx, tenant, of.ID, n)
}

// dependents counts the drafts of apps, and the favorites, visits and views of apps or users. Views
// that are not written yet, of the last second, do not count.
func (s *Service) dependents(
	ctx context.Context, tenant string, kind entity.Kind, ids []string, _ time.Time,
) ([]entity.Dependent, error) {
	var uses Uses
	var drafted map[string]bool
	var err error
	switch kind {
	case Kind:
		if drafted, err = s.store.Drafted(ctx, tenant, ids); err == nil {
			uses, err = s.store.UsesOf(ctx, tenant, ids)
		}
	case entity.KindUser:
		uses, err = s.store.UsesBy(ctx, tenant, ids)
	}
	count := func(n int, of string) entity.Dependent {
		return entity.Dependent{Count: entity.Count{N: n, Of: of}, Rank: 7}
	}
	return []entity.Dependent{
		count(len(drafted), "draft"), count(uses.Favorites, "favorite"),
		count(uses.Visits, "app visit"), count(uses.Views, "app view"),
	}, err
}

// FlushAll writes the counted views of apps of every tenant.
func (u Unchecked) FlushAll(ctx context.Context) error { return u.s.views.FlushAll(ctx) }

// The kinds that apps refer to.
const (
	kindTag     entity.Kind = "tag"
	kindDataset entity.Kind = "dataset"
)

// removeReferences removes the shares of principals who are deleted, and what apps have of tags and
// datasets that are.
func (s *Service) removeReferences(ctx context.Context, tenant string, gone ...entity.Key) error {
	var tags, datasets []string
	for _, k := range gone {
		switch k.Kind {
		case kindTag:
			tags = append(tags, k.ID)
		case kindDataset:
			datasets = append(datasets, k.ID)
		}
	}
	if err := s.unuse(ctx, tenant, tags, datasets); err != nil {
		return err
	}
	return s.rules.RemoveShares(ctx, tenant, gone)
}

// unuse removes tags from all apps and unbinds datasets.
func (s *Service) unuse(ctx context.Context, tenant string, tags, datasets []string) error {
	if len(tags)+len(datasets) == 0 {
		return nil
	}
	ids, err := s.store.Using(ctx, tenant, tags, datasets)
	if err != nil || len(ids) == 0 {
		return err
	}
	locked, err := s.store.LockSome(ctx, tenant, ids)
	if err != nil {
		return err
	}
	for _, app := range locked {
		_, err := s.store.Update(ctx, tenant, Lookup{ID: app.ID, Deleted: app.DeletedAt != nil}, func(app *App) error {
			app.Tags = slices.DeleteFunc(slices.Clone(app.Tags), func(id string) bool {
				return slices.Contains(tags, id)
			})
			app.Datasets = slices.DeleteFunc(slices.Clone(app.Datasets), func(d Dataset) bool {
				return slices.Contains(datasets, d.DatasetID)
			})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
