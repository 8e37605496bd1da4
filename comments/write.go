package comments

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Create adds a comment on an entity, which any session may. on has an id or a natural id.
// Errors: errs.Invalid "Unknown entity type for comment", and for a bad message; errs.NotFound.
func (s *Service) Create(ctx context.Context, on entity.Key, message string) (Comment, error) {
	if of := (entity.Subject{Kind: Kind, Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, commentID, func(ctx context.Context) (Comment, error) {
			return s.Create(ctx, on, message)
		})
	}
	return s.add(ctx, message, func(ctx context.Context, a actor.Actor) (entity.Ref, *Comment, error) {
		ref, err := s.find(ctx, a.Tenant, on)
		return ref, nil, err
	})
}

// Reply adds a reply to a comment, on the same entity. Any session may reply.
// Errors: errs.Invalid for an id that is no UUID, for a bad message, and "Unknown entity type for
// comment"; errs.NotFound.
func (s *Service) Reply(ctx context.Context, id, message string) (Comment, error) {
	if of := (entity.Subject{Kind: Kind, Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, commentID, func(ctx context.Context) (Comment, error) {
			return s.Reply(ctx, id, message)
		})
	}
	return s.add(ctx, message, func(ctx context.Context, a actor.Actor) (entity.Ref, *Comment, error) {
		id, err := canonicalID(id)
		if err != nil {
			return entity.Ref{}, nil, err
		}
		parent, err := s.store.Get(ctx, a.Tenant, id)
		if err != nil {
			return entity.Ref{}, nil, err
		}
		ref, err := s.find(ctx, a.Tenant, parent.Entity)
		return ref, &parent, err
	})
}

// add adds a comment below what place finds, an entity or a comment on it, in one transaction.
func (s *Service) add(ctx context.Context, message string,
	place func(context.Context, actor.Actor) (entity.Ref, *Comment, error)) (Comment, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Comment{}, err
	}
	c := Comment{Tenant: a.Tenant, ID: s.clock.NewID(), Message: message, UserID: a.User, CreatedAt: s.clock.Stamp()}
	c.UpdatedAt = c.CreatedAt
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		ref, parent, err := place(ctx, a)
		if err != nil {
			return err
		}
		if err := validMessage(message); err != nil {
			return err
		}
		c.Entity = entity.Key{Kind: ref.Kind, ID: ref.ID}
		if parent != nil {
			c.ParentID, c.Entity = &parent.ID, parent.Entity
		}
		people, err := s.people(ctx, c, ref, parent)
		if err != nil {
			return err
		}
		c.Mentions = people.mentions
		if err := s.store.Insert(ctx, a.Tenant, c); err != nil {
			return err
		}
		if parent == nil {
			// What is commented may have been deleted since it was found. Its deletion removes its
			// comments, and one of both has waited for the other in Insert.
			if _, err := s.find(ctx, a.Tenant, c.Entity); err != nil {
				return err
			}
		}
		if err := s.tell(ctx, c, people); err != nil {
			return err
		}
		c, err = s.one(ctx, a, c)
		return err
	})
	if err != nil {
		return Comment{}, err
	}
	return c, nil
}

// Update changes a comment's message and whether it is public, and rebuilds its activity. It is for
// the author, superusers, admins, and who owns what the comment is about. Users who are mentioned
// for the first time are notified.
// Errors: errs.Invalid for an id that is no UUID and for a bad message; errs.NotFound;
// errs.Forbidden.
func (s *Service) Update(ctx context.Context, id string, e Edit) (Comment, error) {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Comment, error) {
			return s.Update(ctx, id, e)
		})
	}
	a, err := actor.From(ctx)
	if err != nil {
		return Comment{}, err
	}
	if id, err = canonicalID(id); err != nil {
		return Comment{}, err
	}
	var c Comment
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		var people people
		c, err = s.store.Update(ctx, a.Tenant, id, func(c *Comment) error {
			people, err = s.edit(ctx, a, c, e)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.tell(ctx, c, people); err != nil {
			return err
		}
		c, err = s.one(ctx, a, c)
		return err
	})
	if err != nil {
		return Comment{}, err
	}
	return c, nil
}

// edit changes a comment when the caller may, and returns the people whom it then concerns.
func (s *Service) edit(ctx context.Context, a actor.Actor, c *Comment, e Edit) (people, error) {
	seen, err := s.one(ctx, a, *c)
	if err != nil {
		return people{}, err
	}
	if !seen.May.Edit {
		return people{}, errs.New(
			errs.Forbidden, "Only the author, an admin and the owner of the %s may edit this comment.",
			c.Entity.Kind,
		)
	}
	if err := e.apply(c, s.clock.Stamp()); err != nil {
		return people{}, err
	}
	var parent *Comment
	if c.ParentID != nil {
		p, err := s.store.Get(ctx, a.Tenant, *c.ParentID)
		if err != nil {
			return people{}, err
		}
		parent = &p
	}
	owner, err := s.owner(ctx, a.Tenant, c.Entity)
	if err != nil {
		return people{}, err
	}
	all, err := s.people(ctx, *c, entity.Ref{OwnerID: owner}, parent)
	c.Mentions = all.mentions
	return all, err
}

// Delete removes a comment with all replies below it. It is for the author and superusers.
// Errors: errs.Invalid for an id that is no UUID; errs.NotFound; errs.Forbidden.
func (s *Service) Delete(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
	}
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	if id, err = canonicalID(id); err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		c, err := s.store.Get(ctx, a.Tenant, id)
		if err != nil {
			return err
		}
		if err := s.gone(ctx, c.Entity, "Comment"); err != nil {
			return err
		}
		if !c.by(a.User) && !a.Superuser {
			return errs.New(errs.Forbidden, "Only the author and a superuser may delete this comment.")
		}
		rest, err := s.store.Delete(ctx, a.Tenant, id, s.clock.Stamp())
		if err != nil || !rest {
			return err
		}
		return s.removeLater(ctx, a.Tenant, c.Entity)
	})
}

// commentID returns the id of a comment, for changes.
func commentID(c Comment) string { return c.ID }

// validMessage returns errs.Invalid for a message that is too long or that databases cannot store.
func validMessage(message string) error {
	switch {
	case len(message) > MaxMessage:
		return errs.New(errs.Invalid, "message must have at most %d bytes", MaxMessage)
	case !utf8.ValidString(message) || strings.IndexByte(message, 0) >= 0:
		return errs.New(errs.Invalid, "message must be UTF-8 without NUL")
	}
	return nil
}
