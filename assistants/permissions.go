package assistants

import (
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
	"github.com/tenantcontent/tenantcontent/internal/drafts/shares"
)

// Permissions is what an actor may do with an assistant.
type Permissions struct {
	ChangeOwner, Chat, Delete, Edit, Share, Write bool
}

// PermissionsOf returns what an actor with a grant may do with an assistant. The owner and
// superusers may do everything, and so may Designers and higher roles of the owning team; its other
// members may talk to the assistant. A share grants shares.Use to talk to it, shares.Write to
// change it, and shares.Admin to share it, delete it and pass it on, too. A read-only token may do
// nothing.
func PermissionsOf(a actor.Actor, as Assistant, grant Grant) Permissions {
	if a.ReadOnly {
		return Permissions{}
	}
	level := levelOf(a, as, grant)
	write, admin := level >= shares.Write, level >= shares.Admin
	return Permissions{
		ChangeOwner: admin,
		Chat:        level >= shares.Use,
		Delete:      admin,
		Edit:        write,
		Share:       admin,
		Write:       write,
	}
}

// levelOf returns the access of an actor, also with a token that can only read.
func levelOf(a actor.Actor, as Assistant, grant Grant) shares.Level {
	role, member := a.Teams[as.OwnerID]
	switch {
	case a.Superuser, a.User == as.OwnerID, member && role >= actor.Designer:
		return shares.Admin
	case member:
		return max(grant.Level, shares.Use)
	}
	return grant.Level
}

// ofDraft returns what is left of the permissions on an assistant for its draft: who it belongs to,
// who it is shared with and its life are those of the assistant, where they are changed.
func (p Permissions) ofDraft() Permissions {
	p.ChangeOwner, p.Delete, p.Share = false, false, false
	return p
}

// Visible reports whether an actor with a grant sees an assistant.
func Visible(a actor.Actor, as Assistant, grant Grant) bool {
	return levelOf(a, as, grant) >= shares.Use
}

// inside reports whether an actor sees the insides of an assistant: its files, its shares and the
// names of its secrets.
func inside(a actor.Actor, as Assistant, grant Grant) bool {
	return levelOf(a, as, grant) >= shares.Write
}

var errInside = errs.New(
	errs.Forbidden,
	"This is for those who may change the assistant: its owner, designers of the owning team, and those who have "+
		"a share with accessLevel 2 or 3.",
)

// needs returns the access for a permission, with the sentence for those who do not have it.
func needs(has func(Permissions) bool, sentence string) drafts.Access[Assistant] {
	return func(a actor.Actor, as Assistant, grant Grant) error {
		switch {
		case has(PermissionsOf(a, as, grant)):
			return nil
		case a.ReadOnly:
			return a.OnlyReads()
		}
		return errs.New(errs.Forbidden, "%s", sentence)
	}
}

const whoWrites = "This needs to own the assistant, the role designer or a higher one in the owning team, or a " +
	"share with accessLevel "

// The permissions that methods need.
func toChat() drafts.Access[Assistant] {
	// which everybody does who sees it
	return needs(func(p Permissions) bool { return p.Chat }, "This needs to see the assistant.")
}

func toWrite() drafts.Access[Assistant] {
	return needs(func(p Permissions) bool { return p.Write }, whoWrites+"2.")
}

func toDelete() drafts.Access[Assistant] {
	return needs(func(p Permissions) bool { return p.Delete }, whoWrites+"3.")
}

func toShare() drafts.Access[Assistant] {
	return needs(func(p Permissions) bool { return p.Share }, whoWrites+"3.")
}

func toChangeOwner() drafts.Access[Assistant] {
	return needs(func(p Permissions) bool { return p.ChangeOwner }, whoWrites+"3.")
}
