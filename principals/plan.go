package principals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/internal/fold"
)

// plan is the changes that a scan makes. It is computed in memory and in steps, in this order: newPlan; user for each user of
// the domain; tie; name with the holders of the names that wantedNames returns; decide; then the steps in plan_teams.go. The same
// snapshot and users give the same plan, whatever the order of the snapshot.
//
// A tenant may have a hundred thousand people, so a plan refers to the snapshot by index and stores only a few bytes of each user.
type plan struct {
	domain string
	snap   Snapshot
	writer *profileWriter
	warnings
	report SyncReport

	byID   map[string]int32 // people by their ids
	order  []int32          // people who can be used, ordered by id
	person []person         // of snap.People

	known   []known          // the users of the domain
	byName  map[string]int32 // known by username
	loose   map[string]int32 // known without a source id, by folded username
	enabled int              // of known

	creates []int32           // people
	edits   []int32           // known
	renames map[string]string // of known

	planOfTeams
}

// none is the index of no person, user or group.
const none = -1

// person is the plan for a person of the snapshot.
type person struct {
	user  int32 // known, or none
	named bool  // the username is valid
	stays bool  // the username is not available: the user keeps the old one, or is not created
}

// known is a user of the domain.
type known struct {
	name                       string
	person                     int32 // or none
	enabled, superuser, noted  bool  // noted: see User.DirectoryDisabled
	alone                      bool  // not to be changed
	differs, disables, enables bool
}

func newPlan(domain string, snap Snapshot, source string) *plan {
	p := &plan{
		domain: domain, snap: snap, byID: make(map[string]int32, len(snap.People)), person: make([]person, len(snap.People)),
		byName: map[string]int32{}, loose: map[string]int32{}, renames: map[string]string{},
	}
	p.writer = newProfileWriter(source, p.warn)
	for _, i := range sortedByID(snap.People, func(who Identity) string { return who.ID }) {
		who := &snap.People[i]
		p.person[i] = person{user: none}
		if !validSourceID(who.ID) {
			p.warn("%s: the entry has no id of 1 to %d characters and is skipped.", shown(who.Username), maxSourceID)
			continue
		}
		if first, twice := p.byID[who.ID]; twice {
			p.warn("%s: the entry has the same id as that of %s (%s) and is skipped.", shown(who.Username),
				shown(snap.People[first].Username), shown(who.ID))
			continue
		}
		p.byID[who.ID], p.order = i, append(p.order, i)
		p.person[i].named = formOfUsername(who.Username) == nil
	}
	return p
}

// sortedByID returns the indexes of some entries in the order of their ids.
func sortedByID[T any](all []T, id func(T) string) []int32 {
	order := make([]int32, len(all))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(id(all[a]), id(all[b])) })
	return order
}

// user adds a user of the domain. Users must be added in the order of their usernames.
func (p *plan) user(u DirectoryUser) {
	at, k := int32(len(p.known)), known{name: u.Username, person: none, enabled: u.Enabled, superuser: u.Superuser, noted: u.DirectoryDisabled}
	p.byName[u.Username] = at
	if u.Enabled {
		p.enabled++
	}
	i, found := p.byID[u.SourceID]
	switch {
	case u.SourceID == "":
		p.loose[fold.Name(u.Username)] = at
	case found && p.gives(i, u.Username):
		k.person, p.person[i].user = i, at
		was := u
		p.writer.profile(&u, p.snap.People[i])
		k.differs = u != was
	case found:
		k.alone = true
	}
	p.known = append(p.known, k)
}

// gives reports whether an entry takes this user with its source id. Of several such users, which only a superuser can have
// made, it takes the one with its name, else the first; the others are not changed.
func (p *plan) gives(i int32, username string) bool {
	at := p.person[i].user
	if at == none {
		return true
	}
	other := &p.known[at]
	better := fold.Name(username) == fold.Name(p.snap.People[i].Username)
	if better {
		other.person, other.differs, other.alone = none, false, true
	}
	p.warn("%s and %s have the same sourceId: one is left alone. Take it away from the wrong one.", other.name, username)
	return better
}

// tie assigns users without a source id to the people with their names.
func (p *plan) tie() {
	for _, i := range p.order {
		if p.person[i].user != none || !p.person[i].named {
			continue
		}
		name := fold.Name(p.snap.People[i].Username)
		if at, found := p.loose[name]; found {
			delete(p.loose, name)
			p.person[i].user = at
			p.known[at].person, p.known[at].differs = i, true
			p.writer.newUser(p.snap.People[i]) // for what it warns of
		}
	}
}

// decide plans the change of each user. superusers is the number of enabled superusers of the tenant.
func (p *plan) decide(superusers int) {
	count := &p.report.Users
	for _, i := range p.order {
		switch who := &p.snap.People[i]; {
		case p.person[i].user == none && !p.person[i].stays:
			p.creates = append(p.creates, i)
			p.writer.newUser(*who) // for what it warns of
		case p.person[i].user != none && !p.person[i].stays && p.known[p.person[i].user].name != who.Username:
			p.renames[p.known[p.person[i].user].name] = who.Username
		}
	}
	count.Created = len(p.creates)
	for at := range p.known {
		k := &p.known[at]
		if k.enables = !k.enabled && k.noted && p.present(k); k.enables && k.superuser {
			superusers++
		}
	}
	for at := range p.known {
		k := &p.known[at]
		if !k.alone && k.enabled && !p.present(k) {
			if k.disables = !k.superuser || superusers > 1; !k.disables {
				p.warn("%s is the last enabled superuser and stays enabled.", k.name)
			} else if k.superuser {
				superusers--
			}
		}
		if k.differs || k.disables || k.enables {
			p.edits = append(p.edits, int32(at))
		}
		switch _, renamed := p.renames[k.name]; {
		case k.disables:
			count.Disabled++
		case k.differs || k.enables || renamed:
			count.Updated++
		default:
			count.Unchanged++
		}
	}
}

// present reports whether the directory has a user's entry, and lets it log in.
func (p *plan) present(k *known) bool {
	return k.person != none && !p.snap.People[k.person].Disabled
}

// nameOf returns the username that a known user has after the scan.
func (p *plan) nameOf(at int32) string {
	if name, renamed := p.renames[p.known[at].name]; renamed {
		return name
	}
	return p.known[at].name
}

// edit applies what is decided to a known user.
func (p *plan) edit(s *profileWriter, at int32, u *DirectoryUser) {
	k := &p.known[at]
	if k.person != none {
		s.profile(u, p.snap.People[k.person])
	}
	switch {
	case k.disables:
		u.Enabled, u.DirectoryDisabled = false, true
	case k.enables:
		u.Enabled, u.DirectoryDisabled = true, false
	}
}

// losses returns what looks like a directory that is half away, or a filter that is wrong, "" for nothing: more than a fifth of
// the enabled users, or of their memberships, and more than ten of them, would go; or of however few, more than half of the
// users, or any where the directory has nobody, and memberships where it has no group.
func (p *plan) losses() string {
	var all []string
	nobody, noGroup := len(p.snap.People) == 0, len(p.snap.Groups) == 0
	if n := p.report.Users.Disabled; tooMany(n, p.enabled) || 2*n > p.enabled || nobody && n > 0 {
		all = append(all, fmt.Sprintf("disable %d of %d users of the domain %s", n, p.enabled, p.domain))
	}
	if n := len(p.leave); tooMany(n, p.members) || noGroup && n > 0 {
		all = append(all, fmt.Sprintf("remove %d of %d memberships in the teams of the domain %s", n, p.members, p.domain))
	}
	return strings.Join(all, " and ")
}

func tooMany(n, of int) bool { return n > 10 && 5*n > of }
