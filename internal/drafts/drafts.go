// Package drafts has the rules of entities that are edited in drafts, shared and have files, such
// as apps and assistants: the edit lock of a draft, who edits it and until when others may not, the
// life of a draft, shares, files, secrets and imports.
//
// Nouns whose entities are edited in drafts import it, and httpapi does.
package drafts

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Lifetime is how long a lock lives after its holder has taken or renewed it.
const Lifetime = 5 * time.Minute

// Lock is the edit lock of a draft. It belongs to a credential: a session, or an API token. The
// zero Lock is free.
type Lock struct {
	Session     *string    // Credential of the holder; nil: free
	HeartbeatAt *time.Time // when it was last taken or renewed
	LockedBy    *string    // username
}

// Credential returns the name of an actor's credential, as Lock.Session has it. A host's actor, who
// has neither a session nor a token, is known by the user's name.
func Credential(a actor.Actor) string {
	sum := sha256.Sum256([]byte(a.Tenant + "\x00" + a.User + "\x00" + a.Session + "\x00" + a.Token))
	return hex.EncodeToString(sum[:16])
}

// Lives reports whether somebody holds the lock.
func (l Lock) Lives(now time.Time) bool {
	return l.Session != nil && l.HeartbeatAt != nil && now.Before(l.HeartbeatAt.Add(Lifetime))
}

// Holds reports whether an actor holds the lock.
func (l Lock) Holds(a actor.Actor, now time.Time) bool {
	return l.Lives(now) && *l.Session == Credential(a)
}

// Take returns the lock as the actor holds it from now on, and whether the actor does: not while
// another credential holds it, unless by force.
func (l Lock) Take(a actor.Actor, now time.Time, force bool) (Lock, bool) {
	if l.Lives(now) && !l.Holds(a, now) && !force {
		return l, false
	}
	session := Credential(a)
	return Lock{Session: &session, HeartbeatAt: &now, LockedBy: &a.User}, true
}

// Check returns errs.Conflict, naming who holds the lock, when that is another credential than the
// actor's.
func (l Lock) Check(a actor.Actor, now time.Time) error {
	if !l.Lives(now) || l.Holds(a, now) {
		return nil
	}
	who := "another session"
	if l.LockedBy != nil && *l.LockedBy != a.User {
		who = *l.LockedBy
	}
	return errs.New(errs.Conflict,
		"The draft is being edited by %s until %s: wait, or take over with _edit?force=true.",
		who, l.HeartbeatAt.Add(Lifetime).UTC().Format("15:04:05 MST"))
}
