package domains

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// scanning is the scan of one domain.
type scanning struct {
	s      *Service
	domain Domain
	run    ScanState
	shown  ScanState // to others: what run was a moment ago, guarded by Service.mu
	from   Directory // nil for a domain without a configuration
	found  Snapshot
	ids    IDAttributes // those of found
	began  time.Time
	limit  time.Duration // of the time in which the directory is read
	result Scanned
}

func (s *Service) scan(
	ctx context.Context, tenant, driver string, some []Domain, o ScanOptions,
) (results []Scanned, err error) {
	if info, _, ok := s.driver(driver); ok && info.ScanComponent == nil {
		return nil, errs.New(errs.Invalid, "The driver %s has no directory to scan.", driver)
	}
	start := time.Now()
	ctx = entity.Begin(ctx, s.o.Observer, entity.ScanWork, driver)
	defer func() {
		entity.Observe(ctx, s.o.Observer, entity.Observation{
			Work:    entity.ScanWork,
			Tenant:  tenant,
			Kind:    driver,
			Outcome: entity.Outcome(err),
			Start:   start,
		})
	}()
	leave, err := s.takeScan(ctx, tenant, some, o.scheduled)
	if err != nil {
		return nil, err
	}
	defer leave()
	var all []*scanning
	at := "" // the domain that something is done with
	defer func() {
		for _, one := range all {
			one.end(ctx, at, err)
		}
	}()
	for _, d := range some {
		at = d.ID
		one, err := s.beginScan(ctx, d, o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	began := time.Now()
	at, err = s.readAll(ctx, all)
	s.noteRead(tenant, time.Since(began))
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		one.run.Phase = Writing
		one.show()
		if err := one.note(ctx); err != nil {
			return nil, err
		}
	}
	limiter.Resume(ctx) // what follows computes, and holds SQLite's one writer unless it is a dry run
	run := s.store.InTx
	if o.DryRun {
		run = s.store.DryRun
	}
	err = run(ctx, func(ctx context.Context) error {
		at, err = s.writeAll(ctx, all, o)
		return err
	})
	results = []Scanned{}
	for _, one := range all {
		results = append(results, one.result)
	}
	return results, err
}

// readAll reads every directory, and returns the domain of the one that failed.
func (s *Service) readAll(ctx context.Context, all []*scanning) (at string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { s.beatAll(ctx, all) })
	defer func() {
		cancel()
		beats.Wait()
	}()
	for _, one := range all {
		if err := one.read(ctx); err != nil {
			return one.domain.ID, err
		}
	}
	return "", nil
}

// beat is how often a scan that reads tells other processes that it lives.
const beat = 5 * time.Second

// beatAll does so for all domains of a scan, also for those that wait for others, until ctx ends. A
// beat that cannot be written is left out.
func (s *Service) beatAll(ctx context.Context, all []*scanning) {
	for range clock.Each(ctx, s.limits.beat) {
		for _, one := range all {
			_ = one.note(ctx)
		}
	}
}

// note writes what is shown of the scan, which is heard of with that.
func (one *scanning) note(ctx context.Context) error {
	s, d := one.s, one.domain
	s.mu.Lock()
	run := one.shown
	s.mu.Unlock()
	run.HeardAt = s.clock.Stamp()
	return s.store.UpdateScan(ctx, d.Tenant, d.ID, run)
}

// writeAll joins a transaction, and returns the domain that failed.
func (s *Service) writeAll(ctx context.Context, all []*scanning, o ScanOptions) (at string, err error) {
	for i, one := range all {
		d := one.domain
		if i == 0 { // before the notes, as Delete does
			if err := s.store.LockTenant(ctx, d.Tenant); err != nil {
				return d.ID, err
			}
		}
		if err := s.store.LockScan(ctx, d.Tenant, d.ID, one.run.ID); err != nil {
			return d.ID, err
		}
	}
	for _, one := range all {
		if err := one.write(ctx, o); err != nil {
			return one.domain.ID, err
		}
	}
	return "", nil
}

func (s *Service) beginScan(ctx context.Context, d Domain, o ScanOptions) (*scanning, error) {
	one := &scanning{s: s, domain: d, began: time.Now(), limit: s.limits.read}
	if o.scheduled {
		one.limit = min(one.limit, maxScheduled)
	}
	realm, err := s.open(d)
	switch {
	case d.Config == nil && o.Domain == "": // one that nobody has filled in yet keeps nobody else from a scan
	case err != nil:
		return nil, err
	default:
		var ok bool
		if one.from, ok = realm.(Directory); !ok {
			return nil, errs.New(errs.Invalid, "The domain %s has no directory to scan.", d.ID)
		}
	}
	now := s.clock.Stamp()
	one.run = ScanState{ID: s.clock.NewID(), Phase: Reading, DryRun: o.DryRun, StartedAt: now, HeardAt: now}
	if err := one.begin(ctx, now.Add(-silence)); err != nil {
		return nil, err
	}
	return one, nil
}

// begin notes that the scan runs. A caller who hangs up does not break the note off; one that may
// be there all the same is ended, as nobody else would end it.
func (one *scanning) begin(ctx context.Context, stale time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, d := one.s, one.domain
	noting, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if err := s.store.BeginScan(noting, d.Tenant, d.ID, one.run, stale); err != nil {
		if errs.CodeOf(err) != errs.Conflict {
			one.end(ctx, d.ID, err)
		}
		return err
	}
	one.show()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[place{d.Tenant, d.ID}] = one
	return nil
}

// show makes the state of the scan readable in this process.
func (one *scanning) show() {
	one.s.mu.Lock()
	defer one.s.mu.Unlock()
	one.shown = one.run
}

// write joins the transaction of all domains.
func (one *scanning) write(ctx context.Context, o ScanOptions) error {
	s, d := one.s, one.domain
	one.result = Scanned{ID: d.ID, ScannedAt: d.ScannedAt}
	if one.from == nil {
		one.result.Warnings = []string{"The domain has no configuration."}
		one.result.Duration = time.Since(one.began)
		return nil
	}
	now, err := s.store.Get(ctx, d.Tenant, d.ID)
	if err != nil {
		return err
	}
	if string(now.Config) != string(d.Config) || now.Sealed != d.Sealed || now.Type != d.Type {
		return errs.New(errs.Conflict, "The configuration of the domain %s was changed meanwhile. Scan again.", d.ID)
	}
	if err := now.IDs.fits(d.ID, one.ids); err != nil { // a login has set them meanwhile
		return err
	}
	one.result.Report, err = s.o.Directories.Sync(ctx, d.Tenant, d.ID, one.found, SyncOptions{
		Source: d.Type, Force: o.Force, DryRun: o.DryRun,
		Progress: func(done, total int) {
			one.run.Written, one.run.Total = done, total
			one.show()
		},
	})
	if err != nil {
		return err
	}
	one.found = Snapshot{}
	one.result.Duration = time.Since(one.began)
	if o.DryRun {
		return nil
	}
	if err := s.setIDs(ctx, d, one.ids); err != nil {
		return err
	}
	at := s.clock.Stamp()
	one.result.ScannedAt = &at
	if err := s.store.SetScanned(ctx, d.Tenant, d.ID, at); err != nil {
		return err
	}
	return s.o.Feed.Announce(ctx, d.Tenant, entity.ActionScan, entity.Key{Kind: Kind, ID: d.ID})
}

// settleTime is how long the note of a scan that begins or has ended may take, also after its
// caller has gone.
const settleTime = 10 * time.Second

// end notes how the scan ended; at is the domain that failed, "" for all. What cannot be noted
// counts as dead after a while.
func (one *scanning) end(ctx context.Context, at string, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	now := one.s.clock.Stamp()
	one.run.Phase, one.run.FinishedAt, one.run.HeardAt = Done, &now, now
	if failure != nil {
		one.run.Phase, one.run.Error = Failed, errs.MessageOf(failure)
		switch {
		case at != "" && at != one.domain.ID:
			one.run.Error = "Nothing was written: the scan of the domain " + at + " failed."
		case one.run.Error == "":
			one.run.Error = "The scan was broken off."
		}
	}
	_ = one.s.store.UpdateScan(ctx, one.domain.Tenant, one.domain.ID, one.run)
	one.s.mu.Lock()
	defer one.s.mu.Unlock()
	if at := (place{one.domain.Tenant, one.domain.ID}); one.s.running[at] == one { // no other scan has taken its place
		delete(one.s.running, at)
	}
}
