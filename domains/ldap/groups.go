package ldap

import (
	"iter"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// maxMemberships bounds the members that are read, and those of nested groups together: ten
// thousand nested groups with all users would use up the memory. domains keeps about as many.
const maxMemberships = 5_000_000

// group is a group that was read.
type group struct {
	id, name, description string
	attribute             string // that id comes from
	hidden                bool   // it becomes no team

	key    key     // of its DN
	people []int32 // members, as places in scan.ids; after gather, also those of nested groups
	others []key   // members that are not among the people that were read
	groups []int32 // those of others that are groups, as places in scan.all
}

// emitGroups calls emit for every group, with all of its members.
func (s *scan) emitGroups() error {
	places := make(map[key]int32, len(s.all))
	for i, g := range s.all {
		places[g.key] = int32(i)
	}
	for _, g := range s.all {
		for _, k := range g.others {
			if at, ok := places[k]; ok {
				g.groups = append(g.groups, at)
			}
		}
		g.others = nil
	}
	if err := s.gather(); err != nil {
		return err
	}
	for _, g := range s.all {
		if g.hidden {
			continue
		}
		members := make([]string, len(g.people))
		for i, at := range g.people {
			members[i] = s.ids[at]
		}
		if err := s.emit(domains.Entry{
			Group: &domains.Group{
				ID:          g.id,
				IDAttribute: g.attribute,
				Name:        g.name,
				Description: g.description,
				Members:     members,
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// gather adds to each group the people of the groups within it.
func (s *scan) gather() error {
	seen := make([]int32, len(s.ids)) // the component, from 1 on, in which a person was seen last
	component, given := int32(0), 0
	for members := range s.components() {
		if s.ctx.Err() != nil {
			return s.failed(s.ctx.Err(), s.brokeOff)
		}
		component++
		var people []int32
		add := func(some []int32) {
			for _, at := range some {
				if seen[at] != component {
					seen[at] = component
					people = append(people, at)
				}
			}
		}
		for _, at := range members {
			add(s.all[at].people)
			for _, inner := range s.all[at].groups { // of an earlier component, and so complete, or of this one
				add(s.all[inner].people)
			}
		}
		for _, at := range members {
			s.all[at].people = people
		}
		if given += len(people) * len(members); given > maxMemberships {
			return s.tooMany()
		}
	}
	return nil
}

func (s *scan) tooMany() error {
	return errs.New(errs.Upstream, "The groups of the directory %s have more than %d members, "+
		"those of groups within them too: narrow groupFilter.", s.url, maxMemberships)
}

// components returns the strongly connected components of the groups, each after the components
// that it contains, by Tarjan's algorithm without recursion, as directories may nest groups deeply.
// Most components are one group.
func (s *scan) components() iter.Seq[[]int32] {
	return func(yield func([]int32) bool) {
		n := len(s.all)
		number, low := make([]int32, n), make([]int32, n) // number 0: not reached yet
		next, open := make([]int, n), make([]bool, n)
		var path, pending []int32
		reached := int32(0)
		enter := func(at int32) {
			reached++
			number[at], low[at], open[at] = reached, reached, true
			path, pending = append(path, at), append(pending, at)
		}
		for root := range int32(n) {
			if number[root] == 0 {
				enter(root)
			}
			for len(path) > 0 {
				at := path[len(path)-1]
				if inner := s.all[at].groups; next[at] < len(inner) {
					to := inner[next[at]]
					next[at]++
					if number[to] == 0 {
						enter(to)
					} else if open[to] {
						low[at] = min(low[at], number[to])
					}
					continue
				}
				path = path[:len(path)-1]
				if len(path) > 0 {
					outer := path[len(path)-1]
					low[outer] = min(low[outer], low[at])
				}
				if low[at] != number[at] {
					continue
				}
				first := len(pending) - 1
				for pending[first] != at {
					first--
				}
				for _, member := range pending[first:] {
					open[member] = false
				}
				if !yield(pending[first:]) {
					return
				}
				pending = pending[:first]
			}
		}
	}
}
