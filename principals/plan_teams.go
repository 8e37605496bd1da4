package principals

import (
	"fmt"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/slug"
)

// planOfTeams is the part of a plan for groups. Its steps, after decide: teams; slugs, if there are new teams; sit; member for
// each membership of the domain's teams; join.
type planOfTeams struct {
	newTeams []Team
	oldTeams []Team // with their changes
	teamIDs  []string
	byTeam   map[string]int32 // indexes in teamIDs
	groups   []int32          // of teamIDs: indexes in snap.Groups, or none

	memberships []uint64 // memberships in the directory, ordered: an index in teamIDs and one in snap.People
	taken       []bool   // of memberships

	members int         // that the domain's users have in its teams
	leave   []MemberKey // with the usernames after the scan
}

// teams assigns groups to teams. existing are the teams of the domain, ordered by id.
func (p *plan) teams(existing []Team, newID func() string) {
	teams, count := map[string]Team{}, &p.report.Teams
	for _, t := range existing {
		switch first, twice := teams[orEmpty(t.SourceID)]; {
		case t.SourceID == nil: // no directory has brought it
			count.Unchanged++
		case twice:
			count.Unchanged++
			p.warn("team %s has the same sourceId as %s and is left alone.", t.Slug, first.Slug)
		default:
			teams[*t.SourceID] = t
		}
	}
	p.byTeam = map[string]int32{}
	seen := map[string]bool{}
	for _, i := range sortedByID(p.snap.Groups, func(g Group) string { return g.ID }) {
		g := &p.snap.Groups[i]
		if !validSourceID(g.ID) || seen[g.ID] {
			p.warn("group %s: the entry has no id of 1 to %d characters, or that of another one, and is skipped.", shown(g.Name), maxSourceID)
			continue
		}
		seen[g.ID] = true
		was, there := teams[g.ID]
		t, ok := p.team(was, *g)
		switch {
		case there:
			delete(teams, g.ID)
			p.place(t.ID, i)
			p.change(was, t, &count.Updated)
		case ok:
			t.ID = newID()
			p.newTeams = append(p.newTeams, t)
			p.place(t.ID, i)
		}
	}
	count.Created = len(p.newTeams)
	for _, t := range existing {
		if t.SourceID == nil || teams[*t.SourceID].ID != t.ID {
			continue
		}
		was := t
		t.DirectoryGone = true
		p.place(t.ID, none)
		p.change(was, t, &count.Disabled)
	}
}

// place records the group of a team.
func (p *plan) place(team string, group int32) {
	p.byTeam[team] = int32(len(p.teamIDs))
	p.teamIDs, p.groups = append(p.teamIDs, team), append(p.groups, group)
}

// change records and counts the change of an existing team.
func (p *plan) change(was, t Team, changed *int) {
	if was.Name == t.Name && same(was.Description, t.Description) && same(was.Source, t.Source) && was.DirectoryGone == t.DirectoryGone {
		p.report.Teams.Unchanged++
		return
	}
	*changed++
	p.oldTeams = append(p.oldTeams, t)
}

// team copies a group into its team. An invalid value is left out with a warning; ok is false if it is the name.
func (p *plan) team(t Team, g Group) (_ Team, ok bool) {
	t.Domain, t.Source, t.SourceID, t.DirectoryGone = p.domain, &p.writer.source, &g.ID, false
	named := Team{Name: g.Name, Slug: "x"}
	if err := named.accept(); err != nil {
		what := "the group is skipped"
		if t.ID != "" {
			what = "the team keeps its name"
		}
		p.warn("group %s (%s): %s; %s.", shown(g.Name), shown(g.ID), errs.MessageOf(err), what)
	} else {
		t.Name, ok = named.Name, true
	}
	text := &g.Description
	if err := check([]field{{"description", &text, maxText, true}}); err != nil {
		p.warn("group %s (%s): %s; it is left out.", shown(g.Name), shown(g.ID), errs.MessageOf(err))
		text = t.Description
	}
	t.Description = text
	return t, ok
}

// slugs sets the slugs of new teams, none of them among taken.
func (p *plan) slugs(taken []string) {
	used, next := map[string]bool{}, map[string]int{}
	for _, s := range taken {
		used[s] = true
	}
	for i := range p.newTeams {
		wanted := slug.Of(p.newTeams[i].Name, "team")
		try := wanted
		for n := max(next[wanted], 2); used[try]; n++ {
			try, next[wanted] = fmt.Sprintf("%s-%d", wanted, n), n+1
		}
		used[try], p.newTeams[i].Slug = true, try
	}
}

// collectSeats records the memberships in the directory.
func (p *plan) collectSeats() {
	for at, group := range p.groups {
		if group == none {
			continue
		}
		for _, id := range p.snap.Groups[group].Members {
			i, found := p.byID[id]
			if found && (p.person[i].user != none || !p.person[i].stays) {
				p.memberships = append(p.memberships, uint64(at)<<32|uint64(i))
			}
		}
	}
	slices.Sort(p.memberships)
	p.memberships = slices.Compact(p.memberships)
	p.taken = make([]bool, len(p.memberships))
}

// member plans the change of an existing membership. Memberships of users of other domains, and in teams without a group, are
// not changed. Users who are disabled keep theirs, with the role.
func (p *plan) member(s MemberKey) {
	team, found := p.byTeam[s.TeamID]
	user, ours := p.byName[s.Username]
	if !found || !ours || p.known[user].alone {
		return
	}
	p.members++
	k := &p.known[user]
	if k.person != none {
		if at, stays := slices.BinarySearch(p.memberships, uint64(team)<<32|uint64(k.person)); stays {
			p.taken[at] = true
			return
		}
	}
	if !p.present(k) {
		return
	}
	p.leave = append(p.leave, MemberKey{TeamID: p.teamIDs[team], Username: p.nameOf(user)})
}

// join returns the memberships to add.
func (p *plan) join() (all []MemberKey) {
	for at, s := range p.memberships {
		if p.taken[at] {
			continue
		}
		i := int32(s & 0xffffffff)
		name := p.snap.People[i].Username
		if user := p.person[i].user; user != none {
			name = p.nameOf(user)
		}
		all = append(all, MemberKey{TeamID: p.teamIDs[s>>32], Username: name})
	}
	return all
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
