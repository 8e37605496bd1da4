package drivertest

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
)

// listed is what a directory has, ordered by id.
type listed struct {
	people []domains.Identity
	groups []domains.Group
}

// list reads a directory to its end.
func (f *fixture) list(ctx context.Context, d domains.Directory) (all listed, err error) {
	f.t.Helper()
	for e, err := range d.Entries(ctx) {
		if err != nil {
			return all, err
		}
		f.True((e.Person == nil) != (e.Group == nil)) // one of the two
		if e.Person != nil {
			f.Equal(len(all.groups), 0) // people come first
			all.people = append(all.people, *e.Person)
			continue
		}
		g := *e.Group
		g.Members = slices.Sorted(slices.Values(g.Members))
		all.groups = append(all.groups, g)
	}
	slices.SortFunc(all.people, func(a, b domains.Identity) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(all.groups, func(a, b domains.Group) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

func testEntries(t *testing.T, f *fixture) {
	realm := f.open(f.Config)
	d, ok := realm.(domains.Directory)
	if !ok {
		return
	}
	all, err := f.list(t.Context(), d)
	f.NoErr(err)
	again, err := f.list(t.Context(), d)
	f.NoErr(err)
	f.Equal(again, all) // nothing has changed
	f.True(len(all.people) > 0)

	known := map[string]bool{}
	for _, p := range all.people {
		f.checkIdentity(p)
		f.True(!known[p.ID]) // one entry for each id
		known[p.ID] = true
	}
	groups := map[string]bool{}
	for _, g := range all.groups {
		f.True(g.ID != "" && len(g.ID) <= 255)
		f.True(g.Name != "")
		f.True(!groups[g.ID])
		groups[g.ID] = true
		f.Equal(slices.Compact(slices.Clone(g.Members)), g.Members) // each member once
		for _, id := range g.Members {
			f.True(known[id]) // those who are not listed are left out
		}
	}

	people := map[string]domains.Identity{}
	for _, p := range all.people {
		people[p.Username] = p
	}
	for username := range f.Disabled {
		f.True(people[username].Disabled)
	}
	for username := range f.Locked {
		f.True(people[username].Locked && !people[username].Disabled)
	}

	// Whoever logs in is whom the directory lists.
	if login, ok := realm.(domains.PasswordLogin); ok {
		who, err := login.Login(t.Context(), f.Login, f.Password)
		f.NoErr(err)
		f.True(slices.Contains(all.people, who))
	}
}

func testEntriesStop(t *testing.T, f *fixture) {
	d, ok := f.open(f.Config).(domains.Directory)
	if !ok {
		return
	}
	all, err := f.list(t.Context(), d)
	f.NoErr(err)
	for _, after := range []int{1, len(all.people), len(all.people) + 1} {
		n := 0
		for _, err := range d.Entries(t.Context()) { // the runtime panics when it goes on after this loop has ended
			f.NoErr(err)
			if n++; n == after {
				break
			}
		}
	}
	again, err := f.list(t.Context(), d)
	f.NoErr(err)
	f.Equal(again, all)
}

// testCancelled checks that a canceled call returns, and not with a refusal, which would count against the person.
func testCancelled(t *testing.T, f *fixture) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	f.endsWith(cancelled, f.open(f.Config))
}

// testAway checks the calls to a server that never answers.
func testAway(t *testing.T, f *fixture) {
	if f.Away == nil {
		return
	}
	realm := f.open(f.Away)
	if login, ok := realm.(domains.PasswordLogin); ok {
		f.soon(func() {
			_, err := login.Login(t.Context(), f.Login, f.Password)
			f.fails(err, errs.Upstream)
		})
	}
	if login, ok := realm.(domains.RedirectLogin); ok {
		f.soon(func() {
			_, _, err := login.Begin(t.Context(), f.Endpoints, "acme.state")
			f.fails(err, errs.Upstream)
		})
	}
	if d, ok := realm.(domains.Directory); ok {
		f.soon(func() {
			_, err := f.list(t.Context(), d)
			f.fails(err, errs.Upstream)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout/100)
	defer cancel()
	f.endsWith(ctx, realm)
}

// endsWith checks that calls end with their context.
func (f *fixture) endsWith(ctx context.Context, realm domains.Realm) {
	f.t.Helper()
	ended := func(err error) {
		f.t.Helper()
		f.hides(err)
		f.True(errs.CodeOf(err) != errs.Unauthenticated)
	}
	f.soon(func() {
		if login, ok := realm.(domains.PasswordLogin); ok {
			_, err := login.Login(ctx, f.Login, f.Password)
			ended(err)
		}
		if login, ok := realm.(domains.RedirectLogin); ok {
			_, _, err := login.Begin(ctx, f.Endpoints, "acme.state")
			ended(err)
		}
		if d, ok := realm.(domains.Directory); ok {
			_, err := f.list(ctx, d)
			ended(err)
		}
	})
}

func testFinder(t *testing.T, f *fixture) {
	d, ok := f.open(f.Config).(domains.Finder)
	if !ok {
		return
	}
	all, err := f.list(t.Context(), d)
	f.NoErr(err)
	if f.Login != "" {
		who, err := d.Find(t.Context(), f.Login)
		f.NoErr(err)
		f.True(slices.Contains(all.people, who)) // whom a scan lists
	}
	for username := range f.Disabled {
		who, err := d.Find(t.Context(), username)
		f.NoErr(err)
		f.True(who.Disabled)
	}
	for _, username := range append(strangers(f.Login), "") {
		_, err := d.Find(t.Context(), username)
		f.fails(err, errs.NotFound)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Find(cancelled, f.Login)
	f.True(err != nil && errs.CodeOf(err) != errs.NotFound)
	if f.Away != nil {
		f.soon(func() {
			_, err := f.open(f.Away).(domains.Finder).Find(t.Context(), f.Login)
			f.fails(err, errs.Upstream)
		})
	}
}
