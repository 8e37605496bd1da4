package principals

import (
	"context"

	"github.com/tenantcontent/tenantcontent/actor"
)

// UserPermissions is what the caller may do with a user.
type UserPermissions struct {
	ChangeDomain, ChangeProfile, ChangePassword, Delete, Edit, Reassign, Superuser, Enable, ChangeTheme, Lock,
	SetGlobalPermissions, ManageLogin bool
}

// UserPermissions returns what the caller may do with a user: see UserPermissionsOf. Errors: as
// User.
func (s *Service) UserPermissions(ctx context.Context, username string) (UserPermissions, error) {
	u, err := s.User(ctx, username)
	if err != nil {
		return UserPermissions{}, err
	}
	a, err := actor.From(ctx)
	return UserPermissionsOf(a, u), err
}

// UserPermissionsOf returns what an actor may do with a user: a superuser everything, users with
// themselves what UpdateUser and SetPassword allow. Nobody may change the password of a user of
// another domain than Local.
func UserPermissionsOf(a actor.Actor, u User) UserPermissions {
	all := a.Superuser && a.Tenant == u.Tenant && !a.ReadOnly
	own := all || a.User == u.Username && a.Tenant == u.Tenant && !a.ReadOnly
	return UserPermissions{
		ChangeProfile: own, ChangePassword: own && u.ManagesPassword(), Edit: own, Reassign: own, ChangeTheme: own,
		ChangeDomain: all, Delete: all, Superuser: all,
		Enable: all, Lock: all, SetGlobalPermissions: all, ManageLogin: all,
	}
}

// TeamPermissions is what the caller may do with a team.
type TeamPermissions struct {
	ChangeDomain, Delete, Edit, ManageMembers, Reassign, Write bool
}

// TeamPermissions returns what the caller may do with a team: see TeamPermissionsOf. Errors: as
// Team.
func (s *Service) TeamPermissions(ctx context.Context, id string) (TeamPermissions, error) {
	t, err := s.Team(ctx, id)
	if err != nil {
		return TeamPermissions{}, err
	}
	a, err := actor.From(ctx)
	return TeamPermissionsOf(a, t), err
}

// TeamPermissionsOf returns what an actor may do with a team: a superuser everything; an admin of
// the team everything but delete it and change its domain.
func TeamPermissionsOf(a actor.Actor, t Team) TeamPermissions {
	all := a.Superuser && a.Tenant == t.Tenant && !a.ReadOnly
	manages := all || a.Teams[t.ID] >= actor.Admin && a.Tenant == t.Tenant && !a.ReadOnly
	return TeamPermissions{
		Edit: manages, ManageMembers: manages, Reassign: manages, Write: manages,
		ChangeDomain: all, Delete: all,
	}
}
