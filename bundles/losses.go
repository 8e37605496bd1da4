package bundles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
)

// losses counts what a restore or deploy removes and the archive of what it replaces does not contain.
type losses struct {
	Dependents
	users, memberships int
	secrets            int // in rows, which archives mask
}

// countLosses counts what is lost with some entities that are going to be removed.
func (l *importer) countLosses(ctx context.Context, kind entity.Kind, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	h, err := l.s.store.Dependents(ctx, l.tenant, kind, ids, l.s.stamp())
	if err != nil {
		return err
	}
	all := &l.lost
	if all.Comments += h.Comments; kind != "user" {
		return nil
	}
	all.users += len(ids)
	all.Passwords += h.Passwords
	all.SuperuserRights += h.SuperuserRights
	all.Permissions += h.Permissions
	all.MFA += h.MFA
	all.AIConsents += h.AIConsents
	all.AIMessages += h.AIMessages
	all.Notifications += h.Notifications
	all.Tokens += h.Tokens
	all.Sessions += h.Sessions
	all.Pictures += h.Pictures
	all.Files += h.Files
	all.Authorships += h.Authorships
	for team, n := range h.Memberships {
		if !l.kept.has(entity.Key{Kind: "team", ID: team}) {
			all.memberships += n
		}
	}
	return nil
}

// warnOfLosses warns of the losses, also in a dry run, so that a person can decide first.
func (l *importer) warnOfLosses() {
	lost := func(with string, all ...entity.Count) {
		var what []string
		for _, c := range all {
			if c.N > 0 {
				what = append(what, c.String())
			}
		}
		if len(what) > 0 {
			l.warnOwn(fmt.Sprintf("Lost with %s: %s. The archive of what is replaced does not hold them.", with, strings.Join(what, ", ")))
		}
	}
	h := l.lost
	lost("the content that is removed", entity.Count{N: h.secrets, Of: "secret"}, entity.Count{N: h.Comments, Of: "comment thread"})
	lost(entity.Count{N: h.users, Of: "user"}.String(), entity.Count{N: h.Passwords, Of: "password"},
		entity.Count{N: h.SuperuserRights, Of: "superuser right"}, entity.Count{N: h.Permissions, Of: "global permission"},
		entity.Count{N: h.MFA, Of: "multi-factor setting"}, entity.Count{N: h.AIConsents, Of: "AI consent"},
		entity.Count{N: h.AIMessages, Of: "AI message"}, entity.Count{N: h.Notifications, Of: "notification"},
		entity.Count{N: h.Tokens, Of: "API token"}, entity.Count{N: h.Sessions, Of: "session"},
		entity.Count{N: h.memberships, Of: "team membership"}, entity.Count{N: h.Pictures, Of: "picture"},
		entity.Count{N: h.Files, Of: "file"}, entity.Count{N: h.Authorships, Of: "comment authorship"})
}

// has reports whether a plan names an entity. Its ids are ordered.
func (p plan) has(k entity.Key) bool {
	_, found := slices.BinarySearchFunc(p[k.Kind], k.ID, cmp.Compare[string])
	return found
}
