package tenants

import (
	"context"
	"errors"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Hooks returns the column of the key check, what goes on with tenants that are hidden, and what is
// done with settings that name users: Settings.DeployFrom. Those of renamed users get the new
// names. Those of deleted users are removed: who gets such a name later is somebody else, and
// without a RunAs what comes would be the first superuser's.
func (u Unchecked) Hooks() entity.Hooks {
	sealed := []entity.SealedColumn{{Table: checkTable, Column: checkColumn, Key: "tenant_id"}}
	due := []entity.Due{{
		Table:  "tc_tenants",
		Column: "hidden_at",
		Where:  "hidden IS NOT NULL",
		Age:    abandoned,
		Hidden: true,
	}}
	return entity.Hooks{Sealed: sealed, Due: due,
		Sweep:   u.s.sweep,
		Renamed: u.s.renameUsers, Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			names := map[string]string{}
			for _, key := range gone {
				if key.Kind == entity.KindUser {
					names[key.ID] = ""
				}
			}
			if len(names) == 0 {
				return nil
			}
			return u.s.renameUsers(ctx, tenant, names)
		}}
}

// sweep goes on with a deletion that was interrupted, and removes what an import has left that was.
func (s *Service) sweep(ctx context.Context, id string) (int, error) {
	why, at, err := s.store.Hidden(ctx, id)
	if errs.CodeOf(err) == errs.NotFound { // somebody else has removed it
		return 0, nil
	}
	if err != nil || why == "" || s.clock.Now().Sub(at) < abandoned {
		return 0, err
	}
	now := s.clock.Stamp()
	err = s.store.Rehide(ctx, id, why, at, Deleting, now)
	if errs.CodeOf(err) == errs.NotFound { // somebody else goes on with it
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	r := &removal{s, id, now}
	err = r.run(ctx, func(rows int) { n += rows })
	if errors.Is(err, entity.ErrMore) { // nobody else removes it: it is still due
		return n, errors.Join(err, r.note(ctx, at))
	}
	return n, err
}

// renameUsers changes the names of users in DeployFrom. names maps old ones to new ones; a new name
// "" removes the entry.
func (s *Service) renameUsers(ctx context.Context, id string, names map[string]string) error {
	t, err := s.get(ctx, id)
	if err != nil || !slices.ContainsFunc(t.Settings.DeployFrom, func(from Source) bool {
		_, ok := names[from.RunAs]
		return ok
	}) {
		return err
	}
	_, err = s.store.Update(ctx, id, func(t *Tenant) error {
		kept := []Source{}
		for _, from := range t.Settings.DeployFrom {
			name, ok := names[from.RunAs]
			if ok && name == "" && from.RunAs != "" {
				continue
			}
			if ok {
				from.RunAs = name
			}
			kept = append(kept, from)
		}
		t.Settings.DeployFrom = kept
		t.UpdatedAt = s.clock.Stamp()
		return nil
	})
	return err
}
