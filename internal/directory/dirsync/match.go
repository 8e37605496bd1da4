package dirsync

import (
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// stored is the second stage: the people of a directory and the users of the domain that have their
// ids.
type stored struct{ *people }

// match assigns users without a source id, and usernames, to people.
func (s *stored) match(from reader) (*matched, error) {
	s.matchByName()
	holders, err := from.holders(s.wantedNames())
	if err != nil {
		return nil, err
	}
	s.assignNames(holders)
	return &matched{s.people}, nil
}

// matchByName assigns users without a source id to the people with their names.
func (p *people) matchByName() {
	for _, i := range p.order {
		if p.person[i].user != none || !p.person[i].named {
			continue
		}
		name := fold.Name(p.all.People[i].Username)
		if at, found := p.loose[name]; found {
			delete(p.loose, name)
			p.person[i].user = at
			p.known[at].person, p.known[at].differs = i, true
			p.writer.NewUser(p.all.People[i]) // only for its warnings
		}
	}
}

// wantedNames returns the folded names that people have in the directory but not yet here.
func (p *people) wantedNames() (names []string) {
	for _, i := range p.order {
		if name := fold.Name(p.all.People[i].Username); p.person[i].named && !p.has(i, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// has reports whether the user of a person has a folded name.
func (p *people) has(i int32, name string) bool {
	at := p.person[i].user
	return at != none && fold.Name(p.known[at].name) == name
}

// assignNames decides on the usernames. A person who has a name keeps it. Otherwise the first
// person by id gets it, if it is free or its holder gets another one. holders are the current users
// of the names that wantedNames returned.
func (p *people) assignNames(holders map[string]principals.Holder) {
	claims := make(map[string]int32, len(p.order))
	for _, i := range p.order {
		if name := fold.Name(p.all.People[i].Username); p.person[i].named && p.has(i, name) {
			claims[name] = i
		}
	}
	var staying []int32
	for _, i := range p.order {
		who := &p.all.People[i]
		name := fold.Name(who.Username)
		first, taken := claims[name]
		switch holder, held := holders[name]; {
		case !p.person[i].named:
			p.refuse(i, errs.MessageOf(principals.ValidOldUsername(who.Username)))
		case taken && first == i:
			continue
		case principals.ValidUsername(who.Username) != nil: // not valid as a new name
			p.refuse(i, errs.MessageOf(principals.ValidUsername(who.Username)))
		case taken:
			p.refuse(i, "the name is that of the entry "+shown(p.all.People[first].ID))
		case held && p.keeps(holder):
			claims[name] = i
			why := "the name is that of the user " + holder.Username + " of the domain " + holder.Domain
			if holder.Domain == p.domain && p.person[i].user == none {
				why += ", of another entry: if the person was created there anew, PUT /api/users/" +
					holder.Username + ` {"sourceId": null} and scan again`
			}
			p.refuse(i, why)
		default:
			claims[name] = i
			continue
		}
		staying = append(staying, i)
	}
	for len(staying) > 0 { // a user who is not renamed keeps a name that another person may have been assigned
		i := staying[len(staying)-1]
		staying = staying[:len(staying)-1]
		p.person[i].stays = true
		if p.person[i].user == none {
			continue
		}
		keeps := p.known[p.person[i].user].name
		if other, claimed := claims[fold.Name(keeps)]; claimed && other != i && !p.person[other].stays {
			p.refuse(other, "the name is that of the user "+keeps+", who keeps it")
			staying = append(staying, other)
		}
	}
}

// keeps reports whether this scan does not rename a user.
func (p *people) keeps(h principals.Holder) bool {
	if h.Domain != p.domain {
		return true
	}
	at, found := p.byName[h.Username]
	return !found || p.known[at].person == none
}

// refuse warns that a person does not get the username that the directory has.
func (p *people) refuse(i int32, why string) {
	who := &p.all.People[i]
	what := "the entry is skipped"
	if at := p.person[i].user; at != none {
		what = "the user stays " + p.known[at].name
	}
	p.warn("%s (%s): %s; %s.", shown(who.Username), shown(who.ID), why, what)
}
