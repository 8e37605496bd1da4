package dirsync

import (
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/slug"
	"github.com/tenantcontent/tenantcontent/principals"
)

// teamPlan is the part of a plan for teams.
type teamPlan struct {
	newTeams []principals.Team
	oldTeams []principals.Team // including their changes
	teamIDs  []string
	byTeam   map[string]int32 // indexes in teamIDs
	groupOf  []int32          // of teamIDs: index in all.Groups, or none

	memberships []uint64 // in the directory, ordered: each an index in teamIDs and one in all.People
	taken       []bool   // of memberships: they exist
	members     int      // number of memberships of the domain's users in its teams
}

// decideTeams assigns groups to teams. existing are the teams of the domain, ordered by id.
func (p *plan) decideTeams(existing []principals.Team, newID func() string) {
	teams := map[string]principals.Team{}
	for _, t := range existing {
		if t.SourceID == nil { // it does not come from a directory
			p.groups.Unchanged++
			continue
		}
		if first, twice := teams[*t.SourceID]; twice {
			p.groups.Unchanged++
			p.warn("team %s has the same sourceId as %s and is left alone.", t.Slug, first.Slug)
			continue
		}
		teams[*t.SourceID] = t
	}
	p.byTeam = map[string]int32{}
	seen := map[string]bool{}
	for _, i := range sortedByID(p.all.Groups, func(g Group) string { return g.ID }) {
		g := &p.all.Groups[i]
		if !profile.ValidID(g.ID) || seen[g.ID] {
			p.warn(
				"group %s: the entry has no id of 1 to %d characters, or that of another one, and is skipped.",
				shown(g.Name), profile.MaxID,
			)
			continue
		}
		seen[g.ID] = true
		was, there := teams[g.ID]
		t, ok := p.team(was, *g)
		switch {
		case there:
			delete(teams, g.ID)
			p.addTeam(t.ID, i)
			p.change(was, t, &p.groups.Updated)
		case ok:
			t.ID = newID()
			p.newTeams = append(p.newTeams, t)
			p.addTeam(t.ID, i)
		}
	}
	p.groups.Created = len(p.newTeams)
	for _, t := range existing {
		if t.SourceID == nil || teams[*t.SourceID].ID != t.ID {
			continue
		}
		was := t
		t.DirectoryGone = true
		p.addTeam(t.ID, none)
		p.change(was, t, &p.groups.Disabled)
	}
}

// addTeam records the group of a team.
func (p *plan) addTeam(id string, group int32) {
	p.byTeam[id] = int32(len(p.teamIDs))
	p.teamIDs, p.groupOf = append(p.teamIDs, id), append(p.groupOf, group)
}

// change records and counts the change of an existing team.
func (p *plan) change(was, t principals.Team, changed *int) {
	if was.Name == t.Name && same(was.Description, t.Description) && same(was.Source, t.Source) &&
		was.DirectoryGone == t.DirectoryGone {
		p.groups.Unchanged++
		return
	}
	*changed++
	p.oldTeams = append(p.oldTeams, t)
}

func same(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// team copies a group into its team. An invalid value is left out with a warning; ok is false if it
// is the name.
func (p *plan) team(t principals.Team, g Group) (_ principals.Team, ok bool) {
	source := p.writer.Source()
	t.Domain, t.Source, t.SourceID, t.DirectoryGone = p.domain, &source, &g.ID, false
	if name, err := profile.CleanTeamName(g.Name); err != nil {
		what := "the group is skipped"
		if t.ID != "" {
			what = "the team keeps its name"
		}
		p.warn("group %s (%s): %s; %s.", shown(g.Name), shown(g.ID), errs.MessageOf(err), what)
	} else {
		t.Name, ok = name, true
	}
	text := &g.Description
	if err := profile.Clean([]profile.Text{{
		Name:  "description",
		Value: &text,
		Max:   profile.MaxText,
		Lines: true,
	}}); err != nil {
		p.warn("group %s (%s): %s; it is left out.", shown(g.Name), shown(g.ID), errs.MessageOf(err))
		text = t.Description
	}
	t.Description = text
	return t, ok
}

// setSlugs sets the slugs of new teams to slugs that are not in taken.
func (p *plan) setSlugs(taken []string) {
	used, next := map[string]bool{}, map[string]int{}
	for _, s := range taken {
		used[s] = true
	}
	for i := range p.newTeams {
		wanted := slug.Of(p.newTeams[i].Name, "team")
		try := wanted
		for n := max(next[wanted], 2); used[try]; n++ {
			try, next[wanted] = slug.Numbered(wanted, n), n+1
		}
		used[try], p.newTeams[i].Slug = true, try
	}
}

// listMemberships records the memberships in the directory.
func (p *plan) listMemberships() {
	for at, group := range p.groupOf {
		if group == none {
			continue
		}
		for _, id := range p.all.Groups[group].Members {
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

// decideMember plans the change of an existing membership. Memberships of users of other domains,
// and in teams without a group, are not changed. Disabled users keep theirs, with the role.
func (p *plan) decideMember(m MemberKey) {
	team, found := p.byTeam[m.TeamID]
	user, ours := p.byName[m.Username]
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

// newMembers returns the memberships that do not exist yet.
func (p *plan) newMembers() (all []MemberKey) {
	for at, m := range p.memberships {
		if p.taken[at] {
			continue
		}
		i := int32(m & 0xffffffff)
		name := p.all.People[i].Username
		if user := p.person[i].user; user != none {
			name = p.nameOf(user)
		}
		all = append(all, MemberKey{TeamID: p.teamIDs[m>>32], Username: name})
	}
	return all
}
