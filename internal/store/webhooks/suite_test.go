package bunstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/testkit/fieldtest"
	"github.com/tenantcontent/tenantcontent/webhooks"
)

var (
	monday  = time.Date(2026, 11, 16, 9, 0, 0, 123456000, time.UTC)
	tuesday = monday.Add(24 * time.Hour)
)

// testStore runs all checks. open returns an empty Store whose database has the tenants acme and
// evil.
func testStore(t *testing.T, open func(t *testing.T) webhooks.Store) {
	for name, check := range map[string]func(*testing.T, webhooks.Store){
		"RoundTrip":              testRoundTrip,
		"RecordAgainOverwrites":  testAgain,
		"Filters":                testFilters,
		"DaysAddUp":              testDays,
		"AreasAreApart":          testAreas,
		"ManyAtOnce":             testMany,
		"ParallelRecordsAllLand": testParallel,
		"Isolation":              testIsolation,
		"UnknownTenant":          testUnknownTenant,
		"Requests":               testRequests,
		"Remove":                 testRemove,
		"Sweep":                  testSweep,
		"CanceledWritesNothing":  testCanceled,
	} {
		t.Run(name, func(t *testing.T) { check(t, open(t)) })
	}
}

func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

// call returns the nth call of a route of an app.
func call(n int, app, method, path string) webhooks.Entry {
	return webhooks.Entry{
		Invocation: webhooks.Invocation{
			ID: id(n), App: app, Area: handlers.Webhooks, Method: method,
			Path: path, StartedAt: monday.Add(time.Duration(n) * time.Second),
			Duration: time.Millisecond, Status: 200, Logs: []webhooks.Log{},
		},
		Calls: 1, Spent: time.Millisecond,
	}
}

func record(t *testing.T, s webhooks.Store, tenant string, all ...webhooks.Entry) {
	t.Helper()
	is.New(t).NoErr(s.Record(t.Context(), tenant, all))
}

func ids(t *testing.T, s webhooks.Store, tenant, app string, f webhooks.Filter) string {
	t.Helper()
	all, err := s.Recent(t.Context(), tenant, app, handlers.Webhooks, f, 50)
	is.New(t).NoErr(err)
	got := make([]string, len(all))
	for i, v := range all {
		got[i] = strings.TrimLeft(v.ID[24:], "0")
	}
	return strings.Join(got, " ")
}

func testRoundTrip(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	text, other := "Error: '; DROP TABLE x; --?$1 \\ ✓\n\tat a.js:1:2", id(9)
	e := call(1, "a", "POST", "/stripe/:action")
	e.Duration, e.Status, e.Memory, e.Error, e.LogsDropped, e.ReplayOf =
		1234567*time.Microsecond, 599, 1<<40, &text, 7, &other
	e.Logs = []webhooks.Log{
		{Time: tuesday.Truncate(time.Millisecond), Level: "warn", Text: "\x00\x01 \u2028 ü"},
		{Time: monday, Level: "info"},
	}
	record(t, s, "acme", e)
	got, err := s.Invocation(ctx, "acme", "a", id(1))
	is.NoErr(err)
	want := e.Invocation
	is.Equal(got, want)
	want.Kept = true
	fieldtest.Full(t, want)
	all, err := s.Recent(ctx, "acme", "a", handlers.Webhooks, webhooks.Filter{}, 1)
	is.NoErr(err)
	want.Kept, want.Logs, want.LogsDropped = false, nil, 0
	is.Equal(all, []webhooks.Invocation{want})

	plain := call(2, "a", "GET", "/")
	record(t, s, "acme", plain)
	got, err = s.Invocation(ctx, "acme", "a", id(2))
	is.NoErr(err)
	is.Equal(got, plain.Invocation)
	for _, at := range [][2]string{{"a", id(3)}, {"b", id(1)}, {"a", ""}} {
		_, err = s.Invocation(ctx, "acme", at[0], at[1])
		is.Equal(errs.CodeOf(err), errs.NotFound)
	}
	is.NoErr(s.Record(ctx, "acme", nil))
}

// testAgain: a later record of a call overwrites its invocation, and adds only the difference to
// the numbers.
func testAgain(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	early := call(1, "a", "POST", "/x")
	record(t, s, "acme", early)
	text, late := "Error: late", early
	late.Calls, late.Errors, late.Spent, late.Duration, late.Error, late.Memory = 0, 1, time.Second, time.Second+
		time.Millisecond, &text, 5
	late.Logs = []webhooks.Log{{Time: monday, Level: "info", Text: "x"}}
	record(t, s, "acme", late)
	got, err := s.Invocation(ctx, "acme", "a", id(1))
	is.NoErr(err)
	is.Equal(got, late.Invocation)
	days, err := s.Days(ctx, "acme", "a", webhooks.Filter{}, "")
	is.NoErr(err)
	is.Equal(days, []webhooks.Day{{Day: "2026-11-16", Calls: 1, Errors: 1, Duration: time.Second + time.Millisecond}})
	there, err := s.Recorded(ctx, "acme", []string{id(1), id(2)})
	is.NoErr(err)
	is.Equal(there, map[string]bool{id(1): true})
}

func testFilters(t *testing.T, s webhooks.Store) {
	is := is.New(t)
	record(
		t, s, "acme", call(3, "a", "POST", "/x"), call(1, "a", "POST", "/x"), call(2, "a", "GET", "/x"),
		call(4, "a", "POST", "/y"), call(5, "b", "POST", "/x"),
	)
	same := call(6, "a", "POST", "/x")
	same.StartedAt = call(3, "", "", "").StartedAt
	record(t, s, "acme", same)
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{}), "4 6 3 2 1")
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{Method: "POST", Path: "/x"}), "6 3 1")
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{Method: "GET", Path: "/y"}), "")
	is.Equal(ids(t, s, "acme", "c", webhooks.Filter{}), "")
	all, err := s.Recent(t.Context(), "acme", "a", handlers.Webhooks, webhooks.Filter{}, 2)
	is.NoErr(err)
	is.Equal(len(all), 2)
}

// testAreas: calls of server routes are stored separately and not counted.
func testAreas(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	served := call(2, "a", "POST", "/x")
	served.Area = handlers.Server
	record(t, s, "acme", call(1, "a", "POST", "/x"), served)
	served.ID = id(3)
	record(t, s, "acme", served)
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{}), "1")
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{Method: "POST", Path: "/x"}), "1")
	all, err := s.Recent(ctx, "acme", "a", handlers.Server, webhooks.Filter{}, 9)
	is.NoErr(err)
	is.Equal(len(all), 2)
	is.Equal(all[0].Area, handlers.Server)
	days, err := s.Days(ctx, "acme", "a", webhooks.Filter{}, "")
	is.NoErr(err)
	is.Equal(days, []webhooks.Day{{Day: "2026-11-16", Calls: 1, Duration: time.Millisecond}})
}

func testDays(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	failed, counted, lost, next := call(2, "a", "POST", "/x"), call(3, "a", "POST", "/x"), call(
		4, "a", "POST", "/nowhere",
	), call(5, "a", "GET", "/x")
	failed.Errors, failed.Spent = 1, time.Second
	counted.CountOnly, counted.Calls, counted.Errors, counted.Spent = true, 10, 10, 0
	lost.NoRoute, lost.Errors = true, 1
	next.StartedAt = tuesday
	record(t, s, "acme", call(1, "a", "POST", "/x"), failed, counted, lost, next, call(6, "b", "POST", "/x"))
	days := func(f webhooks.Filter, since string) []webhooks.Day {
		t.Helper()
		all, err := s.Days(ctx, "acme", "a", f, since)
		is.NoErr(err)
		return all
	}
	first := webhooks.Day{Day: "2026-11-16", Calls: 13, Errors: 12, Duration: time.Second + 2*time.Millisecond}
	second := webhooks.Day{Day: "2026-11-17", Calls: 1, Duration: time.Millisecond}
	is.Equal(days(webhooks.Filter{}, ""), []webhooks.Day{first, second})
	is.Equal(days(webhooks.Filter{}, "2026-11-17"), []webhooks.Day{second})
	is.Equal(days(webhooks.Filter{Method: "POST", Path: "/x"}, ""), []webhooks.Day{{
		Day:      "2026-11-16",
		Calls:    12,
		Errors:   11,
		Duration: time.Second + time.Millisecond,
	}})
	is.Equal(len(days(webhooks.Filter{Method: "POST", Path: "/nowhere"}, "")), 0)
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{}), "5 4 2 1") // a call that is only counted has no row
	n, err := s.Calls(ctx, "acme", []string{"a", "b", "c"})
	is.NoErr(err)
	is.Equal(n, 15)
	n, err = s.Calls(ctx, "acme", []string{"c"})
	is.NoErr(err)
	is.Equal(n, 0)
}

// testMany: more entries than fit one statement.
func testMany(t *testing.T, s webhooks.Store) {
	is := is.New(t)
	all := make([]webhooks.Entry, 1201)
	for i := range all {
		all[i] = call(i, "a", "POST", "/x")
	}
	record(t, s, "acme", all...)
	n, err := s.Calls(t.Context(), "acme", []string{"a"})
	is.NoErr(err)
	is.Equal(n, len(all))
	some, err := s.Recent(t.Context(), "acme", "a", handlers.Webhooks, webhooks.Filter{}, 2000)
	is.NoErr(err)
	is.Equal(len(some), len(all))
}

func testParallel(t *testing.T, s webhooks.Store) {
	var running sync.WaitGroup
	for n := range 10 {
		running.Go(func() {
			if err := s.Record(t.Context(), "acme", []webhooks.Entry{
				call(n, "b", "POST", "/x"), call(100+n, "a", "GET", "/y"), call(200+n, "a", "POST", "/x"),
			}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	is := is.New(t)
	n, err := s.Calls(t.Context(), "acme", []string{"a", "b"})
	is.NoErr(err)
	is.Equal(n, 30)
}

func testIsolation(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	record(t, s, "acme", call(1, "a", "POST", "/x"))
	keep(t, s, "acme", "a", 1, 10)
	is.Equal(ids(t, s, "evil", "a", webhooks.Filter{}), "")
	_, err := s.Invocation(ctx, "evil", "a", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	_, err = s.Kept(ctx, "evil", "a", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	days, err := s.Days(ctx, "evil", "a", webhooks.Filter{}, "")
	is.NoErr(err)
	is.Equal(len(days), 0)
	there, err := s.Recorded(ctx, "evil", []string{id(1)})
	is.NoErr(err)
	is.Equal(len(there), 0)
	is.NoErr(s.Remove(ctx, "evil", []string{"a"}))
	n, err := s.Sweep(ctx, "evil", webhooks.Old{Invocations: tuesday, Requests: tuesday, Day: "2030-01-01", Batch: 10})
	is.NoErr(err)
	is.Equal(n, 0)
	record(t, s, "evil", call(1, "a", "POST", "/x"))
	got, err := s.Invocation(ctx, "acme", "a", id(1))
	is.NoErr(err)
	is.True(got.Kept)
	got, err = s.Invocation(ctx, "evil", "a", id(1))
	is.NoErr(err)
	is.True(!got.Kept)
}

func testUnknownTenant(t *testing.T, s webhooks.Store) {
	is.New(t).Equal(
		errs.CodeOf(s.Record(t.Context(), "nobody", []webhooks.Entry{call(1, "a", "POST", "/x")})),
		errs.Conflict,
	)
}

// keep stores a request of some bytes.
func keep(t *testing.T, s webhooks.Store, tenant, app string, n, size int) webhooks.Kept {
	t.Helper()
	k := webhooks.Kept{
		App:        app,
		ID:         id(n),
		ReceivedAt: monday.Add(time.Duration(n) * time.Second),
		KeySealed:  "key",
		Request:    []byte(strings.Repeat("\x00\xff", size/2)),
	}
	is.New(t).NoErr(s.Keep(t.Context(), tenant, k, 3, 100))
	return k
}

// testRequests: the oldest requests of an app are removed for newer ones.
func testRequests(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	first := keep(t, s, "acme", "a", 1, 10)
	fieldtest.Full(t, first)
	got, err := s.Kept(ctx, "acme", "a", id(1))
	is.NoErr(err)
	is.Equal(got, first)
	keep(t, s, "acme", "b", 9, 10)
	kept := func() (all string) {
		for n := range 10 {
			if _, err := s.Kept(ctx, "acme", "a", id(n)); err == nil {
				all += fmt.Sprint(n)
			}
		}
		return all
	}
	keep(t, s, "acme", "a", 2, 20)
	keep(t, s, "acme", "a", 3, 20)
	is.Equal(kept(), "123")
	keep(t, s, "acme", "a", 4, 20)
	is.Equal(kept(), "234") // at most three
	keep(t, s, "acme", "a", 5, 80)
	is.Equal(kept(), "45") // of at most 100 bytes
	keep(t, s, "acme", "a", 6, 500)
	is.Equal(kept(), "6") // the newest is kept
	_, err = s.Kept(ctx, "acme", "b", id(9))
	is.NoErr(err)
	_, err = s.Kept(ctx, "acme", "b", id(6))
	is.Equal(errs.CodeOf(err), errs.NotFound)
	is.NoErr(s.Wait(ctx, "acme", "a", id(6), 1, 500))
	keep(t, s, "acme", "a", 7, 20)
	is.Equal(kept(), "67")                                                            // waiting requests are kept
	is.Equal(errs.CodeOf(s.Wait(ctx, "acme", "a", id(7), 1, 1000)), errs.Unavailable) // one request waits
	is.Equal(errs.CodeOf(s.Wait(ctx, "acme", "a", id(7), 2, 519)), errs.Unavailable)  // of 500 bytes
	is.Equal(errs.CodeOf(s.Wait(ctx, "acme", "a", id(5), 3, 1000)), errs.Unavailable) // it was removed
	is.Equal(errs.CodeOf(s.Wait(ctx, "evil", "a", id(7), 3, 1000)), errs.Unavailable)
	is.NoErr(s.Waited(ctx, "evil", "a", id(6)))
	keep(t, s, "acme", "a", 8, 90)
	is.Equal(kept(), "68")
	is.NoErr(s.Waited(ctx, "acme", "a", id(6)))
	keep(t, s, "acme", "a", 0, 2) // older than all others
	is.Equal(kept(), "08")
	again := webhooks.Kept{App: "a", ID: id(8), ReceivedAt: monday, KeySealed: "key", Request: []byte("x")}
	is.Equal(errs.CodeOf(s.Keep(ctx, "acme", again, 3, 100)), errs.Conflict)
}

func testRemove(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	record(t, s, "acme", call(1, "a", "POST", "/x"), call(2, "b", "POST", "/x"), call(3, "c", "POST", "/x"))
	keep(t, s, "acme", "a", 1, 10)
	is.NoErr(s.Remove(ctx, "acme", []string{"a", "b", "none"}))
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{})+ids(t, s, "acme", "b", webhooks.Filter{}), "")
	is.Equal(ids(t, s, "acme", "c", webhooks.Filter{}), "3")
	n, err := s.Calls(ctx, "acme", []string{"a", "b", "c"})
	is.NoErr(err)
	is.Equal(n, 1)
	_, err = s.Kept(ctx, "acme", "a", id(1))
	is.Equal(errs.CodeOf(err), errs.NotFound)
}

func testSweep(t *testing.T, s webhooks.Store) {
	is, ctx := is.New(t), t.Context()
	for n := range 5 {
		record(t, s, "acme", call(n, "a", "POST", "/x"))
	}
	keep(t, s, "acme", "a", 1, 10)
	keep(t, s, "acme", "a", 4, 10)
	late := call(9, "a", "POST", "/x")
	late.StartedAt = tuesday
	record(t, s, "acme", late)
	cut := monday.Add(3 * time.Second)
	sweep := func(want int) {
		t.Helper()
		n, err := s.Sweep(ctx, "acme", webhooks.Old{Invocations: cut, Requests: cut, Day: "2026-11-17", Batch: 2})
		is.NoErr(err)
		is.Equal(n, want)
	}
	sweep(4) // two invocations, a request and a day
	sweep(1)
	sweep(0)
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{}), "9 4 3")
	days, err := s.Days(ctx, "acme", "a", webhooks.Filter{}, "")
	is.NoErr(err)
	is.Equal(len(days), 1)
	_, err = s.Kept(ctx, "acme", "a", id(4))
	is.NoErr(err)
}

func testCanceled(t *testing.T, s webhooks.Store) {
	is := is.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is.True(errors.Is(s.Record(ctx, "acme", []webhooks.Entry{call(1, "a", "POST", "/x")}), context.Canceled))
	is.Equal(ids(t, s, "acme", "a", webhooks.Filter{}), "")
}
