package dirsync

import (
	"cmp"
	"context"
	"slices"

	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// reader reads the rows of a domain. Each stage calls each method that it needs once.
type reader interface {
	// users calls each with the users of the domain, ordered by username.
	users(each func(principals.DirectoryUser)) error
	// holders returns the users of the tenant that have some folded names.
	holders(folded []string) (map[string]principals.Holder, error)
	// superusers returns the number of enabled superusers of the tenant.
	superusers() (int, error)
	// teams returns the teams of the domain, ordered by id.
	teams() ([]principals.Team, error)
	// slugs returns the slugs of all teams of the tenant.
	slugs() ([]string, error)
	// members calls each with the memberships of the domain's teams, unordered.
	members(each func(MemberKey)) error
}

// rows is a reader over a Store.
type rows struct {
	ctx            context.Context
	store          Store
	tenant, domain string
}

func (r rows) users(each func(principals.DirectoryUser)) error {
	return r.store.DomainUsers(r.ctx, r.tenant, r.domain, each)
}

func (r rows) holders(folded []string) (map[string]principals.Holder, error) {
	return r.store.Holders(r.ctx, r.tenant, folded)
}

func (r rows) superusers() (int, error) { return r.store.OtherSuperusers(r.ctx, r.tenant, "") }

func (r rows) teams() ([]principals.Team, error) {
	return r.store.DomainTeams(r.ctx, r.tenant, r.domain)
}

func (r rows) slugs() ([]string, error) { return r.store.Slugs(r.ctx, r.tenant) }

func (r rows) members(each func(MemberKey)) error {
	return r.store.DomainMembers(r.ctx, r.tenant, r.domain, each)
}

// people has the people of a directory and the users of its domain, for all stages. A tenant may
// have a hundred thousand, so they refer to each other by index, and only a few bytes of each user
// are kept.
type people struct {
	domain string
	all    Snapshot
	writer *profile.Writer
	*warnings

	byID   map[string]int32 // people by their ids
	order  []int32          // indexes of valid people, ordered by id
	person []person         // of all.People

	known   []known          // the users of the domain
	byName  map[string]int32 // known by username
	loose   map[string]int32 // known users without a source id, by folded username
	enabled int              // number of enabled known users, including those that the directory has only locked
}

// none is the index of a missing person, user or group.
const none = -1

// person is what the stages find out about a person of the snapshot.
type person struct {
	user  int32 // index in known, or none
	named bool  // the username is valid
	stays bool  // the username is not available: the user keeps the old one, or is not created
}

// known is a user of the domain.
type known struct {
	name                     string
	person                   int32 // index, or none
	enabled, superuser       bool
	noted, locked            bool // see User.DirectoryDisabled and DirectoryLocked
	alone                    bool // it must not be changed
	differs                  bool
	disables, locks, enables bool
}

// present reports whether the directory has a user's entry, which may log in.
func (p *people) present(k *known) bool {
	return p.stays(k) && !p.all.People[k.person].Locked
}

// stays reports whether the directory has a user's entry that may log in now or after a lock.
func (p *people) stays(k *known) bool {
	return k.person != none && !p.all.People[k.person].Disabled
}

// snapshot is the first stage: the people of a directory.
type snapshot struct{ *people }

// newSnapshot indexes the people of a directory, without those that have no valid and unique id.
func newSnapshot(domain, source string, all Snapshot) *snapshot {
	p := &people{
		domain: domain, all: all, warnings: &warnings{}, byID: make(map[string]int32, len(all.People)),
		person: make([]person, len(all.People)), byName: map[string]int32{}, loose: map[string]int32{},
	}
	p.writer = profile.NewWriter(source, p.warnOfText)
	for _, i := range sortedByID(all.People, func(who principals.Identity) string { return who.ID }) {
		who := &all.People[i]
		p.person[i] = person{user: none}
		if !profile.ValidID(who.ID) {
			p.warn("%s: the entry has no id of 1 to %d characters and is skipped.", shown(who.Username), profile.MaxID)
			continue
		}
		if first, twice := p.byID[who.ID]; twice {
			p.warn("%s: the entry has the same id as that of %s (%s) and is skipped.", shown(who.Username),
				shown(all.People[first].Username), shown(who.ID))
			continue
		}
		p.byID[who.ID], p.order = i, append(p.order, i)
		p.person[i].named = principals.ValidOldUsername(who.Username) == nil
	}
	return &snapshot{p}
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

// read reads the users of the domain, and compares those that have the source id of a person with
// it.
func (s *snapshot) read(from reader) (*stored, error) {
	if err := from.users(s.add); err != nil {
		return nil, err
	}
	return &stored{s.people}, nil
}

// add adds a user of the domain. Users must be added in the order of their usernames.
func (p *people) add(u principals.DirectoryUser) {
	at, k := int32(len(p.known)), known{
		name:      u.Username,
		person:    none,
		enabled:   u.Enabled,
		superuser: u.Superuser,
		noted:     u.DirectoryDisabled,
		locked:    u.DirectoryLocked,
	}
	p.byName[u.Username] = at
	if u.Lasts() {
		p.enabled++
	}
	i, found := p.byID[u.SourceID]
	switch {
	case u.SourceID == "":
		p.loose[fold.Name(u.Username)] = at
	case found && p.takes(i, u.Username):
		k.person, p.person[i].user = i, at
		was := u
		p.writer.Update(&u, p.all.People[i])
		k.differs = u != was
	case found:
		k.alone = true
	}
	p.known = append(p.known, k)
}

// takes reports whether an entry is assigned to this user, who has its source id. If several users
// have it, which only a superuser can cause, the entry is assigned to the one with its name, else
// to the first. The others are not changed.
func (p *people) takes(i int32, username string) bool {
	at := p.person[i].user
	if at == none {
		return true
	}
	other := &p.known[at]
	better := fold.Name(username) == fold.Name(p.all.People[i].Username)
	if better {
		other.person, other.differs, other.alone = none, false, true
	}
	p.warn(
		"%s and %s have the same sourceId: one is left alone. Take it away from the wrong one.", other.name,
		username,
	)
	return better
}
