package dirsync

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/principals"
)

// writer has the destination of a plan.
type writer struct {
	store      Store
	principals Principals
	tenant     string
	at         time.Time
	progress   func(done, total int) // or nil
}

// write writes a plan, in batches. Names are freed before other users get them, and users and teams
// are written before memberships.
func (p *plan) write(ctx context.Context, w writer) error {
	done, total := 0, len(p.renames)+len(p.edits)+len(p.creates)+len(p.newTeams)+len(p.oldTeams)+len(p.leave)+
		len(p.join)
	step := func(n int, err error) error {
		if done += n; err == nil && w.progress != nil {
			w.progress(done, total)
		}
		return err
	}
	if len(p.renames) > 0 {
		if err := step(len(p.renames), w.principals.Rename(ctx, w.tenant, p.renames, w.at)); err != nil {
			return err
		}
	}
	if err := p.writeUsers(ctx, w, step); err != nil {
		return err
	}
	if err := p.writeTeams(ctx, w, step); err != nil {
		return err
	}
	for some := range transfer.Chunks(p.leave) {
		if err := step(len(some), w.store.DeleteMembers(ctx, w.tenant, some)); err != nil {
			return err
		}
	}
	for some := range transfer.Chunks(p.join) {
		members := make([]principals.Membership, len(some))
		for i, member := range some {
			members[i] = principals.Membership{
				TeamID:    member.TeamID,
				Username:  member.Username,
				Role:      actor.Member,
				CreatedAt: w.at,
			}
		}
		if err := step(len(some), w.store.AddMembers(ctx, w.tenant, members)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) writeUsers(ctx context.Context, w writer, step func(int, error) error) error {
	for some := range transfer.Chunks(p.edits) {
		names, places := make([]string, len(some)), make(map[string]int32, len(some))
		for i, at := range some {
			names[i] = p.nameOf(at)
			places[names[i]] = at
		}
		edit := p.editor()
		err := w.store.EditDirectoryUsers(ctx, w.tenant, names, w.at, func(u *principals.DirectoryUser) {
			edit(places[u.Username], u)
		})
		if err := step(len(some), err); err != nil {
			return err
		}
		if err := w.principals.Disabled(ctx, w.tenant, p.disabled(some)...); err != nil {
			return err
		}
	}
	for some := range transfer.Chunks(p.creates) {
		if err := step(
			len(some), w.store.AddDirectoryUsers(ctx, w.tenant, p.domain, p.newUsers(some), w.at),
		); err != nil {
			return err
		}
	}
	return nil
}

// disabled returns the usernames of those of some known users who are disabled, and not only
// locked.
func (p *plan) disabled(some []int32) (names []string) {
	for _, at := range some {
		if p.known[at].disables {
			names = append(names, p.nameOf(at))
		}
	}
	return names
}

// editor returns a function that applies the decisions to a known user. It does not repeat the
// warnings.
func (p *plan) editor() func(at int32, u *principals.DirectoryUser) {
	silent := p.writer.Silent()
	return func(at int32, u *principals.DirectoryUser) {
		k := &p.known[at]
		if k.person != none {
			silent.Update(u, p.all.People[k.person])
		}
		switch {
		case k.disables:
			u.Disable()
		case k.locks:
			u.Lock()
		case k.enables:
			u.Enable()
		}
	}
}

// newUsers returns new users for people.
func (p *plan) newUsers(some []int32) []principals.DirectoryUser {
	silent := p.writer.Silent()
	users := make([]principals.DirectoryUser, len(some))
	for i, at := range some {
		users[i] = silent.NewUser(p.all.People[at])
	}
	return users
}

func (p *plan) writeTeams(ctx context.Context, w writer, step func(int, error) error) error {
	for some := range transfer.Chunks(p.newTeams) {
		for i := range some {
			some[i].Tenant, some[i].CreatedAt, some[i].UpdatedAt = w.tenant, w.at, w.at
		}
		if err := step(len(some), w.store.PutTeams(ctx, w.tenant, some, nil)); err != nil {
			return err
		}
	}
	for _, t := range p.oldTeams {
		_, err := w.store.UpdateTeam(ctx, w.tenant, t.ID, func(stored *principals.Team) error {
			stored.Name, stored.Description, stored.Source, stored.DirectoryGone, stored.UpdatedAt =
				t.Name, t.Description, t.Source, t.DirectoryGone, w.at
			return nil
		})
		if err := step(1, err); err != nil {
			return err
		}
	}
	return nil
}
