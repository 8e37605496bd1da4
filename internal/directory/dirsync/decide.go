package dirsync

import (
	"fmt"
	"strings"
)

// matched is the third stage: the people of a directory with their users and usernames.
type matched struct{ *people }

// decide plans the changes of users, teams and memberships.
func (m *matched) decide(from reader, newID func() string) (*plan, error) {
	p := &plan{people: m.people, renames: map[string]string{}}
	superusers, err := from.superusers()
	if err != nil {
		return nil, err
	}
	p.decideUsers(superusers)
	existing, err := from.teams()
	if err != nil {
		return nil, err
	}
	p.decideTeams(existing, newID)
	if len(p.newTeams) > 0 {
		slugs, err := from.slugs()
		if err != nil {
			return nil, err
		}
		p.setSlugs(slugs)
	}
	p.listMemberships()
	if err := from.members(p.decideMember); err != nil {
		return nil, err
	}
	p.join = p.newMembers()
	return p, nil
}

// plan is the last stage: the changes of a Sync.
type plan struct {
	*people
	users, groups Counts

	creates []int32           // people
	edits   []int32           // known
	renames map[string]string // of known
	join    []MemberKey       // with the usernames after the scan
	leave   []MemberKey       // with the usernames after the scan

	teamPlan
}

// decideUsers plans the change of each user. superusers is the number of enabled superusers of the
// tenant.
func (p *plan) decideUsers(superusers int) {
	for _, i := range p.order {
		switch who := &p.all.People[i]; {
		case p.person[i].user == none && !p.person[i].stays:
			p.creates = append(p.creates, i)
			p.writer.NewUser(*who) // only for its warnings
		case p.person[i].user != none && !p.person[i].stays && p.known[p.person[i].user].name != who.Username:
			p.renames[p.known[p.person[i].user].name] = who.Username
		}
	}
	p.users.Created = len(p.creates)
	for at := range p.known {
		k := &p.known[at]
		if k.enables = !k.enabled && k.noted && p.present(k); k.enables && k.superuser {
			superusers++
		}
	}
	for at := range p.known {
		k := &p.known[at]
		switch {
		case k.alone || p.present(k) || !k.enabled && !k.locked:
		case k.enabled && k.superuser && superusers == 1:
			p.warn("%s is the last enabled superuser and stays enabled.", k.name)
		default:
			if k.enabled && k.superuser {
				superusers--
			}
			k.locks = k.enabled && p.stays(k)
			k.disables = !p.stays(k)
		}
		if k.differs || k.disables || k.locks || k.enables {
			p.edits = append(p.edits, int32(at))
		}
		switch _, renamed := p.renames[k.name]; {
		case k.disables, k.locks:
			p.users.Disabled++
		case k.differs || k.enables || renamed:
			p.users.Updated++
		default:
			p.users.Unchanged++
		}
	}
}

// nameOf returns the username that a known user has after the scan.
func (p *plan) nameOf(at int32) string {
	if name, renamed := p.renames[p.known[at].name]; renamed {
		return name
	}
	return p.known[at].name
}

// summary returns a Report of the planned changes.
func (p *plan) summary() Report {
	return Report{Users: p.users, Teams: p.groups, Added: len(p.join), Removed: len(p.leave), Warnings: p.sentences()}
}

// losses returns a description of changes that an incomplete directory or a wrong filter would
// cause, or "". It reports:
//
//   - if more than a fifth of the enabled users would be disabled, or of their memberships removed,
//     and more than ten of them,
//   - if more than half of the users would be disabled, however few they are,
//   - if any user would be disabled and the directory has no people,
//   - if any membership would be removed and the directory has no groups.
func (p *plan) losses() string {
	var all []string
	nobody, noGroup := len(p.all.People) == 0, len(p.all.Groups) == 0
	if n := p.users.Disabled; tooMany(n, p.enabled) || 2*n > p.enabled || nobody && n > 0 {
		all = append(all, fmt.Sprintf("disable %d of %d users of the domain %s", n, p.enabled, p.domain))
	}
	if n := len(p.leave); tooMany(n, p.members) || noGroup && n > 0 {
		all = append(
			all,
			fmt.Sprintf("remove %d of %d memberships in the teams of the domain %s", n, p.members, p.domain),
		)
	}
	return strings.Join(all, " and ")
}

func tooMany(n, of int) bool { return n > 10 && 5*n > of }
