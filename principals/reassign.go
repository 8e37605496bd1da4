package principals

import (
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// reassigned are the kinds of content that Reassign moves: the ten models that the API documents,
// and apps, which move with reports.
var reassigned = []entity.Kind{
	"dataset", "datasource", "report", "query", "file", "job", "visual", "assistant", "library", "template", "app",
}

// Reassign moves all content of the ten kinds that the API documents, apps, and Options.HostKinds,
// from one user or team to another, in one transaction, and returns what it moved. Drafts of
// datasets, reports and queries that the source has begun are removed instead. It is for
// superusers, for users with their own content and for admins of a team with the team's.
//
// Errors: errs.NotFound for an unknown source; errs.Unauthenticated when the caller may not;
// errs.Invalid when to is unknown, Everyone or the source itself.
func (s *Service) Reassign(ctx context.Context, from, to string) (moved []entity.Ref, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return nil, err
	}
	source, err := s.principal(ctx, a.Tenant, from)
	if err == nil && source.Type == TypeEveryone {
		err = errs.New(errs.NotFound, "Principal not found.")
	}
	if err != nil {
		return nil, err
	}
	if !s.mayReassign(a, source) {
		return nil, errs.New(
			errs.Unauthenticated,
			"Only a superuser, the user or an admin of the team may reassign this content.",
		)
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil { // so that neither principal goes meanwhile
			return err
		}
		target, err := s.principal(ctx, a.Tenant, to)
		if errs.CodeOf(err) == errs.NotFound || err == nil && (target.ID == source.ID || target.Type == TypeEveryone) {
			return errs.New(errs.Invalid, "to must be another user or team")
		}
		if err != nil || s.content == nil {
			return err
		}
		if err := s.store.LockPrincipals(ctx, a.Tenant, []string{source.ID, target.ID}); err != nil {
			return err
		}
		moved, err = s.content.ReassignOnly(ctx, a.Tenant, source.ID, target.ID,
			slices.Concat(reassigned, s.hostKinds)...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return moved, nil
}

func (s *Service) mayReassign(a actor.Actor, p Principal) bool {
	if p.Type == TypeTeam {
		return TeamPermissionsOf(a, Team{Tenant: a.Tenant, ID: p.ID}).Reassign
	}
	return UserPermissionsOf(a, User{Tenant: a.Tenant, Username: p.ID}).Reassign
}
