package principals

import (
	"context"
	"iter"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Teams returns a page of the tenant's teams to any session, sorted by name (the default),
// createdAt or updatedAt.
// Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Teams(ctx context.Context, q paging.Query) (paging.Page[Team], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Team]{}, err
	}
	return s.store.Teams(ctx, a.Tenant, q)
}

// AllTeams returns all teams of the tenant to any session, ordered by name. It reads page after
// page; an error ends it.
func (s *Service) AllTeams(ctx context.Context) iter.Seq2[Team, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[Team], error) {
		return s.Teams(ctx, q)
	})
}

// Team returns one team, by id or slug, to any session. Errors: errs.NotFound.
func (s *Service) Team(ctx context.Context, id string) (Team, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Team{}, err
	}
	return s.team(ctx, a.Tenant, id)
}

func (s *Service) team(ctx context.Context, tenant, id string) (Team, error) {
	key, isID := canonicalID(id)
	if !isID && !slugForm.MatchString(id) {
		return Team{}, errs.New(errs.NotFound, "Team not found.")
	}
	return s.store.Team(ctx, tenant, key)
}

// CreateTeam adds a team. It needs a superuser. ID and times are ignored; an empty Slug is made of
// the name, with -2, -3… when that is taken; a team without a domain gets Local.
// Errors: errs.Forbidden; errs.Invalid naming the field; errs.Conflict for a taken slug.
func (s *Service) CreateTeam(ctx context.Context, t Team) (Team, error) {
	if of := (entity.Subject{Kind: KindTeam, Action: entity.ActionCreate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, teamID, func(ctx context.Context) (Team, error) {
			return s.CreateTeam(ctx, t)
		})
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return Team{}, err
	}
	derived := t.Slug == ""
	if derived {
		t.Slug = slug.Of(t.Name, "team")
	}
	if err := t.accept(); err != nil {
		return Team{}, err
	}
	t.Tenant, t.ID, t.CreatedAt, t.DirectoryGone = a.Tenant, s.clock.NewID(), s.clock.Stamp(), false
	t.UpdatedAt = t.CreatedAt
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil {
			return err
		}
		if err := s.checkNewDomain(ctx, a.Tenant, Local, t.Domain); err != nil {
			return err
		}
		if derived {
			if t.Slug, err = s.freeSlug(ctx, a.Tenant, t.Slug); err != nil {
				return err
			}
		}
		return s.store.InsertTeam(ctx, a.Tenant, t)
	})
	if err != nil {
		return Team{}, err
	}
	return t, nil
}

// teamID returns the id of a team, for changes.
func teamID(t Team) string { return t.ID }

// freeSlug returns the slug itself, or the first of slug-2, slug-3… that no team has. A name of
// other letters than Latin ones leaves nothing but team, which thousands may want: so it reads the
// slugs of all teams rather than one after the other.
func (s *Service) freeSlug(ctx context.Context, tenant, wanted string) (string, error) {
	_, err := s.store.Team(ctx, tenant, wanted)
	if errs.CodeOf(err) == errs.NotFound {
		return wanted, nil
	}
	if err != nil {
		return "", err
	}
	all, err := s.store.Slugs(ctx, tenant)
	if err != nil {
		return "", err
	}
	taken := make(map[string]bool, len(all))
	for _, one := range all {
		taken[one] = true
	}
	return slug.FirstFree(wanted, taken), nil
}

// UpdateTeam changes a team, found by id or slug. It needs a superuser or an admin of the team;
// domain, source and source id are for superusers alone. ID and times are ignored.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid naming the field; errs.Conflict for a taken
// slug; an error from edit as it is.
func (s *Service) UpdateTeam(ctx context.Context, id string, edit func(*Team) error) (Team, error) {
	if of := (entity.Subject{Kind: KindTeam, ID: id, Action: entity.ActionUpdate}); s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Team, error) {
			return s.UpdateTeam(ctx, id, edit)
		})
	}
	a, t, err := s.managed(ctx, id)
	if err != nil {
		return Team{}, err
	}
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil {
			// as with users, and so that its domain is not deleted meanwhile
			return err
		}
		t, err = s.store.UpdateTeam(ctx, a.Tenant, t.ID, func(t *Team) error {
			was := *t
			if err := edit(t); err != nil {
				return err
			}
			t.Tenant, t.ID, t.CreatedAt, t.UpdatedAt, t.DirectoryGone =
				was.Tenant, was.ID, was.CreatedAt, s.clock.Stamp(), was.DirectoryGone
			if err := t.accept(); err != nil {
				return err
			}
			if !a.Superuser && (t.Domain != was.Domain || !same(t.Source, was.Source) ||
				!same(t.SourceID, was.SourceID)) {
				return errs.New(errs.Forbidden, "Only a superuser may change where a team comes from.")
			}
			return s.checkNewDomain(ctx, a.Tenant, was.Domain, t.Domain)
		})
		return err
	})
	if err != nil {
		return Team{}, err
	}
	return t, nil
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// managed returns the team when the caller manages it. Errors: errs.Forbidden, errs.NotFound.
func (s *Service) managed(ctx context.Context, id string) (actor.Actor, Team, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return a, Team{}, err
	}
	t, err := s.team(ctx, a.Tenant, id)
	if err != nil {
		return a, Team{}, err
	}
	if !TeamPermissionsOf(a, t).ManageMembers {
		return a, Team{}, errs.New(errs.Forbidden, "This needs a superuser or an admin of the team.")
	}
	return a, t, nil
}

// DeleteTeam removes a team, found by id or slug, with its memberships. It needs a superuser. What
// the team owns passes to reassignTo as in DeleteUser.
// Errors: errs.Forbidden; errs.NotFound; errs.Invalid when reassignTo is the team, Everyone or
// nobody; errs.Conflict when the team owns content and reassignTo is "".
func (s *Service) DeleteTeam(ctx context.Context, id, reassignTo string) error {
	if of := (entity.Subject{Kind: KindTeam, ID: id, Action: entity.ActionDelete}); s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.DeleteTeam(ctx, id, reassignTo) })
	}
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, a.Tenant); err != nil {
			return err
		}
		t, err := s.team(ctx, a.Tenant, id)
		if err != nil {
			return err
		}
		if err := s.release(ctx, a.Tenant, t.ID, reassignTo); err != nil {
			return err
		}
		if err := s.forgetAll(ctx, a.Tenant, KindTeam, t.ID); err != nil {
			return err
		}
		if err := s.store.DeleteTeam(ctx, a.Tenant, t.ID); err != nil {
			return err
		}
		return s.removeRest(ctx, a.Tenant, KindTeam, t.ID)
	})
}

// Members returns a page of a team's memberships to any session, sorted by displayName (the
// default: the users' labels), username or createdAt. The team is found by id or slug.
// Errors: errs.NotFound; errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Members(ctx context.Context, teamID string, q paging.Query) (paging.Page[Membership], error) {
	t, err := s.Team(ctx, teamID)
	if err != nil {
		return paging.Page[Membership]{}, err
	}
	return s.store.Members(ctx, t.Tenant, t.ID, q)
}

// Member returns one membership to any session. The team is found by id or slug. Errors:
// errs.NotFound.
func (s *Service) Member(ctx context.Context, teamID, username string) (Membership, error) {
	t, err := s.Team(ctx, teamID)
	if err != nil {
		return Membership{}, err
	}
	if ValidOldUsername(username) != nil {
		return Membership{}, errs.New(errs.NotFound, "Member not found.")
	}
	return s.store.Member(ctx, t.Tenant, t.ID, username)
}

// Memberships returns a page of a user's memberships to any session, sorted by teamName (the
// default) or createdAt.
// Errors: errs.NotFound; errs.Invalid for a sort or cursor that does not fit.
func (s *Service) Memberships(ctx context.Context, username string, q paging.Query) (paging.Page[Membership], error) {
	u, err := s.User(ctx, username)
	if err != nil {
		return paging.Page[Membership]{}, err
	}
	return s.store.Memberships(ctx, u.Tenant, u.Username, q)
}

// PutMember adds a user to a team, or sets the role of a member. It needs a superuser or an admin
// of the team.
// Errors: errs.Forbidden; errs.NotFound for the team or the user; errs.Invalid for a role that is
// none.
func (s *Service) PutMember(ctx context.Context, teamID, username string, role actor.Role) (Membership, error) {
	of := entity.Subject{Kind: entity.KindMember, ID: s.feed.Part(teamID, username), Action: entity.ActionUpdate}
	if s.feed.Wanted(ctx, of) {
		return entity.Record(ctx, s.feed, of, nil, func(ctx context.Context) (Membership, error) {
			return s.PutMember(ctx, teamID, username, role)
		})
	}
	a, t, err := s.managed(ctx, teamID)
	if err != nil {
		return Membership{}, err
	}
	if role < actor.Member || role > actor.Admin {
		_, err := actor.ParseRole("") // says which there are
		return Membership{}, err
	}
	u, err := s.user(ctx, a.Tenant, username)
	if err != nil {
		return Membership{}, err
	}
	m := Membership{
		TeamID:      t.ID,
		TeamName:    t.Name,
		Username:    u.Username,
		DisplayName: u.DisplayName,
		Role:        role,
		CreatedAt:   s.clock.Stamp(),
	}
	if err := s.store.PutMember(ctx, a.Tenant, m); err != nil {
		return Membership{}, err
	}
	return s.store.Member(ctx, a.Tenant, m.TeamID, m.Username) // it may have existed before
}

// DeleteMember removes a user from a team. It needs a superuser or an admin of the team. Errors:
// errs.Forbidden; errs.NotFound for the team, or when the user is not in it.
func (s *Service) DeleteMember(ctx context.Context, teamID, username string) error {
	of := entity.Subject{Kind: entity.KindMember, ID: s.feed.Part(teamID, username), Action: entity.ActionDelete}
	if s.feed.Wanted(ctx, of) {
		return s.feed.Do(ctx, of, func(ctx context.Context) error { return s.DeleteMember(ctx, teamID, username) })
	}
	a, t, err := s.managed(ctx, teamID)
	if err != nil {
		return err
	}
	if ValidUsername(username) != nil {
		return errs.New(errs.NotFound, "Member not found.")
	}
	return s.store.DeleteMember(ctx, a.Tenant, t.ID, username)
}
