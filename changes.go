package tenantcontent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/jobs/removal"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	changestore "github.com/tenantcontent/tenantcontent/internal/store/changes"
)

// keepChanges is how long changes are kept, and mostChanges how many a page has.
const (
	keepChanges = 7 * 24 * time.Hour
	mostChanges = 1000
)

// mostForgotten is how many changes of a sort go in the transaction that deletes users. Others are
// left to jobs, as those of kindForgotten, whose ids are the usernames.
const (
	mostForgotten             = 250
	kindForgotten entity.Kind = "changes-of-user"
)

// listeners returns where services announce their changes.
func (app *App) listeners(c Config) *entity.Changes {
	times := clock.New(c.Now, c.NewID)
	app.changes = changestore.New(c.DB, times.NewID)
	o := entity.ChangesOptions{
		Before: c.Before, After: c.After, InTx: app.InTx, Now: times.Now,
		Show: func(ctx context.Context, tenant string, of entity.Key, row any) (string, json.RawMessage, error) {
			return app.handler.Show(ctx, tenant, of, row)
		},
		AfterCommit: func(ctx context.Context, f func(ctx context.Context)) {
			bunx.AfterCommit(ctx, func() { f(bunx.WithoutTx(ctx)) })
		},
	}
	if c.KeepChanges {
		o.Keep = app.changes.Keep
	}
	return entity.NewChanges(o)
}

// changeHooks are what the feed of changes does with its rows. They are swept and forgotten also
// when Config.KeepChanges is off again.
func (app *App) changeHooks(c Config, feed *entity.Changes, removals *removal.Remover) entity.Hooks {
	times := clock.New(c.Now, nil)
	return entity.Hooks{
		Renamed: func(ctx context.Context, tenant string, names map[string]string) error {
			if err := app.changes.RenameUsers(ctx, tenant, names); err != nil {
				return err
			}
			var was, is []entity.Key
			for _, old := range slices.Sorted(maps.Keys(names)) {
				was = append(was, entity.Key{Kind: entity.KindUser, ID: old})
				is = append(is, entity.Key{Kind: entity.KindUser, ID: names[old]})
			}
			return errors.Join(
				feed.Each(ctx, tenant, entity.ActionDelete, was...), feed.Each(ctx, tenant, entity.ActionCreate, is...),
			)
		},
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			left, err := app.changes.Forget(ctx, tenant, entity.IDs(gone, entity.KindUser), times.Now(), mostForgotten)
			if err == nil && len(left) > 0 {
				err = removals.Later(ctx, tenant, entity.Keys(kindForgotten, left...)...)
			}
			if err != nil {
				return err
			}
			return feed.Each(ctx, tenant, entity.ActionDelete, gone...)
		},
		Reassigned: func(ctx context.Context, tenant string, moved ...entity.Ref) error {
			all := make([]entity.Key, len(moved))
			for i, r := range moved {
				all[i] = entity.Key{Kind: r.Kind, ID: r.ID}
			}
			return feed.Each(ctx, tenant, entity.ActionUpdate, all...)
		},
		RemoveRest: func(ctx context.Context, tenant string, of entity.Key, n int) (bool, error) {
			if of.Kind != kindForgotten {
				return false, nil
			}
			return app.changes.RemoveRest(ctx, tenant, of.ID, n)
		},
		Due: []entity.Due{{Table: "tc_changes", Column: "created_at", Age: keepChanges}},
		Sweep: func(ctx context.Context, tenant string) (int, error) {
			return app.changes.Sweep(ctx, tenant, times.Now().Add(-keepChanges))
		},
	}
}

// Changes returns the changes of a tenant after a position, in the order of their commits, if
// Config.KeepChanges is on: at most limit, which is 1000 if it is 0. A reader begins with position
// 0, which has all that are kept, or with -1, which has those to come, and goes on with Next; so it
// gets each change at least once. A change is there as soon as its transaction has been committed,
// however long that was open. It needs no actor. Errors: errs.Invalid for a limit that is negative
// or above 1000.
func (app *App) Changes(ctx context.Context, tenant string, after int64, limit int) (entity.ChangePage, error) {
	if limit < 0 || limit > mostChanges {
		return entity.ChangePage{}, errs.New(errs.Invalid, "limit must be between 0 and %d", mostChanges)
	}
	return app.changes.Page(ctx, tenant, after, cmp.Or(limit, mostChanges))
}
