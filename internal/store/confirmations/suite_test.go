package bunstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/chat/confirmations"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) confirmations.Store) {
	for name, check := range map[string]func(*testing.T, confirmations.Store){
		"Decide":      testDecide,
		"DecidedOnce": testDecidedOnce,
		"Bound":       testBound,
		"Isolation":   testIsolation,
		"Sweep":       testSweep,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

// waiting returns a confirmation for jo that expires in a minute.
func waiting(id string) confirmations.Confirmation {
	return confirmations.Confirmation{ID: id, Assistant: "one", Asked: "jo", ExpiresAt: monday.Add(time.Minute)}
}

func add(t *testing.T, s confirmations.Store, tenant string, all ...confirmations.Confirmation) {
	t.Helper()
	for _, c := range all {
		is.New(t).NoErr(s.Add(t.Context(), tenant, c, 10, monday))
	}
}

// decided returns a confirmation with a decision.
func decided(c confirmations.Confirmation, d confirmations.Decision) confirmations.Confirmation {
	c.Decision = d
	return c
}

func testDecide(t *testing.T, s confirmations.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", waiting("a"), waiting("b"), waiting("c"))
	for _, wrong := range []func(*confirmations.Confirmation){
		func(c *confirmations.Confirmation) { c.ID = "none" },
		func(c *confirmations.Confirmation) { c.Assistant = "two" },
		func(c *confirmations.Confirmation) { c.Asked = "eve" },
	} {
		c := decided(waiting("a"), confirmations.Approved)
		wrong(&c)
		is.Equal(errs.CodeOf(s.Decide(ctx, "acme", c, monday)), errs.NotFound)
	}
	approve := decided(waiting("a"), confirmations.Approved)
	is.Equal(errs.CodeOf(s.Decide(ctx, "acme", approve, approve.ExpiresAt)), errs.NotFound) // expired
	d, err := s.Decision(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(d, confirmations.Undecided)

	is.NoErr(s.Decide(ctx, "acme", approve, approve.ExpiresAt.Add(-time.Microsecond)))
	is.NoErr(s.Decide(ctx, "acme", decided(waiting("b"), confirmations.Declined), monday))
	// only once
	is.Equal(errs.CodeOf(s.Decide(ctx, "acme", decided(approve, confirmations.Declined), monday)), errs.NotFound)
	for id, want := range map[string]confirmations.Decision{
		"a": confirmations.Approved,
		"b": confirmations.Declined,
		"c": confirmations.Undecided,
	} {
		d, err := s.Decision(ctx, "acme", id)
		is.NoErr(err)
		is.Equal(d, want)
		d, err = s.Take(ctx, "acme", id)
		is.NoErr(err)
		is.Equal(d, want)
		_, err = s.Take(ctx, "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		_, err = s.Decision(ctx, "acme", id)
		is.Equal(errs.CodeOf(err), errs.NotFound)
		is.Equal(
			errs.CodeOf(s.Decide(ctx, "acme", decided(waiting(id), confirmations.Approved), monday)),
			errs.NotFound,
		)
	}
}

func testDecidedOnce(t *testing.T, s confirmations.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", waiting("a"))
	var all sync.WaitGroup
	var mu sync.Mutex
	winners := []confirmations.Decision{}
	for i := range 10 {
		d := []confirmations.Decision{confirmations.Approved, confirmations.Declined}[i%2]
		all.Go(func() {
			if s.Decide(ctx, "acme", decided(waiting("a"), d), monday) == nil {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, d)
			}
		})
	}
	all.Wait()
	is.Equal(len(winners), 1)
	d, err := s.Take(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(d, winners[0])
}

func testBound(t *testing.T, s confirmations.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", waiting("a"), waiting("b"))
	is.Equal(errs.CodeOf(s.Add(ctx, "acme", waiting("c"), 2, monday)), errs.Busy)
	other := waiting("c")
	other.Asked = "eve"
	is.NoErr(s.Add(ctx, "acme", other, 2, monday))
	is.NoErr(s.Add(ctx, "evil", waiting("c"), 2, monday))
	later := waiting("d") // after the others have expired
	later.ExpiresAt = later.ExpiresAt.Add(time.Minute)
	is.NoErr(s.Add(ctx, "acme", later, 2, monday.Add(time.Minute)))
}

func testIsolation(t *testing.T, s confirmations.Store) {
	is, ctx := is.New(t), t.Context()
	add(t, s, "acme", waiting("a"))
	approve := decided(waiting("a"), confirmations.Approved)
	is.Equal(errs.CodeOf(s.Decide(ctx, "evil", approve, monday)), errs.NotFound)
	_, err := s.Decision(ctx, "evil", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Take(ctx, "evil", "a")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	n, err := s.Sweep(ctx, "evil", monday.AddDate(1, 0, 0))
	is.NoErr(err)
	is.Equal(n, 0)
	add(t, s, "evil", waiting("a")) // not counted for another tenant
	is.NoErr(s.Decide(ctx, "evil", approve, monday))
	d, err := s.Take(ctx, "acme", "a")
	is.NoErr(err)
	is.Equal(d, confirmations.Undecided)
}

func testSweep(t *testing.T, s confirmations.Store) {
	is, ctx := is.New(t), t.Context()
	old := waiting("old")
	old.ExpiresAt = monday.Add(time.Second)
	add(t, s, "acme", old, waiting("new"))
	n, err := s.Sweep(ctx, "acme", waiting("new").ExpiresAt)
	is.NoErr(err)
	is.Equal(n, 1)
	_, err = s.Decision(ctx, "acme", "old")
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Decision(ctx, "acme", "new")
	is.NoErr(err)
}
