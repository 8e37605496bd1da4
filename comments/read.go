package comments

import (
	"context"
	"iter"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Get returns one comment to any session. Errors: errs.Invalid for an id that is no UUID;
// errs.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Comment, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Comment{}, err
	}
	if id, err = canonicalID(id); err != nil {
		return Comment{}, err
	}
	c, err := s.store.Get(ctx, a.Tenant, id)
	if err != nil {
		return Comment{}, err
	}
	return s.one(ctx, a, c)
}

func (s *Service) one(ctx context.Context, a actor.Actor, c Comment) (Comment, error) {
	if err := s.gone(ctx, c.Entity, "Comment"); err != nil {
		return Comment{}, err
	}
	all := []Comment{c}
	err := s.see(ctx, a, all)
	return all[0], err
}

// Replies returns a page of the direct replies to a comment to any session, newest first unless q
// says otherwise.
// Errors: errs.Invalid for an id that is no UUID, and for a sort or cursor that does not fit;
// errs.NotFound, also for a comment that the caller does not see.
func (s *Service) Replies(ctx context.Context, id string, q paging.Query) (paging.Page[Comment], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Comment]{}, err
	}
	if id, err = canonicalID(id); err != nil {
		return paging.Page[Comment]{}, err
	}
	page, err := s.store.Replies(ctx, a.Tenant, id, q)
	if err != nil {
		return paging.Page[Comment]{}, err
	}
	var of entity.Key // all of them are on one
	if len(page.Rows) > 0 {
		of = page.Rows[0].Entity
	} else {
		c, err := s.store.Get(ctx, a.Tenant, id)
		if err != nil {
			return paging.Page[Comment]{}, err
		}
		of = c.Entity
	}
	if err := s.gone(ctx, of, "Comment"); err != nil {
		return paging.Page[Comment]{}, err
	}
	return page, s.see(ctx, a, page.Rows)
}

// List returns a page of the comments on an entity that reply to none, to any session, as Replies
// does. on has an id or a natural id. Errors: errs.Invalid "Unknown entity type for comment", and
// as Replies; errs.NotFound.
func (s *Service) List(ctx context.Context, on entity.Key, q paging.Query) (paging.Page[Comment], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Comment]{}, err
	}
	ref, err := s.find(ctx, a.Tenant, on)
	if err != nil {
		return paging.Page[Comment]{}, err
	}
	page, err := s.store.List(ctx, a.Tenant, entity.Key{Kind: ref.Kind, ID: ref.ID}, q)
	if err != nil {
		return paging.Page[Comment]{}, err
	}
	show(a, page.Rows, ref.OwnerID)
	return page, nil
}

// All returns the comments on an entity that are not replies, newest first, to any session. It
// reads page after page; an error ends it. Errors: as List.
func (s *Service) All(ctx context.Context, on entity.Key) iter.Seq2[Comment, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[Comment], error) {
		return s.List(ctx, on, q)
	})
}

// Activities returns a page of the activities on an entity to any session, or of all of the tenant
// for entity.Key{}, newest first. on has an id or a natural id. Errors: errs.Invalid for a kind
// without an id, or an id without a kind, and for a sort or cursor that does not fit;
// errs.NotFound. Those on entities that the caller does not see are left out of the page, and count
// in its total.
func (s *Service) Activities(ctx context.Context, on entity.Key, q paging.Query) (paging.Page[Activity], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Activity]{}, err
	}
	if (on.Kind == "") != (on.ID == "") {
		return paging.Page[Activity]{}, errs.New(errs.Invalid, "entityType and entityId go together: give both or none")
	}
	var of entity.Key
	if on != (entity.Key{}) {
		ref, err := s.entities.Lookup(ctx, a.Tenant, on.Kind, on.ID)
		if err != nil {
			return paging.Page[Activity]{}, err
		}
		if err := s.visible(ctx, entity.Key{Kind: on.Kind, ID: ref.ID}); err != nil {
			return paging.Page[Activity]{}, err
		}
		of = entity.Key{Kind: ref.Kind, ID: ref.ID}
	}
	page, err := s.store.Activities(ctx, a.Tenant, of, q)
	if err != nil || on != (entity.Key{}) {
		return page, err
	}
	seen := map[entity.Key]error{}
	page.Rows = slices.DeleteFunc(page.Rows, func(v Activity) bool { // of entities that the caller does not see
		if _, looked := seen[v.Entity]; !looked {
			seen[v.Entity] = s.gone(ctx, v.Entity, "Activity")
		}
		if failed := seen[v.Entity]; failed != nil && errs.CodeOf(failed) != errs.NotFound {
			err = failed
		}
		return seen[v.Entity] != nil
	})
	return page, err
}

// Activity returns one activity to any session. Errors: errs.NotFound.
func (s *Service) Activity(ctx context.Context, id string) (Activity, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Activity{}, err
	}
	canonical, ok := uuids.Parse(id)
	if !ok {
		return Activity{}, errs.New(errs.NotFound, "Activity not found.")
	}
	v, err := s.store.Activity(ctx, a.Tenant, canonical)
	if err != nil {
		return Activity{}, err
	}
	return v, s.gone(ctx, v.Entity, "Activity")
}

// Feed returns a page of the activities of others that concern a user, newest first: those on
// content that the user owned when they happened, in reply to the user, and with a mention of the
// user. It is for the user and superusers.
// Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Feed(ctx context.Context, username string, q paging.Query) (paging.Page[Activity], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Activity]{}, err
	}
	if username != a.User {
		known, err := s.users.DisplayNames(ctx, []string{username})
		if err != nil {
			return paging.Page[Activity]{}, err
		}
		if _, ok := known[username]; !ok {
			return paging.Page[Activity]{}, errs.New(errs.NotFound, "User not found.")
		}
		if !a.Superuser {
			return paging.Page[Activity]{}, errs.New(errs.Forbidden, "This needs a superuser.")
		}
	}
	return s.store.Feed(ctx, a.Tenant, username, q)
}

// Notifications returns a page of the caller's own notifications, newest first. Errors:
// errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Notifications(
	ctx context.Context, f NotificationFilter, q paging.Query,
) (paging.Page[Notification], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Notification]{}, err
	}
	return s.store.Notifications(ctx, a.Tenant, a.User, f, q)
}

// Notification returns one of the caller's own notifications. Errors: errs.NotFound.
func (s *Service) Notification(ctx context.Context, id string) (Notification, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Notification{}, err
	}
	if id, err = notificationID(id); err != nil {
		return Notification{}, err
	}
	return s.store.Notification(ctx, a.Tenant, a.User, id)
}

// SetRead notes that the caller has read one of their own notifications, or has not. Errors:
// errs.NotFound.
func (s *Service) SetRead(ctx context.Context, id string, read bool) (Notification, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Notification{}, err
	}
	if id, err = notificationID(id); err != nil {
		return Notification{}, err
	}
	return s.store.SetRead(ctx, a.Tenant, a.User, id, read, s.clock.Stamp())
}

// SetAllRead is like SetRead for all of the caller's own notifications, and returns how many have
// changed.
func (s *Service) SetAllRead(ctx context.Context, read bool) (int, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return 0, err
	}
	return s.store.SetAllRead(ctx, a.Tenant, a.User, read, s.clock.Stamp())
}

// Unread returns how many of the caller's own notifications are unread.
func (s *Service) Unread(ctx context.Context) (int, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return 0, err
	}
	return s.store.Unread(ctx, a.Tenant, a.User)
}

// notificationID returns an id in lower case. Errors: errs.NotFound for what is no id.
func notificationID(id string) (string, error) {
	canonical, ok := uuids.Parse(id)
	if !ok {
		return "", errs.New(errs.NotFound, "Notification not found.")
	}
	return canonical, nil
}
