package bunstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
)

var monday = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) queue.Store) {
	for name, check := range map[string]func(*testing.T, queue.Store){
		"RoundTrip": testRoundTrip, "Keys": testKeys, "ClaimsInOrder": testOrder,
		"LostLeaseChangesNothing": testLostLease, "Lines": testLines, "Wake": testWake,
		"Dead": testDead, "Schedules": testSchedules, "Isolation": testIsolation,
		"EachIsClaimedOnce": testOnce, "FailedTxWritesNone": testFailedTx, "Stats": testStats,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// job returns a ready job that was due n seconds after monday.
func job(n int) queue.Job {
	return queue.Job{
		Tenant: "acme", ID: id(n), Kind: "mail",
		Payload: json.RawMessage(`{"n":1}`), Due: monday.Add(time.Duration(n) * time.Second),
		State: queue.Ready, CreatedAt: monday,
	}
}

func put(t *testing.T, s queue.Store, tenant string, jobs ...queue.Job) {
	t.Helper()
	is.New(t).NoErr(s.Insert(t.Context(), tenant, jobs))
}

func by(lease string) queue.Claim {
	return queue.Claim{Lease: lease, Node: "node", Until: monday.Add(time.Minute)}
}

func mail(tenant string) queue.Line { return queue.Line{Tenant: tenant, Kind: "mail"} }

func claim(t *testing.T, s queue.Store, l queue.Line, n int, lease string) []queue.Job {
	t.Helper()
	all, err := s.Claim(t.Context(), l, n, by(lease))
	is.New(t).NoErr(err)
	return all
}

func all(t *testing.T, s queue.Store, tenant string) []queue.Job {
	t.Helper()
	some, err := s.Jobs(t.Context(), tenant, queue.Filter{}, 1000)
	is.New(t).NoErr(err)
	return some
}

func ids(jobs []queue.Job) (all []string) {
	for _, j := range jobs {
		all = append(all, j.ID)
	}
	return all
}

func testRoundTrip(t *testing.T, s queue.Store) {
	is := is.New(t)
	why, at := "ä '; DROP --", monday.Add(time.Hour)
	full := queue.Job{
		Tenant: "acme", ID: id(1), Kind: "mail", Key: "ü", Payload: json.RawMessage(`{"a":[1,"ü\n"]}`),
		Due: monday, State: queue.Running, Tries: 3, Error: &why, Node: "node", Lease: "lease",
		Wake: &at, CreatedAt: monday.Add(time.Second), EndedAt: &at,
	}
	fieldtest.Full(t, full)
	put(t, s, "acme", full)
	is.Equal(all(t, s, "acme"), []queue.Job{full})
	put(t, s, "acme", job(2))
	is.Equal(all(t, s, "acme")[1], job(2))
	for filter, want := range map[queue.Filter][]string{
		{Kind: "mail"}: {id(1), id(2)}, {Kind: "event"}: nil,
		{State: queue.Ready}: {id(2)}, {Kind: "mail", State: queue.Running}: {id(1)},
	} {
		some, err := s.Jobs(t.Context(), "acme", filter, 10)
		is.NoErr(err)
		is.Equal(ids(some), want)
	}
}

// testKeys: a key is taken until its job is done or dead.
func testKeys(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	first, second, other, none := job(1), job(2), job(3), job(4)
	first.Key, second.Key, other.Key, other.Kind = "a", "a", "a", "event"
	put(t, s, "acme", first, other, none)
	put(t, s, "acme", second, job(5))
	is.Equal(ids(all(t, s, "acme")), []string{id(1), id(3), id(4), id(5)})
	claimed := claim(t, s, mail("acme"), 1, "lease")
	put(t, s, "acme", second)
	is.Equal(len(all(t, s, "acme")), 4)
	_, err := s.Bury(ctx, claimed[0], "why", monday)
	is.NoErr(err)
	put(t, s, "acme", second)
	is.Equal(len(all(t, s, "acme")), 5)
	_, err = s.Requeue(ctx, "acme", id(1), monday)
	is.Equal(errs.CodeOf(err), errs.Conflict)
	is.Equal(errs.CodeOf(s.Insert(ctx, "acme", []queue.Job{job(5)})), errs.Conflict) // the id
}

func testOrder(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", job(3), job(1), job(2), job(4))
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 4)
	got := claim(t, s, mail("acme"), 2, "first")
	is.Equal(ids(got), []string{id(1), id(2)})
	want, until := job(1), monday.Add(time.Minute)
	want.State, want.Tries, want.Node, want.Lease, want.Wake = queue.Running, 1, "node", "first", &until
	is.Equal(got[0], want)
	is.Equal(ids(claim(t, s, mail("acme"), 10, "second")), []string{id(3), id(4)})
	is.Equal(len(claim(t, s, mail("acme"), 10, "third")), 0)
	n, err = s.Remove(ctx, "acme", got)
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(ids(all(t, s, "acme")), []string{id(3), id(4)})
}

// testLostLease: a worker that has lost its lease can neither end nor extend the job.
func testLostLease(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", job(1), job(2))
	lost := claim(t, s, mail("acme"), 2, "first")
	_, err := s.Wake(ctx, monday.Add(time.Hour))
	is.NoErr(err)
	held := claim(t, s, mail("acme"), 1, "second")
	before := all(t, s, "acme")
	is.Equal(before[0].Tries, 2)
	n, err := s.Remove(ctx, "acme", lost)
	is.NoErr(err)
	is.Equal(n, 0)
	ok, err := s.Retry(ctx, lost[0], "why", monday)
	is.NoErr(err)
	is.True(!ok)
	ok, err = s.Bury(ctx, lost[0], "why", monday)
	is.NoErr(err)
	is.True(!ok)
	is.NoErr(s.Release(ctx, "acme", lost))
	is.Equal(all(t, s, "acme"), before)
	until := monday.Add(2 * time.Hour)
	extended, err := s.Extend(ctx, "acme", append(lost, held...), until)
	is.NoErr(err)
	is.Equal(extended, map[string]bool{id(1): true})
	is.Equal(*all(t, s, "acme")[0].Wake, until)

	is.NoErr(s.Release(ctx, "acme", held))
	want := job(1)
	want.Tries = 1
	is.Equal(all(t, s, "acme")[0], want)
	at := monday.Add(time.Minute)
	for _, less := range []int{0, 1} { // the second try does not count
		held = claim(t, s, mail("acme"), 1, "third")
		held[0].Tries -= less
		ok, err = s.Retry(ctx, held[0], "why", at)
		is.NoErr(err)
		is.True(ok)
		got := all(t, s, "acme")[0]
		is.Equal(*got.Error, "why")
		got.Error, want.Tries, want.State, want.Wake = nil, 2, queue.Waiting, &at
		is.Equal(got, want)
		_, err = s.Wake(ctx, at)
		is.NoErr(err)
	}
}

// testLines: lines are found in order, whatever their names contain.
func testLines(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	none, err := s.ReadyLines(ctx, queue.Line{}, 10)
	is.NoErr(err)
	is.Equal(len(none), 0)
	for n := range 30 {
		put(t, s, "acme", job(n))
	}
	event, waiting := job(31), job(32)
	event.Kind, waiting.Kind, waiting.State = "event", "later", queue.Waiting
	put(t, s, "evil", event, waiting, job(33))
	want := []queue.Line{mail("acme"), {Tenant: "evil", Kind: "event"}, mail("evil")}
	for n := 1; n <= 4; n++ {
		got, err := s.ReadyLines(ctx, queue.Line{}, n)
		is.NoErr(err)
		is.Equal(got, want[:min(n, 3)])
	}
	got, err := s.ReadyLines(ctx, want[0], 10)
	is.NoErr(err)
	is.Equal(got, want[1:])
	got, err = s.ReadyLines(ctx, want[2], 10)
	is.NoErr(err)
	is.Equal(len(got), 0)
}

func testWake(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	jobs, schedules, err := s.Next(ctx)
	is.NoErr(err)
	is.True(jobs == nil && schedules == nil)
	soon, late := job(1), job(2)
	at, then := monday.Add(time.Minute), monday.Add(time.Hour)
	soon.State, soon.Wake, late.State, late.Wake = queue.Waiting, &at, queue.Waiting, &then
	put(t, s, "acme", late)
	put(t, s, "evil", soon)
	jobs, _, err = s.Next(ctx)
	is.NoErr(err)
	is.Equal(*jobs, at)
	n, err := s.Wake(ctx, at.Add(-time.Microsecond))
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Wake(ctx, at)
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(all(t, s, "acme"), []queue.Job{late})
	soon.Tenant, soon.State, soon.Wake = "evil", queue.Ready, nil
	is.Equal(all(t, s, "evil"), []queue.Job{soon})
	n, err = s.Hurry(ctx, "evil", []string{late.ID})
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Wake(ctx, then)
	is.NoErr(err)
	is.Equal(n, 1)
	jobs, _, err = s.Next(ctx)
	is.NoErr(err)
	is.True(jobs == nil)

	early, running := job(3), job(4)
	early.State, early.Wake = queue.Waiting, &then
	put(t, s, "acme", early, running)
	claim(t, s, mail("acme"), 2, "lease")
	before := all(t, s, "acme")
	n, err = s.Hurry(ctx, "acme", []string{early.ID, running.ID, late.ID, "x"})
	is.NoErr(err)
	is.Equal(n, 1)
	after := all(t, s, "acme")
	is.Equal(len(after), 3)
	for i, j := range before {
		if j.ID == early.ID {
			j.State, j.Wake = queue.Ready, nil
		}
		is.Equal(after[i], j)
	}
}

func testDead(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 5 {
		put(t, s, "acme", job(n))
		ok, err := s.Bury(ctx, claim(t, s, mail("acme"), 1, "lease")[0], "why", monday.Add(time.Duration(n)*time.Hour))
		is.NoErr(err)
		is.True(ok)
	}
	late := job(9)
	late.Due = monday.Add(10 * time.Hour)
	put(t, s, "acme", late)
	n, err := s.Count(ctx, "acme")
	is.NoErr(err)
	is.Equal(n, 1)
	dead := all(t, s, "acme")[0]
	is.Equal(*dead.Error, "why")
	is.Equal(*dead.EndedAt, monday)
	is.Equal(dead.State, queue.Dead)
	is.True(dead.Wake == nil && dead.Lease == "")
	back, err := s.Requeue(ctx, "acme", id(0), monday.Add(5*time.Hour))
	is.NoErr(err)
	want := job(0)
	want.Due = monday.Add(5 * time.Hour)
	is.Equal(back, want)
	for _, wrong := range []string{id(0), id(9), id(77)} { // no longer dead, not dead, missing
		_, err := s.Requeue(ctx, "acme", wrong, monday)
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	n, err = s.Discard(ctx, "acme", []string{id(1), id(9)})
	is.NoErr(err)
	is.Equal(n, 1)
	n, err = s.Sweep(ctx, "acme", monday.Add(2*time.Hour+time.Microsecond), 10) // of 2, 3, 4
	is.NoErr(err)
	is.Equal(n, 1)
	n, err = s.Sweep(ctx, "acme", monday, 1)
	is.NoErr(err)
	is.Equal(n, 1)
	is.Equal(ids(all(t, s, "acme")), []string{id(4), id(0), id(9)})
	n, err = s.Sweep(ctx, "acme", monday.Add(6*time.Hour), 1)
	is.NoErr(err)
	is.Equal(n, 2)
	is.Equal(ids(all(t, s, "acme")), []string{id(9)})
}

func testSchedules(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	a := queue.Schedule{
		Tenant:  "acme",
		Kind:    "cron",
		Key:     "a",
		Cron:    "* * * * *",
		Zone:    "Europe/Berlin",
		Payload: json.RawMessage(`{"a":1}`),
		Next:    monday,
	}
	fieldtest.Full(t, a)
	b, other, late := a, a, a
	b.Key, other.Kind, late.Key, late.Next = "b", "other", "late", monday.Add(time.Hour)
	is.NoErr(s.PutSchedules(ctx, "acme", []queue.Schedule{a, b, other, late}))
	is.NoErr(s.PutSchedules(ctx, "evil", []queue.Schedule{a}))
	got, err := s.Schedules(ctx, "acme", "cron", nil)
	is.NoErr(err)
	is.Equal(got, []queue.Schedule{a, b, late})
	got, err = s.Schedules(ctx, "acme", "cron", []string{"late", "a", "x"})
	is.NoErr(err)
	is.Equal(got, []queue.Schedule{a, late})
	_, next, err := s.Next(ctx)
	is.NoErr(err)
	is.Equal(*next, monday)
	var each []string
	for after := (queue.Schedule{}); ; {
		some, err := s.EachSchedule(ctx, after, 3)
		is.NoErr(err)
		if len(some) == 0 {
			break
		}
		for _, c := range some {
			each = append(each, c.Tenant+" "+c.Kind+" "+c.Key)
			if c.Key == "a" {
				is.Equal([]any{c.Cron, c.Zone, c.Next}, []any{a.Cron, a.Zone, a.Next})
			}
		}
		after = some[len(some)-1]
	}
	is.Equal(each, []string{"acme cron a", "acme cron b", "acme cron late", "acme other " + other.Key, "evil cron a"})
	early, otherwise, later := late, b, a
	early.Next, otherwise.Next, otherwise.Cron, later.Next =
		late.Next.Add(-time.Minute), b.Next.Add(-time.Hour), "@daily", a.Next.Add(time.Hour)
	is.NoErr(s.Hasten(ctx, "acme", []queue.Schedule{early, otherwise, later}))
	is.NoErr(s.Hasten(ctx, "evil", []queue.Schedule{early})) // the tenant has no schedule with the key
	got, err = s.Schedules(ctx, "acme", "cron", nil)
	is.NoErr(err)
	is.Equal(got, []queue.Schedule{a, b, early})
	is.NoErr(s.PutSchedules(ctx, "acme", []queue.Schedule{late}))
	b.Cron = "@daily"
	is.NoErr(s.PutSchedules(ctx, "acme", []queue.Schedule{b}))
	is.NoErr(s.DeleteSchedules(ctx, "acme", "other", nil))

	fire := func(now time.Time) (keys []string) {
		n, err := s.Fire(ctx, now, 10, func(due []queue.Schedule) (jobs []queue.Job) {
			for i := range due {
				keys = append(keys, due[i].Tenant+" "+due[i].Key)
				due[i].Next, due[i].Cron = monday.Add(2*time.Hour), "of no use"
				j := job(i)
				j.Tenant, j.ID, j.Key = due[i].Tenant, id(len(all(t, s, "evil"))*100+i), due[i].Key
				jobs = append(jobs, j)
			}
			return jobs
		})
		is.NoErr(err)
		is.Equal(n, len(keys))
		slices.Sort(keys)
		return keys
	}
	is.Equal(fire(monday.Add(-1)), nil)
	is.Equal(fire(monday), []string{"acme a", "acme b", "evil a"})
	is.Equal(len(all(t, s, "acme")), 2)
	is.Equal(len(all(t, s, "evil")), 1)
	is.Equal(fire(monday.Add(time.Hour)), []string{"acme late"})
	is.Equal(fire(monday.Add(2*time.Hour)), []string{"acme a", "acme b", "acme late", "evil a"})
	is.Equal(len(all(t, s, "acme")), 3) // the earlier ones are not done
	got, err = s.Schedules(ctx, "acme", "cron", nil)
	is.NoErr(err)
	b.Next = monday.Add(2 * time.Hour)
	is.Equal(got[1], b)
	is.NoErr(s.DeleteSchedules(ctx, "acme", "cron", []string{"a", "late", "x"}))
	got, err = s.Schedules(ctx, "acme", "cron", nil)
	is.NoErr(err)
	is.Equal(got, []queue.Schedule{b})
	got, err = s.Schedules(ctx, "evil", "cron", nil)
	is.NoErr(err)
	is.Equal(len(got), 1)
	_, err = s.Fire(ctx, monday.Add(3*time.Hour), 10, func([]queue.Schedule) []queue.Job {
		return []queue.Job{job(1000), job(1000)}
	})
	is.True(err != nil) // and nothing is stored
	got, err = s.Schedules(ctx, "acme", "cron", nil)
	is.NoErr(err)
	is.Equal(got, []queue.Schedule{b})
}

// testIsolation: a tenant cannot access jobs of another one.
func testIsolation(t *testing.T, s queue.Store) {
	is, ctx := is.New(t), t.Context()
	put(t, s, "acme", job(1))
	claimed := claim(t, s, mail("acme"), 1, "lease")
	put(t, s, "acme", job(2))
	before := all(t, s, "acme")
	is.Equal(len(claim(t, s, mail("evil"), 10, "evil")), 0)
	n, err := s.Remove(ctx, "evil", claimed)
	is.NoErr(err)
	is.Equal(n, 0)
	extended, err := s.Extend(ctx, "evil", claimed, monday.Add(time.Hour))
	is.NoErr(err)
	is.Equal(len(extended), 0)
	is.NoErr(s.Release(ctx, "evil", claimed))
	foreign := claimed[0]
	foreign.Tenant = "evil"
	ok, err := s.Bury(ctx, foreign, "why", monday)
	is.NoErr(err)
	is.True(!ok)
	ok, err = s.Retry(ctx, foreign, "why", monday)
	is.NoErr(err)
	is.True(!ok)
	n, err = s.Count(ctx, "evil")
	is.NoErr(err)
	is.Equal(n, 0)
	is.Equal(all(t, s, "acme"), before)
	_, err = s.Bury(ctx, claimed[0], "why", monday)
	is.NoErr(err)
	_, err = s.Requeue(ctx, "evil", id(1), monday)
	is.Equal(errs.CodeOf(err), errs.NotFound)
	n, err = s.Discard(ctx, "evil", []string{id(1)})
	is.NoErr(err)
	is.Equal(n, 0)
	n, err = s.Sweep(ctx, "evil", monday.Add(time.Hour), 0)
	is.NoErr(err)
	is.Equal(n, 0)
	is.Equal(len(all(t, s, "acme")), 2)
}

// testOnce: of many concurrent claims, each gets different jobs.
func testOnce(t *testing.T, s queue.Store) {
	is := is.New(t)
	var some []queue.Job
	for n := range 60 {
		some = append(some, job(n))
	}
	put(t, s, "acme", some...)
	var mu sync.Mutex
	var wg sync.WaitGroup
	times := map[string]int{}
	for who := range 6 {
		wg.Go(func() {
			for range 10 {
				jobs, err := s.Claim(t.Context(), mail("acme"), 3, by(fmt.Sprint(who)))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, j := range jobs {
					times[j.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	is.Equal(len(times), 60)
	for _, n := range times {
		is.Equal(n, 1)
	}
}

func testFailedTx(t *testing.T, s queue.Store) {
	is, failed := is.New(t), errors.New("failed")
	put(t, s, "acme", job(1))
	claimed := claim(t, s, mail("acme"), 1, "lease")
	before, called := all(t, s, "acme"), false
	err := s.InTx(t.Context(), func(ctx context.Context) error {
		is.NoErr(s.Insert(ctx, "acme", []queue.Job{job(2)}))
		n, err := s.Remove(ctx, "acme", claimed)
		is.NoErr(err)
		is.Equal(n, 1)
		is.NoErr(s.PutSchedules(ctx, "acme", []queue.Schedule{{
			Kind:    "cron",
			Key:     "a",
			Cron:    "* * * * *",
			Payload: json.RawMessage("null"),
			Next:    monday,
		}}))
		s.AfterCommit(ctx, func() { called = true })
		return failed
	})
	is.Equal(err, failed)
	is.True(!called)
	is.Equal(all(t, s, "acme"), before)
	_, next, err := s.Next(t.Context())
	is.NoErr(err)
	is.True(next == nil)
	is.NoErr(s.InTx(t.Context(), func(ctx context.Context) error {
		s.AfterCommit(ctx, func() { called = true })
		is.True(!called)
		return nil
	}))
	is.True(called)
}

func testStats(t *testing.T, s queue.Store) {
	is := is.New(t)
	put(t, s, "acme", job(2), job(1), job(3))
	put(t, s, "evil", job(4))
	claim(t, s, mail("acme"), 1, "lease")
	got, err := s.Stats(t.Context())
	is.NoErr(err)
	is.Equal(got, []queue.Stat{
		{Tenant: "acme", Kind: "mail", State: queue.Ready, N: 2, Oldest: job(2).Due},
		{Tenant: "acme", Kind: "mail", State: queue.Running, N: 1, Oldest: job(1).Due},
		{Tenant: "evil", Kind: "mail", State: queue.Ready, N: 1, Oldest: job(4).Due},
	})
}
