package domains

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/directory/dirsync"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
)

// JobScan is the kind of jobs that scan a domain by its schedule; the key of one is the domain's
// id.
const JobScan = "domain-scan"

// Queue puts jobs at the times of schedules. *queue.Service implements it.
type Queue interface {
	Schedule(ctx context.Context, all ...Schedule) error
	Unschedule(ctx context.Context, tenant, kind string, keys ...string) error
	Schedules(ctx context.Context, tenant, kind string, keys ...string) ([]Schedule, error)
}

// scheduleMember is the member of a configuration that says when a directory is scanned.
const scheduleMember = "schedule"

// zoned splits a cron expression from the time zone in front of it, such as "CRON_TZ=Europe/Berlin
// 0 3 * * *".
func zoned(schedule string) (expression, zone string) {
	for _, prefix := range []string{"CRON_TZ=", "TZ="} {
		if rest, found := strings.CutPrefix(schedule, prefix); found {
			zone, expression, _ = strings.Cut(rest, " ")
			return strings.TrimSpace(expression), zone
		}
	}
	return schedule, ""
}

// acceptSchedule checks the time zone and the expression.
func (r *rules) acceptSchedule(now time.Time) error {
	if r.Schedule == "" {
		return nil
	}
	if len(r.Schedule) > maxText {
		return errs.New(errs.Invalid, "schedule must have at most %d bytes", maxText)
	}
	expression, zone := zoned(r.Schedule)
	next, err := queue.Next(expression, zone, now)
	if err != nil {
		return errs.New(errs.Invalid, "schedule: %s", errs.MessageOf(err))
	}
	for range maxLookedAt {
		before := next
		if next, err = queue.Next(expression, zone, before); err != nil {
			break // there is no other one
		}
		if next.Sub(before) < minInterval {
			return errs.New(errs.Invalid,
				"schedule must have %d minutes between two scans: the directory is read whole each time. @every "+
					"15m and 0 * * * * do",
				int(minInterval.Minutes()))
		}
	}
	return nil
}

const (
	minInterval = 10 * time.Minute // between the beginnings of two scans of a domain by its schedule
	maxLookedAt = 100              // scans to come when a schedule is saved
)

// schedule returns when a domain is scanned, "" for never.
func (s *Service) schedule(d Domain) string {
	info, _ := s.info(d.Type)
	r, err := readRules(info, d.Config)
	if err != nil {
		return ""
	}
	return r.Schedule
}

// Schedule returns when a domain is scanned, as its configuration says, "" for never.
func (u Unchecked) Schedule(d Domain) string { return u.s.schedule(d) }

// reschedule changes the schedule of a domain, in the transaction in ctx. One that stays the same
// goes on.
func (s *Service) reschedule(ctx context.Context, d Domain, was, becomes string) error {
	switch {
	case was == becomes:
		return nil
	case s.o.Queue == nil:
		return errs.New(errs.Invalid, "config.schedule must be left out: this program has no queue")
	case becomes == "":
		return s.o.Queue.Unschedule(ctx, d.Tenant, JobScan, d.ID)
	}
	expression, zone := zoned(becomes)
	return s.o.Queue.Schedule(ctx, Schedule{Tenant: d.Tenant, Kind: JobScan, Key: d.ID, Cron: expression, Zone: zone})
}

// NextScan returns when a domain is scanned next by its schedule, nil for never. It needs a
// superuser. Errors: errs.Forbidden.
func (s *Service) NextScan(ctx context.Context, id string) (*time.Time, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil || s.o.Queue == nil {
		return nil, err
	}
	found, err := s.o.Queue.Schedules(ctx, a.Tenant, JobScan, id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0].Next, nil
}

// A scheduled scan is tried so often, and each try lasts so long at most: the directory is read for
// maxScheduled.
const (
	scanTries    = 3
	maxScheduled = 15 * time.Minute
	scanTime     = 3 * maxScheduled
	busyPause    = time.Minute // while another scan runs, or one of a process that has just ended counts as running
)

// Workers returns what scans directories by their schedules: one node at a time for each domain.
func (u Unchecked) Workers() []Worker {
	return []Worker{{
		Kind: JobScan, Do: u.s.scanByJob, Tries: scanTries, Timeout: scanTime, AtOnce: maxScans, PerTenant: maxScansOf,
		Backoff: func(tries int) time.Duration {
			d := 2 * time.Minute << (2 * min(max(tries-1, 0), 3))
			return d*3/4 + rand.N(d/2)
		},
	}}
}

// scanByJob scans a domain, never with Force. What keeps the scan from writing is the state of the
// scan, too, which ScanState returns.
func (s *Service) scanByJob(ctx context.Context, j queue.Job) error {
	d, err := s.get(ctx, j.Tenant, j.Key)
	if errs.CodeOf(err) == errs.NotFound || err == nil && s.schedule(d) == "" {
		return nil // since the job was put
	}
	if err != nil {
		return err
	}
	if early, err := s.tooEarly(ctx, j); err != nil {
		return err
	} else if early > 0 {
		return queue.Later(errs.New(errs.Conflict, "The domain was scanned a moment ago."), early)
	}
	_, err = s.scan(ctx, j.Tenant, d.Type, []Domain{d}, ScanOptions{Domain: d.ID, scheduled: true})
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx) // the node stops, or has lost the lease
	}
	lost, code := errors.Is(err, dirsync.ErrLosses), errs.CodeOf(err)
	if !lost && (code == errs.Conflict || code == errs.Unavailable || code == errs.Unconfirmed || code == errs.Full) {
		return queue.Later(err, busyPause)
	}
	s.o.Log.WarnContext(ctx, "scheduled scan failed", "tenant", j.Tenant, "domain", d.ID, "try", j.Tries, "err", err)
	if lost || code == errs.Invalid { // no other try would mend it
		return nil
	}
	return err
}

// tooEarly returns how long the first try of a scheduled scan must wait, so that minInterval is
// between it and the scan before.
func (s *Service) tooEarly(ctx context.Context, j queue.Job) (time.Duration, error) {
	if j.Tries > 1 {
		return 0, nil
	}
	last, err := s.store.LastScan(ctx, j.Tenant, j.Key)
	if err != nil || last.ID == "" || last.FinishedAt == nil || last.DryRun {
		return 0, err
	}
	return max(0, last.StartedAt.Add(minInterval).Sub(s.clock.Now())), nil
}
