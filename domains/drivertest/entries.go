package drivertest

import (
	"cmp"
	"context"
	"fmt"
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
		f.true(
			(e.Person == nil) != (e.Group == nil),
			"Entries has an entry that is not one of a person and a group: %+v", e,
		)
		if e.Person != nil {
			f.true(
				len(all.groups) == 0, "Entries has the person %s after a group, where all people come first",
				e.Person.Username,
			)
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
	f.noErr(err, "Entries")
	again, err := f.list(t.Context(), d)
	f.noErr(err, "Entries the second time")
	f.equal(again, all, "Entries the second time, where nothing has changed")
	f.true(len(all.people) > 0, "Entries has no person, where the fixture must have some")

	known := map[string]bool{}
	for _, p := range all.people {
		f.checkIdentity(p)
		f.true(!known[p.ID], "Entries has two people with the id %s", p.ID)
		known[p.ID] = true
	}
	groups := map[string]bool{}
	for _, g := range all.groups {
		f.true(
			g.ID != "" && len(g.ID) <= 255, "The group %s has the id %q, which must have 1 to 255 bytes",
			g.Name, g.ID,
		)
		f.true(g.Name != "", "The group %s has no name", g.ID)
		f.true(!groups[g.ID], "Entries has two groups with the id %s", g.ID)
		groups[g.ID] = true
		f.equal(
			g.Members, slices.Compact(slices.Clone(g.Members)),
			"The members of the group "+g.Name+", each of them once",
		)
		for _, id := range g.Members {
			f.true(
				known[id], "The group %s has the member %s, who is no person of Entries and must be left out",
				g.Name, id,
			)
		}
	}

	people := map[string]domains.Identity{}
	for _, p := range all.people {
		people[p.Username] = p
	}
	for username := range f.Disabled {
		f.true(people[username].Disabled, "Entries has %s, who is disabled, as enabled, or not at all", username)
	}
	for username := range f.Locked {
		f.true(people[username].Locked &&
			!people[username].Disabled, "Entries does not have %s as locked, and not disabled", username)
	}

	// Whoever logs in is whom the directory lists.
	if login, ok := realm.(domains.PasswordLogin); ok {
		who, err := login.Login(t.Context(), f.Login, f.Password)
		f.noErr(err, "Login")
		f.true(slices.Contains(all.people, who), "Login returned a person whom Entries does not have: %+v", who)
	}
}

func testEntriesStop(t *testing.T, f *fixture) {
	d, ok := f.open(f.Config).(domains.Directory)
	if !ok {
		return
	}
	all, err := f.list(t.Context(), d)
	f.noErr(err, "Entries")
	for _, after := range []int{1, len(all.people), len(all.people) + 1} {
		n := 0
		for _, err := range d.Entries(t.Context()) { // the runtime panics when it goes on after this loop has ended
			f.noErr(err, "Entries")
			if n++; n == after {
				break
			}
		}
	}
	again, err := f.list(t.Context(), d)
	f.noErr(err, "Entries after a caller has stopped")
	f.equal(again, all, "Entries after a caller has stopped")
}

// testCancelled checks that a canceled call returns, and not with a refusal, which would count
// against the person.
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
		f.fails(f.soon("Login at a server that is silent", func() error {
			_, err := login.Login(t.Context(), f.Login, f.Password)
			return err
		}), errs.Upstream, "Login at a server that is silent")
	}
	if login, ok := realm.(domains.RedirectLogin); ok {
		f.fails(f.soon("Begin at a server that is silent", func() error {
			_, _, err := login.Begin(t.Context(), f.Endpoints, "acme.state")
			return err
		}), errs.Upstream, "Begin at a server that is silent")
	}
	if d, ok := realm.(domains.Directory); ok {
		f.fails(f.soon("Entries at a server that is silent", func() error {
			_, err := f.list(t.Context(), d)
			return err
		}), errs.Upstream, "Entries at a server that is silent")
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout/100)
	defer cancel()
	f.endsWith(ctx, realm)
}

// endsWith checks that calls end with their context.
func (f *fixture) endsWith(ctx context.Context, realm domains.Realm) {
	f.t.Helper()
	const after = " whose context has ended"
	ends := func(what string, call func() error) error {
		f.t.Helper()
		err := f.soon(what+after, call)
		f.hides(err)
		f.true(
			errs.CodeOf(err) != errs.Unauthenticated,
			"%s%s refused the person, which counts as a wrong password: %v", what, after, err,
		)
		return err
	}
	if login, ok := realm.(domains.PasswordLogin); ok {
		err := ends("Login", func() error { _, err := login.Login(ctx, f.Login, f.Password); return err })
		f.true(err != nil, "Login%s succeeded", after)
	}
	if login, ok := realm.(domains.RedirectLogin); ok {
		// it may ask nobody
		_ = ends("Begin", func() error { _, _, err := login.Begin(ctx, f.Endpoints, "acme.state"); return err })
	}
	if d, ok := realm.(domains.Directory); ok {
		err := ends("Entries", func() error { _, err := f.list(ctx, d); return err })
		f.true(err != nil, "Entries%s ended without an error, as if it were the whole directory", after)
	}
}

func testFinder(t *testing.T, f *fixture) {
	d, ok := f.open(f.Config).(domains.Finder)
	if !ok {
		return
	}
	all, err := f.list(t.Context(), d)
	f.noErr(err, "Entries")
	if f.Login != "" {
		who, err := d.Find(t.Context(), f.Login)
		f.noErr(err, "Find of the fixture's Login")
		f.true(slices.Contains(all.people, who), "Find returned a person whom Entries does not have: %+v", who)
	}
	for username := range f.Disabled {
		who, err := d.Find(t.Context(), username)
		f.noErr(err, "Find of "+username)
		f.true(who.Disabled, "Find has %s, who is disabled, as enabled", username)
	}
	for _, username := range append(strangers(f.Login), "") {
		_, err := d.Find(t.Context(), username)
		f.fails(err, errs.NotFound, fmt.Sprintf("Find of %.100q, which is nobody's name,", username))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err = f.soon("Find whose context has ended", func() error { _, err := d.Find(cancelled, f.Login); return err })
	f.true(
		err != nil && errs.CodeOf(err) != errs.NotFound,
		"Find whose context has ended returned the error %v, where it must fail, and not with errs.%s", err,
		errs.NotFound,
	)
	if f.Away != nil {
		away := f.open(f.Away).(domains.Finder)
		f.fails(f.soon("Find at a server that is silent", func() error {
			_, err := away.Find(t.Context(), f.Login)
			return err
		}),
			errs.Upstream, "Find at a server that is silent")
	}
}
