package dirsync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenantcontent/tenantcontent/internal/directory/profile"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
	"github.com/tenantcontent/tenantcontent/principals"
)

// world is a tenant in memory.
type world struct {
	users   map[string]resident        // by username
	teams   map[string]principals.Team // by id
	members map[MemberKey]string       // to the role
}

type resident struct {
	principals.DirectoryUser
	domain string
}

func (w world) clone() world {
	return world{maps.Clone(w.users), maps.Clone(w.teams), maps.Clone(w.members)}
}

func (w world) superusers() (n int) {
	for _, u := range w.users {
		if u.Superuser && u.Enabled {
			n++
		}
	}
	return n
}

// inMemory is a world as a reader.
type inMemory struct{ world }

func (w *inMemory) users(each func(principals.DirectoryUser)) error {
	for _, name := range slices.Sorted(maps.Keys(w.world.users)) {
		if u := w.world.users[name]; u.domain == "ldap" {
			each(u.DirectoryUser)
		}
	}
	return nil
}

func (w *inMemory) holders(folded []string) (map[string]principals.Holder, error) {
	holders := map[string]principals.Holder{}
	for name, u := range w.world.users {
		if slices.Contains(folded, fold.Text(name)) {
			holders[fold.Text(name)] = principals.Holder{Username: name, Domain: u.domain}
		}
	}
	return holders, nil
}

func (w *inMemory) superusers() (int, error) { return w.world.superusers(), nil }

func (w *inMemory) teams() (teams []principals.Team, _ error) {
	for _, id := range slices.Sorted(maps.Keys(w.world.teams)) {
		if w.world.teams[id].Domain == "ldap" {
			teams = append(teams, w.world.teams[id])
		}
	}
	return teams, nil
}

func (w *inMemory) slugs() (slugs []string, _ error) {
	for _, t := range w.world.teams {
		slugs = append(slugs, t.Slug)
	}
	return slugs, nil
}

func (w *inMemory) members(each func(MemberKey)) error {
	for _, member := range slices.SortedFunc(maps.Keys(w.world.members), func(a, b MemberKey) int {
		return strings.Compare(a.TeamID+a.Username, b.TeamID+b.Username)
	}) {
		if w.world.teams[member.TeamID].Domain == "ldap" {
			each(member)
		}
	}
	return nil
}

// plan passes a snapshot through the stages before write.
func (w world) plan(t *rapid.T, snap Snapshot) *plan {
	n := len(w.teams)
	s := New(Options{NewID: func() string { n++; return fmt.Sprint("team", n) }})
	p, err := s.plan(&inMemory{w}, newSnapshot("ldap", "LDAP", snap))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// apply writes a plan as write does, and calls complain where a store would fail.
func (w world) apply(p *plan, complain func(string, ...any)) {
	renamed := map[string]resident{}
	for was, becomes := range p.renames {
		u, there := w.users[was]
		if _, twice := renamed[becomes]; !there || twice {
			complain("%s cannot become %s", was, becomes)
		}
		delete(w.users, was)
		u.Username = becomes
		renamed[becomes] = u
	}
	for name, u := range renamed {
		if _, there := w.users[name]; there {
			complain("%s is there", name)
		}
		w.users[name] = u
	}
	members := maps.Clone(w.members)
	clear(w.members)
	for member, role := range members {
		if becomes, moves := p.renames[member.Username]; moves {
			member.Username = becomes
		}
		w.members[member] = role
	}
	edit := p.editor()
	for _, at := range p.edits {
		u := w.users[p.nameOf(at)]
		edit(at, &u.DirectoryUser)
		w.users[u.Username] = u
	}
	for _, user := range p.newUsers(p.creates) {
		if _, there := w.users[user.Username]; there {
			complain("%s is there", user.Username)
		}
		w.users[user.Username] = resident{user, "ldap"}
	}
	for _, t := range slices.Concat(p.newTeams, p.oldTeams) {
		w.teams[t.ID] = t
	}
	for _, member := range p.leave {
		if _, there := w.members[member]; !there {
			complain("%v is not there", member)
		}
		delete(w.members, member)
	}
	for _, member := range p.join {
		if _, there := w.members[member]; there {
			complain("%v is there", member)
		}
		if _, there := w.users[member.Username]; !there {
			complain("%s is nobody", member.Username)
		}
		w.members[member] = "member"
	}
}

var (
	someNames = rapid.SampledFrom([]string{"a", "A", "b", "B", "c", "d", "e", "é", "E\u0301", "x y", ""})
	someIDs   = rapid.SampledFrom([]string{"1", "2", "3", "4", "5", "6", "", " 7", "\x00"})
	someTexts = rapid.SampledFrom([]string{"", "Jo", " Jo ", "a\nb", "jo@example.com", "Europe/Berlin"})
)

// anyWorld returns a world with few names and ids, so that they clash.
func anyWorld(t *rapid.T) world {
	w := world{map[string]resident{}, map[string]principals.Team{}, map[MemberKey]string{}}
	taken := map[string]bool{}
	for range rapid.IntRange(0, 7).Draw(t, "users") {
		name := someNames.Draw(t, "name")
		if principals.ValidUsername(name) != nil || taken[fold.Text(name)] {
			continue
		}
		taken[fold.Text(name)] = true
		id := someIDs.Draw(t, "sourceId")
		if !profile.ValidID(id) {
			id = ""
		}
		u := principals.DirectoryUser{
			Username: name, SourceID: id,
			Superuser: rapid.Bool().Draw(t, "superuser"), Enabled: rapid.Bool().Draw(t, "enabled"),
			DirectoryDisabled: rapid.Bool().Draw(t, "noted"),
			DirectoryLocked:   rapid.Bool().Draw(t, "locked"),
			DisplayName:       strings.TrimSpace(rapid.SampledFrom([]string{"", "Jo"}).Draw(t, "shown")),
		}
		u.DirectoryDisabled = u.DirectoryDisabled && !u.Enabled
		u.DirectoryLocked = u.DirectoryLocked && u.DirectoryDisabled
		w.users[name] = resident{u, rapid.SampledFrom([]string{"ldap", "ldap", "saml"}).Draw(t, "domain")}
	}
	for n := range rapid.IntRange(0, 4).Draw(t, "teams") {
		team := principals.Team{
			ID: fmt.Sprint("t", n), Name: "Jo",
			Slug: fmt.Sprint("jo-", n), Domain: rapid.SampledFrom([]string{"ldap", "ldap", "saml"}).Draw(t, "domain"),
			DirectoryGone: rapid.Bool().Draw(t, "gone"),
		}
		if id := someIDs.Draw(t, "sourceId"); profile.ValidID(id) {
			team.SourceID = &id
		}
		w.teams[team.ID] = team
		for _, name := range slices.Sorted(maps.Keys(w.users)) {
			if rapid.Bool().Draw(t, "member") {
				role := rapid.SampledFrom([]string{"member", "admin"}).Draw(t, "role")
				w.members[MemberKey{TeamID: team.ID, Username: name}] = role
			}
		}
	}
	return w
}

func anySnapshot(t *rapid.T) (snap Snapshot) {
	for range rapid.IntRange(0, 7).Draw(t, "people") {
		snap.People = append(snap.People, principals.Identity{
			ID:       someIDs.Draw(t, "id"),
			Username: someNames.Draw(t, "name"), Disabled: rapid.IntRange(0, 3).Draw(t, "disabled") == 0,
			Locked:      rapid.IntRange(0, 3).Draw(t, "locked") == 0,
			DisplayName: someTexts.Draw(t, "shown"),
			Email:       someTexts.Draw(t, "email"), Timezone: someTexts.Draw(t, "zone"),
		})
	}
	for range rapid.IntRange(0, 4).Draw(t, "groups") {
		snap.Groups = append(snap.Groups, Group{
			ID: someIDs.Draw(t, "id"), Name: someTexts.Draw(t, "name"), Description: someTexts.Draw(t, "description"),
			Members: rapid.SliceOfN(someIDs, 0, 5).Draw(t, "members"),
		})
	}
	return snap
}

// TestPlans makes plans for small tenants with many clashes, applies them and checks the results.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, snap := anyWorld(t), anySnapshot(t)
		after := before.clone()
		p := before.plan(t, snap)
		after.apply(p, t.Fatalf)
		checkUsers(t, before, after, p)
		checkTeams(t, before, after, p)
		again := after.plan(t, snap)
		if n := len(again.renames) + len(again.edits) + len(again.creates) + len(again.newTeams) +
			len(again.oldTeams) + len(again.leave) + len(again.join); n > 0 {
			t.Fatalf("a second scan writes %d more: %+v", n, again)
		}
		if r := again.summary(); r.Users.Created+r.Users.Updated+r.Users.Disabled+r.Teams.Created+r.Teams.Updated+
			r.Teams.Disabled > 0 {
			t.Fatalf("a second scan reports %+v", r)
		}
	})
}

func checkUsers(t *rapid.T, before, after world, p *plan) {
	people := map[string]principals.Identity{}
	for _, who := range slices.Backward(p.all.People) { // the first entry with an id is used
		people[who.ID] = who
	}
	names, ids, ours := map[string]bool{}, map[string]int{}, 0
	for name, u := range after.users {
		was, there := before.users[name]
		switch {
		case principals.ValidUsername(name) != nil, name != u.Username, names[fold.Text(name)]:
			t.Fatalf("%q is a bad name", name)
		case u.domain != "ldap":
			if u != was {
				t.Fatalf("%s of another domain is %+v", name, u)
			}
			continue
		}
		names[fold.Text(name)], ours = true, ours+1
		if ids[u.SourceID]++; u.SourceID != "" {
			if who, here := people[u.SourceID]; u.Lasts() && (!here || who.Disabled || u.Enabled && who.Locked) &&
				ids[u.SourceID] == 1 && after.superusers() > 1 && !shares(p, name) {
				t.Fatalf("%s is enabled and gone", name)
			}
		} else if u.Lasts() && !(u.Superuser && after.superusers() == 1) {
			t.Fatalf("%s is enabled and nobody", name)
		}
		if u.DirectoryDisabled && u.Enabled || u.DirectoryLocked && !u.DirectoryDisabled {
			t.Fatalf("%s is both", name)
		}
		if there && was.domain == "ldap" && was.SourceID == u.SourceID {
			if was.Superuser != u.Superuser || !was.Enabled && !was.DirectoryDisabled && u.Enabled {
				t.Fatalf("%s was %+v and is %+v", name, was, u)
			}
		}
	}
	r := p.summary().Users
	if len(after.users) != len(before.users)+r.Created || ours != r.Created+r.Updated+r.Disabled+r.Unchanged {
		t.Fatalf("of %d users became %d: %+v", len(before.users), len(after.users), r)
	}
	if before.superusers() > 0 && after.superusers() == 0 {
		t.Fatal("no superuser is left")
	}
}

func checkTeams(t *rapid.T, before, after world, p *plan) {
	people := map[string]string{} // usernames by source id
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(after.users))) {
		u := after.users[name]
		if _, here := p.byID[u.SourceID]; here && u.domain == "ldap" && !shares(p, name) {
			people[u.SourceID] = name
		}
	}
	slugs := map[string]bool{}
	for id, team := range after.teams {
		if slugs[team.Slug] || team.Slug == "" {
			t.Fatalf("%s is the slug of two", team.Slug)
		}
		slugs[team.Slug] = true
		place, ours := p.byTeam[id]
		if !ours {
			if was := before.teams[id]; was != team {
				t.Fatalf("team %s is %+v", id, team)
			}
			continue
		}
		wants := map[string]bool{}
		if group := p.groupOf[place]; group != none {
			for _, member := range p.all.Groups[group].Members {
				wants[people[member]] = true
			}
		} else if !team.DirectoryGone {
			t.Fatalf("team %s is not gone", id)
		}
		for at := range p.known { // users who may not log in keep their memberships
			k := &p.known[at]
			if _, member := before.members[MemberKey{TeamID: id, Username: k.name}]; member && !p.present(k) {
				wants[p.nameOf(int32(at))] = true
			}
		}
		for name, u := range after.users {
			if u.domain != "ldap" || shares(p, name) {
				continue
			}
			if _, member := after.members[MemberKey{TeamID: id, Username: name}]; member != wants[name] {
				t.Fatalf("%s in team %s: %v", name, id, member)
			}
		}
	}
	for member, role := range before.members {
		// users who stay keep the role; users and teams of other domains are not changed
		now, stays := after.members[member]
		if u := before.users[member.Username]; (u.domain != "ldap" || shares(p, member.Username)) && now != role {
			t.Fatalf("%v is %q", member, now)
		}
		if _, moved := p.renames[member.Username]; !moved && stays && now != role && len(p.renames) == 0 {
			t.Fatalf("%v was %q and is %q", member, role, now)
		}
	}
}

// shares reports whether an existing user must not be changed.
func shares(p *plan, name string) bool {
	at, there := p.byName[name]
	return there && p.known[at].alone
}

// TestOrderOfEntriesDoesNotMatter: the result does not depend on the order of a directory's
// entries.
func TestOrderOfEntriesDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, snap := anyWorld(t), anySnapshot(t)
		seen := map[string]bool{}
		snap.People = slices.DeleteFunc(snap.People, func(who principals.Identity) bool {
			twice := seen[who.ID]
			seen[who.ID] = true
			return twice
		})
		other := Snapshot{People: rapid.Permutation(snap.People).Draw(t, "people"), Groups: snap.Groups}
		one, two := w.clone(), w.clone()
		one.apply(w.plan(t, snap), t.Fatalf)
		two.apply(w.plan(t, other), t.Fatalf)
		if !maps.Equal(one.users, two.users) || !maps.Equal(one.members, two.members) {
			t.Fatalf("%+v\n%+v", one, two)
		}
	})
}
