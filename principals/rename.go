package principals

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// rename changes the names of users wherever they are stored. Names may pass from one to another,
// in a circle too, but must not be those of other users. In changes each user is deleted and
// created. It joins the transaction in ctx.
func (s *Service) rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error {
	if err := s.store.LockPrincipals(ctx, tenant, slices.Collect(maps.Keys(names))); err != nil {
		return err
	}
	for _, step := range renameSteps(names) {
		if len(step) == 0 {
			continue
		}
		if err := s.store.RenameUsers(ctx, tenant, step, at); err != nil {
			return err
		}
		if s.content != nil {
			if err := s.content.Rename(ctx, tenant, step); err != nil {
				return err
			}
		}
	}
	var was, is []entity.Key
	for _, old := range slices.Sorted(maps.Keys(names)) {
		was = append(was, entity.Key{Kind: entity.KindUser, ID: old})
		is = append(is, entity.Key{Kind: entity.KindUser, ID: names[old]})
	}
	if err := s.feed.Each(ctx, tenant, entity.ActionDelete, was...); err != nil {
		return err
	}
	return s.feed.Each(ctx, tenant, entity.ActionCreate, is...)
}

// renameSteps splits renames into two steps, in each of which no new name is an old one: a user
// whose name another one gets is first renamed to a UUID, which is no valid username.
func renameSteps(names map[string]string) (steps [2]map[string]string) {
	away, there := map[string]string{}, map[string]string{}
	wanted := map[string]string{} // by folded name, who gets it
	for was, becomes := range names {
		wanted[fold.Name(becomes)] = was
	}
	for was, becomes := range names {
		if who, gets := wanted[fold.Name(was)]; gets && who != was {
			between := clock.Clock{}.NewID()
			away[was] = between
			was = between
		}
		there[was] = becomes
	}
	return [2]map[string]string{away, there}
}
