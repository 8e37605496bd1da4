package drafts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts"
)

var (
	noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

	jo      = actor.Actor{Tenant: "acme", User: "jo", Session: "s1"}
	joAgain = actor.Actor{Tenant: "acme", User: "jo", Session: "s2"} // in another browser
	mia     = actor.Actor{Tenant: "acme", User: "mia", Session: "s3"}
)

func TestCredential(t *testing.T) {
	all := map[string]actor.Actor{
		"session": jo, "another session": joAgain, "another user": mia,
		"another tenant": {Tenant: "evil", User: "jo", Session: "s1"},
		"token":          {Tenant: "acme", User: "jo", Token: "s1"},
		"host":           {Tenant: "acme", User: "jo"},
		"names joined":   {Tenant: "acme", User: "jos1"},
	}
	is, seen := is.New(t), map[string]string{}
	for name, a := range all {
		id := drafts.Credential(a)
		is.Equal(seen[id], "") // all differ
		seen[id] = name
		is.True(len(id) == 32 && !strings.Contains(id, "s1")) // does not tell the session
	}
	more := jo
	more.Superuser, more.AI, more.Teams = true, true, map[string]actor.Role{"t": actor.Admin}
	is.Equal(drafts.Credential(more), drafts.Credential(jo)) // the rights of the moment do not matter
}

// taken returns the lock that an actor took at a time.
func taken(a actor.Actor, at time.Time) drafts.Lock {
	l, _ := drafts.Lock{}.Take(a, at, false)
	return l
}

func TestLock(t *testing.T) {
	session := "s"
	for name, c := range map[string]struct {
		lock         drafts.Lock
		who          actor.Actor
		at           time.Time
		lives, holds bool
		taken        bool   // without force
		refusal      string // part of the message, "" for none
	}{
		"free":         {drafts.Lock{}, jo, noon, false, false, true, ""},
		"no heartbeat": {drafts.Lock{Session: &session}, jo, noon, false, false, true, ""},
		"own":          {taken(jo, noon), jo, noon, true, true, true, ""},
		"own, later":   {taken(jo, noon), jo, noon.Add(4 * time.Minute), true, true, true, ""},
		"own, expired": {taken(jo, noon), jo, noon.Add(5 * time.Minute), false, false, true, ""},
		"own, other session": {
			taken(jo, noon), joAgain, noon, true, false, false, "by another session until 12:05:00 UTC",
		},
		"other's": {taken(jo, noon), mia, noon, true, false, false, "by jo until 12:05:00 UTC"},
		"other's, last moment": {
			taken(jo, noon), mia, noon.Add(drafts.Lifetime - time.Microsecond), true, false, false, "by jo",
		},
		"other's, expired": {taken(jo, noon), mia, noon.Add(drafts.Lifetime), false, false, true, ""},
		"nobody's name": {
			drafts.Lock{Session: &session, HeartbeatAt: &noon}, jo, noon, true, false, false,
			"by another session",
		},
		"from a node ahead": {
			taken(jo, noon.Add(time.Second)), mia, noon, true, false, false, "by jo until 12:05:01 UTC",
		},
		"time in another region": {
			taken(jo, noon.In(time.FixedZone("", 3600))), mia, noon, true, false, false, "until 12:05:00 UTC",
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(c.lock.Lives(c.at), c.lives)
			is.Equal(c.lock.Holds(c.who, c.at), c.holds)

			err := c.lock.Check(c.who, c.at)
			if c.refusal == "" {
				is.NoErr(err)
			} else {
				is.Equal(errs.CodeOf(err), errs.Conflict)
				is.True(strings.Contains(errs.MessageOf(err), c.refusal))
			}

			was := c.lock
			got, ok := c.lock.Take(c.who, c.at, false)
			is.Equal(ok, c.taken)
			is.Equal(c.lock, was) // Take returns a new one
			if !ok {
				is.Equal(got, was)
				got, ok = c.lock.Take(c.who, c.at, true)
				is.True(ok)
			}
			is.True(got.Holds(c.who, c.at))
			is.Equal(*got.HeartbeatAt, c.at)
			is.Equal(*got.LockedBy, c.who.User)
			is.True(got.Lives(c.at.Add(drafts.Lifetime - 1)))
			is.True(!got.Lives(c.at.Add(drafts.Lifetime)))
		})
	}
}

// TestTakeOver: who lost a lock by force is refused, and can take it back by force alone.
func TestTakeOver(t *testing.T) {
	is := is.New(t)
	l, ok := taken(jo, noon).Take(mia, noon.Add(time.Minute), true)
	is.True(ok)
	is.True(!l.Holds(jo, noon.Add(time.Minute)))
	_, ok = l.Take(jo, noon.Add(time.Minute), false)
	is.True(!ok)
	is.True(strings.Contains(l.Check(jo, noon.Add(2*time.Minute)).Error(), "by mia until 12:06:00 UTC"))
	l, ok = l.Take(jo, noon.Add(6*time.Minute), false) // it has expired
	is.True(ok)
	is.True(l.Holds(jo, noon.Add(6*time.Minute)))
}
