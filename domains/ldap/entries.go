package ldap

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	goldap "github.com/go-ldap/ldap/v3"

	"github.com/tenantcontent/tenantcontent/domains"
)

// errEnough ends a scan whose reader stops.
var errEnough = errors.New("enough")

// Entries implements domains.Directory.
func (r *realm) Entries(ctx context.Context) iter.Seq2[domains.Entry, error] {
	return func(yield func(domains.Entry, error) bool) {
		err := r.read(ctx, func(e domains.Entry) error {
			if !yield(e, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && err != errEnough {
			yield(domains.Entry{}, err)
		}
	}
}

// read calls emit for every person, then for every group.
func (r *realm) read(ctx context.Context, emit func(domains.Entry) error) error {
	c, err := r.connect(ctx, maxBytes)
	if err != nil {
		return err
	}
	defer c.close()
	s := &scan{
		conn:     c,
		emit:     emit,
		personAt: map[string]int32{},
		groupAt:  map[string]int32{},
		keyed:    map[key]int32{},
		primary:  map[key][]int32{},
	}
	if err := c.each(r.people, r.personAttributes(), s.person); err != nil {
		return err
	}
	if err := c.each(r.groups, append(r.groupAttributes(), r.groupMember), s.group); err != nil {
		return err
	}
	for _, more := range s.ranged {
		if err := s.rest(more); err != nil {
			return err
		}
	}
	c.release() // everything has been read
	return s.emitGroups()
}

// memberName is the attribute of users that groups of the class posixGroup refer to.
const memberName = "uid"

// membersByName reports whether groups have names of users, and not DNs.
func (r *realm) membersByName() bool { return strings.EqualFold(r.groupMember, "memberUid") }

// scan is a running scan. Of users it keeps only their ids and the keys that groups refer to.
type scan struct {
	*conn
	emit func(domains.Entry) error
	keys keys

	ids      []string         // of people
	personAt map[string]int32 // id -> place in ids
	keyed    map[key]int32    // DN or name of people -> place in ids, or ambiguous
	primary  map[key][]int32  // key of a group -> places in ids of the people whose primary group it is
	all      []*group
	groupAt  map[string]int32 // id -> place in all
	ranged   []ranged

	memberships int // read so far
}

// ambiguous is the place of a key that two people share.
const ambiguous = -1

// person reads an entry that matches userFilter. An entry that is returned twice, for instance
// because it was renamed meanwhile, counts once.
func (s *scan) person(_ *conn, e *goldap.Entry) error {
	if s.isBuiltin(e) {
		return nil
	}
	who, err := s.identity(e)
	if err != nil {
		return err
	}
	at, again := s.personAt[who.ID]
	if !again {
		at = int32(len(s.ids))
		s.personAt[who.ID] = at
		s.ids = append(s.ids, who.ID)
	}
	for _, k := range s.keysOf(e) {
		if other, taken := s.keyed[k]; taken && other != at {
			s.keyed[k] = ambiguous
		} else {
			s.keyed[k] = at
		}
	}
	if again {
		return nil
	}
	if k, ok := s.primaryKey(e); ok {
		s.primary[k] = append(s.primary[k], at)
	}
	return s.emit(domains.Entry{Person: &who})
}

// keysOf returns the keys by which groups may refer to a person.
func (s *scan) keysOf(e *goldap.Entry) []key {
	if !s.membersByName() {
		return []key{s.keys.dn(e.DN)}
	}
	var all []key
	for _, name := range e.GetEqualFoldAttributeValues(memberName) {
		all = append(all, s.keys.name(name))
	}
	return all
}

// group reads an entry that matches groupFilter.
func (s *scan) group(from *conn, e *goldap.Entry) error {
	id, attribute, err := s.idOf(e, s.groupIDs)
	if err != nil {
		return err
	}
	if isOwnID(attribute) { // of people, which some groups have
		attribute = ""
	}
	if _, again := s.groupAt[id]; again {
		return nil
	}
	s.groupAt[id] = int32(len(s.all))
	g := &group{
		id:          id,
		attribute:   attribute,
		key:         s.keys.dn(e.DN),
		name:        textOf(e, s.groupName, maxValue),
		description: textOf(e, "description", maxDescription),
	}
	g.hidden = s.isBuiltin(e) // yet its members are those of a group that has it as a member
	if k, ok := s.ownKey(e); ok {
		g.people = slices.Clone(s.primary[k])
		if s.memberships += len(g.people); s.memberships > maxMemberships {
			return s.tooMany()
		}
	}
	s.all = append(s.all, g)
	next, err := s.members(g, e)
	if next > 0 {
		s.ranged = append(s.ranged, ranged{g, from, e.DN, next})
	}
	return err
}

// members reads the members that an entry of a group has. Active Directory returns at most 1,500 at
// a time, in an attribute such as member;range=0-1499. next is where the next range begins, 0 after
// the last one, and -1 if there is no range.
func (s *scan) members(g *group, e *goldap.Entry) (next int, err error) {
	next = -1
	for _, a := range e.Attributes {
		name, option, _ := strings.Cut(a.Name, ";")
		if !strings.EqualFold(name, s.groupMember) {
			continue
		}
		if s.memberships += len(a.Values); s.memberships > maxMemberships {
			return 0, s.tooMany()
		}
		for _, value := range a.Values {
			s.member(g, value)
		}
		if bounds, ok := strings.CutPrefix(strings.ToLower(option), "range="); ok {
			if next, ok = afterRange(bounds); !ok {
				return 0, s.badRange(e.DN)
			}
		}
	}
	return next, nil
}

// member adds a member to a group.
func (s *scan) member(g *group, value string) {
	var k key
	switch {
	case s.membersByName():
		k = s.keys.name(value)
	case strings.EqualFold(s.groupMember, "uniqueMember"):
		k = s.keys.dn(withoutBits(value))
	default:
		k = s.keys.dn(value)
	}
	if at, ok := s.keyed[k]; !ok {
		g.others = append(g.others, k)
	} else if at != ambiguous {
		g.people = append(g.people, at)
	}
}
