package ldap

import (
	"slices"
	"testing"

	"github.com/matryer/is"
	"pgregory.net/rapid"
)

// TestGather: groups in groups have the people that a walk from each of them finds.
func TestGather(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const people = 6
		n := rapid.IntRange(0, 12).Draw(t, "groups")
		s := &scan{conn: &conn{ctx: t.Context()}, ids: make([]string, people)}
		for range n {
			s.all = append(s.all, &group{
				people: rapid.SliceOfN(rapid.Int32Range(0, people-1), 0, 3).Draw(t, "people"),
				groups: rapid.SliceOfN(rapid.Int32Range(0, int32(n)-1), 0, 3).Draw(t, "groups"),
			})
		}
		var want [][]int32
		for i := range s.all {
			want = append(want, s.walk(int32(i), map[int32]bool{}))
		}
		if err := s.gather(); err != nil {
			t.Fatal(err)
		}
		for i, g := range s.all {
			if got := slices.Sorted(slices.Values(g.people)); !slices.Equal(got, want[i]) {
				t.Fatalf("group %d has %v, want %v", i, got, want[i])
			}
		}
	})
}

// walk is the plain way to the same.
func (s *scan) walk(at int32, been map[int32]bool) []int32 {
	been[at] = true
	all := slices.Clone(s.all[at].people)
	for _, inner := range s.all[at].groups {
		if !been[inner] {
			all = append(all, s.walk(inner, been)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestTooManyMemberships: groups in groups cannot fill the memory.
func TestTooManyMemberships(t *testing.T) {
	is := is.New(t)
	s := &scan{conn: &conn{realm: &realm{}, host: &host{url: "ldap://x"}, ctx: t.Context()}, ids: make([]string, 5000)}
	everybody := make([]int32, 5000)
	for i := range everybody {
		everybody[i] = int32(i)
	}
	for i := range int32(3000) { // a chain, of which the last has everybody
		s.all = append(s.all, &group{groups: []int32{min(i+1, 2999)}})
	}
	s.all[2999].people = everybody
	err := s.gather()
	is.True(err != nil)
	is.Equal(
		err.Error(),
		"The groups of the directory ldap://x have more than 5000000 members, those of groups within them too: "+
			"narrow groupFilter.",
	)
	s.all = s.all[2250:] // shorter
	for i, g := range s.all {
		g.people, g.groups = nil, []int32{int32(min(i+1, 749))}
	}
	s.all[749].people = everybody
	is.NoErr(s.gather())
	is.Equal(len(s.all[0].people), 5000)
}
