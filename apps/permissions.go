package apps

import (
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Permissions is what an actor may do with an app.
type Permissions struct {
	AssignTags, Bind, ChangeOwner, Copy, Delete, Edit, Manage, Purge, Restore, Run, Share, SwitchRoles, Write bool
}

// The lowest roles that have a permission beside the access. That of the others depends on the tier
// of the app: see writer.
const (
	roleToRun         = actor.Member
	roleToBind        = actor.Member
	roleToAssignTags  = actor.Designer
	roleToPurge       = actor.DataWizard
	roleToShare       = actor.Publisher
	roleToChangeOwner = actor.Admin
)

// PermissionsOf returns what an actor with a grant may do with an app.
//
// The owner, the members of the owning team, and principals with a share of shares.Write have write
// access; those with a share of shares.Use may run the app. Beside the access each permission has
// the lowest role that has it. The role is that in the owning team, or for an app of the actor the
// actor's highest one; who has a share brings the highest role over all teams. A read-only token
// may do nothing.
func PermissionsOf(a actor.Actor, app App, grant Grant) Permissions {
	if a.ReadOnly {
		return Permissions{}
	}
	asUser, asWriter := actor.Admin, actor.Admin
	if !a.Superuser {
		asUser, asWriter = roleAt(a, app, grant, shares.Use), roleAt(a, app, grant, shares.Write)
	}
	write := asWriter >= writer(app.Type)
	return Permissions{
		AssignTags: asWriter >= roleToAssignTags,
		Bind:       asWriter >= roleToBind, ChangeOwner: asWriter >= roleToChangeOwner,
		Copy: write, Delete: write, Edit: write && !app.IsManaged,
		Manage: write, Purge: asWriter >= roleToPurge, Restore: write,
		Run: asUser >= roleToRun, Share: asWriter >= roleToShare, SwitchRoles: write, Write: write,
	}
}

// ofDraft returns what is left of the permissions on an app for its draft: who it belongs to, who
// it is shared with, its tags and its life are those of the app, where they are changed.
func (p Permissions) ofDraft() Permissions {
	p.AssignTags, p.ChangeOwner, p.Copy, p.Delete, p.Purge, p.Restore, p.Share =
		false, false, false, false, false, false, false
	return p
}

// Visible reports whether an actor with a grant sees an app.
func Visible(a actor.Actor, app App, grant Grant) bool {
	return a.Superuser || owns(a, app) || grant.Level >= shares.Use
}

// owns reports whether the app belongs to the actor, or to a team of the actor.
func owns(a actor.Actor, app App) bool { return drafts.Owns(a, app.OwnerID) }

// roleAt returns the highest role that an actor brings to an app with the access, NoRole without
// it.
func roleAt(a actor.Actor, app App, grant Grant, access shares.Level) actor.Role {
	role := actor.NoRole
	if a.User == app.OwnerID {
		role = a.Role()
	} else if own, ok := a.Teams[app.OwnerID]; ok {
		role = own
	}
	if grant.Level >= access {
		role = max(role, a.Role())
	}
	return role
}

// orHigher returns a role for the sentence "This needs the role …".
func orHigher(lowest actor.Role) string {
	if lowest == actor.Admin {
		return lowest.String()
	}
	return lowest.String() + " or a higher one"
}

// writer returns the lowest role that creates and writes apps of a tier.
func writer(t Tier) actor.Role {
	if t == Full {
		return actor.Admin
	}
	return actor.Designer
}
