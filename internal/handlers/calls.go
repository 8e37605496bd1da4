package handlers

import (
	"context"
	"time"
)

// Call is what calls are counted by.
type Call struct {
	App    string
	Day    string // in UTC, such as 2026-11-20
	Area   string // an Area, or "api" for the calls of pages that the manifest allows
	Method string
	Path   string // the pattern of the route, or of the manifest's rule
}

// Calls is how often something was called.
type Calls struct {
	N            int64
	Failed       int64 // of them those that were answered with a status from 500
	Milliseconds int64 // that all took
}

func (c Calls) plus(more Calls) Calls {
	return Calls{c.N + more.N, c.Failed + more.Failed, c.Milliseconds + more.Milliseconds}
}

// CallsOf is the calls of one route on one day.
type CallsOf struct {
	Call
	Calls
}

// CallDays is for how many days calls are kept, with the day of now.
const CallDays = 30

// since returns the first of the days that are kept.
func (s *Service) since() string {
	return s.clock.Stamp().AddDate(0, 0, 1-CallDays).Format(time.DateOnly)
}

// Count counts a call of an app. It writes nothing: FlushAll does.
func (s *Service) Count(tenant, app, area, method, path string, status int, took time.Duration) {
	c := Calls{N: 1, Milliseconds: took.Milliseconds()}
	if status >= 500 {
		c.Failed = 1
	}
	s.calls.Add(tenant, Call{
		App:    app,
		Day:    s.clock.Stamp().Format(time.DateOnly),
		Area:   area,
		Method: FunctionOf(method),
		Path:   path,
	}, c)
}

// FlushAll writes the counted calls of all tenants.
func (s *Service) FlushAll(ctx context.Context) error { return s.calls.FlushAll(ctx) }

// Calls returns the calls of an app on the last CallDays days, ordered by day, area, path and
// method.
func (s *Service) Calls(ctx context.Context, tenant, app string) ([]CallsOf, error) {
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = s.calls.Flush(brief, tenant) // what cannot be written now stays counted
	return s.o.Store.Calls(ctx, tenant, app, s.since())
}
