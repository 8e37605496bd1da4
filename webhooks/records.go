package webhooks

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Records are written by App.Run, a few times a second, and before they are read. They are in
// memory until then: a program that is killed loses those of the last moment.
//
// What an early answer has made complete is recorded at once, and again when its handler has ended.

// maxPath is how many bytes of a path are recorded.
const maxPath = 500

// maxBacklog is how many bytes wait in memory before those who add more write them.
const maxBacklog = 16 << 20

// backlog counts the bytes of the entries that are in memory.
type backlog struct{ bytes atomic.Int64 }

// budget counts what was recorded of each app in a period.
type budget struct {
	period time.Duration

	mu    sync.Mutex
	since time.Time
	spent map[string]int
}

// allow reports whether n more may be recorded, and counts them then.
func (b *budget) allow(key string, now time.Time, n, most int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if since := now.Truncate(b.period); since.After(b.since) {
		b.since, b.spent = since, map[string]int{}
	}
	if b.spent[key]+n > most {
		return false
	}
	b.spent[key] += n
	return true
}

// countRefusal makes an entry count alone if enough calls of the app that got to no handler were
// recorded in this minute, so that a stranger who has an address does not fill the table.
func (s *Service) countRefusal(tenant string, e *Entry) {
	e.CountOnly = !s.refusals.allow(tenant+"/"+e.App, s.clock.Stamp(), 1, s.o.Limits.Refusals)
}

// briefError is how many bytes of the text of an error are recorded at least.
const briefError = 300

// boundTexts leaves out the log of a call, and cuts its error, if those of the app were long enough
// in this hour.
func (s *Service) boundTexts(tenant string, e *Entry) {
	size := 0
	for _, l := range e.Logs {
		size += len(l.Text)
	}
	if e.Error != nil {
		size += len(*e.Error)
	}
	if size == 0 || s.texts.allow(tenant+"/"+e.App, s.clock.Stamp(), size, s.o.Limits.HourBytes) {
		return
	}
	e.LogsDropped += len(e.Logs)
	e.Logs = nil
	if e.Error != nil {
		brief := cut(*e.Error, briefError)
		e.Error = &brief
	}
}

// record adds an entry, which is written soon.
func (s *Service) record(ctx context.Context, tenant string, e Entry) {
	key := e.ID
	if e.CountOnly {
		key = strings.Join([]string{e.App, e.StartedAt.Format(time.DateOnly), e.Method, e.Path}, " ")
	}
	e.Size = 300 + len(e.Path)
	if e.Error != nil {
		e.Size += len(*e.Error)
	}
	for _, l := range e.Logs {
		e.Size += len(l.Text) + 60
	}
	s.records.Add(tenant, key, e)
	if s.backlog.bytes.Add(int64(e.Size)) > maxBacklog {
		if err := s.records.Flush(ctx, tenant); err != nil {
			s.o.Log.WarnContext(ctx, "webhook calls cannot be recorded at the moment", "tenant", tenant, "err", err)
		}
	}
}

// write writes entries. Of those that a write before may have added the numbers do not count again.
// Those of a tenant that is deleted are dropped.
func (s *Service) write(ctx context.Context, tenant string, counted map[string]Entry) error {
	all, retried, size := make([]Entry, 0, len(counted)), []string(nil), 0
	for key, e := range counted {
		if e.Retried && !e.CountOnly {
			retried = append(retried, key)
		}
		size += e.Size
	}
	written := map[string]bool{}
	var err error
	if len(retried) > 0 {
		written, err = s.o.Store.Recorded(ctx, tenant, retried)
	}
	if err == nil {
		for key, e := range counted {
			if e.Retried && written[key] {
				e.Calls, e.Errors, e.Spent = 0, 0, 0
			}
			all = append(all, e)
		}
		slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
		err = s.o.Store.Record(ctx, tenant, all)
	}
	switch errs.CodeOf(err) {
	case "", errs.Conflict:
		s.backlog.bytes.Add(int64(-size))
		return nil
	}
	for key, e := range counted {
		e.Retried = true
		counted[key] = e
	}
	return err
}

// Listing is what the owner of an app sees of its webhooks.
type Listing struct {
	App    string // id
	Routes []Route
	Recent []Invocation // without logs, newest first
	Days   []Day        // ordered
}

// Invocations returns the routes of an app's webhooks, the last invocations, and the numbers of the
// last days, today among them, without days of no calls. It is for those who may change the app,
// also with a token that can only read. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a
// draft.
func (s *Service) Invocations(ctx context.Context, app string, f Filter) (Listing, error) {
	a, id, err := s.inspect(ctx, app)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{App: id}
	if l.Routes, err = s.o.Handlers.Routes(ctx, HandlerApp{Tenant: a.Tenant, ID: id}, handlers.Webhooks); err != nil {
		return Listing{}, err
	}
	f.Path = cut(f.Path, maxPath)
	if l.Recent, err = s.o.Store.Recent(ctx, a.Tenant, id, handlers.Webhooks, f, s.o.Limits.Recent); err != nil {
		return Listing{}, err
	}
	since := s.clock.Stamp().AddDate(0, 0, 1-s.o.Limits.Days).Format(time.DateOnly)
	l.Days, err = s.o.Store.Days(ctx, a.Tenant, id, f, since)
	return l, err
}

// Invocation returns an invocation of an app, of its webhooks or server routes, with its logs, to
// those for whom List is. Errors: errs.NotFound; errs.Forbidden; errs.Invalid for a draft.
func (s *Service) Invocation(ctx context.Context, app, id string) (Invocation, error) {
	a, app, err := s.inspect(ctx, app)
	if err != nil {
		return Invocation{}, err
	}
	id, ok := uuids.Parse(id)
	if !ok {
		return Invocation{}, notFound()
	}
	return s.o.Store.Invocation(ctx, a.Tenant, app, id)
}

func notFound() error { return errs.New(errs.NotFound, "Invocation not found.") }

// inspect returns the caller and an app, and writes the tenant's records.
func (s *Service) inspect(ctx context.Context, app string) (actor.Actor, string, error) {
	return s.readable(ctx, app, s.o.Apps.CheckInspect)
}

// readable is inspect for those whom find lets.
func (s *Service) readable(
	ctx context.Context, app string, find func(ctx context.Context, id string) (string, error),
) (actor.Actor, string, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return actor.Actor{}, "", err
	}
	id, err := find(ctx, app)
	if err != nil {
		return actor.Actor{}, "", err
	}
	return a, id, s.records.Flush(ctx, a.Tenant)
}

// cut returns the beginning of a text, of at most n bytes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// storable returns a text as every database can keep it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}
