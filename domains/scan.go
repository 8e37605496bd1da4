package domains

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Phase is how far a scan is.
type Phase string

// The phases. A domain that was never scanned has none.
const (
	Reading Phase = "reading" // from the directory
	Writing Phase = "writing" // users and teams
	Done    Phase = "done"
	Failed  Phase = "failed"
)

// Run is the scan of one domain that runs, or ran last.
type Run struct {
	ID             string
	Phase          Phase
	Users, Groups  int // read so far
	Written, Total int // of what has to be written
	DryRun         bool
	StartedAt      time.Time
	HeardAt        time.Time  // it was alive then
	FinishedAt     *time.Time // nil while it runs
	Error          string     // sentence for people, of a scan that failed
}

// silence is after how long a scan of which nothing was heard counts as dead: its process has ended. While it writes, the
// row itself is locked.
const silence = 5 * time.Minute

// live reports whether a scan runs.
func (r Run) live(now time.Time) bool {
	return r.ID != "" && r.FinishedAt == nil && now.Sub(r.HeardAt) < silence
}

// ScanOptions say how to scan.
type ScanOptions struct {
	Domain string // of the driver's; "" for all
	Force  bool   // also when many users would be disabled
	DryRun bool   // report, and write nothing
}

// Scanned is what a scan did to one domain.
type Scanned struct {
	ID        string
	ScannedAt *time.Time // of the domain; a dry run leaves it
	principals.SyncReport
	Duration time.Duration
}

// Scan reads the directories of all of the tenant's domains with a driver and makes their users and teams what those say:
// see principals.Service.Sync. All directories are read before anything is written, and what is written is one
// transaction. It needs a superuser.
//
// Errors: errs.Forbidden; errs.NotFound for the driver; errs.Invalid when it cannot scan, or has no domain with the id of
// o.Domain; errs.Conflict while another scan of a domain runs, and, with the counts, when too many users would be
// disabled and o.Force is not set; errs.Upstream when a directory cannot be read. Nothing is written then.
func (s *Service) Scan(ctx context.Context, driver string, o ScanOptions) ([]Scanned, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if _, _, ok := s.driver(driver); !ok {
		return nil, errs.New(errs.NotFound, "Domain driver not found.")
	}
	all, err := s.o.Store.All(ctx, a.Tenant)
	if err != nil {
		return nil, err
	}
	var some []Domain
	for _, d := range all {
		if d.Type == driver && (o.Domain == "" || d.ID == o.Domain) {
			some = append(some, d)
		}
	}
	if o.Domain != "" && len(some) == 0 {
		return nil, errs.New(errs.Invalid, "domain must be the id of a domain with the driver %s", driver)
	}
	return s.scan(ctx, driver, some, o)
}

// ScanDomain does as Scan for one domain. Errors: as Scan; errs.NotFound for the domain.
func (s *Service) ScanDomain(ctx context.Context, id string, o ScanOptions) ([]Scanned, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	d, err := s.get(ctx, a.Tenant, id)
	if err != nil {
		return nil, err
	}
	o.Domain = id
	return s.scan(ctx, d.Type, []Domain{d}, o)
}

// ScanState gives the scan of a domain that runs, or ran last. It needs a superuser. A scan whose process has ended
// shows as failed. Errors: errs.Forbidden; errs.NotFound.
func (s *Service) ScanState(ctx context.Context, id string) (Run, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil {
		return Run{}, err
	}
	if _, err := s.get(ctx, a.Tenant, id); err != nil {
		return Run{}, err
	}
	return s.state(ctx, a.Tenant, id)
}

func (s *Service) state(ctx context.Context, tenant, id string) (Run, error) {
	s.mu.Lock()
	mine := s.running[place{tenant, id}]
	var run Run
	if mine != nil {
		run = *mine
	}
	s.mu.Unlock()
	if mine != nil {
		return run, nil
	}
	run, err := s.o.Store.LastScan(ctx, tenant, id)
	if err == nil && run.ID != "" && run.FinishedAt == nil && !run.live(s.o.Now()) {
		run.Phase, run.FinishedAt, run.Error = Failed, &run.HeardAt, "The process that scanned has ended."
	}
	return run, err
}

// scanning is the scan of one domain.
type scanning struct {
	s      *Service
	domain Domain
	run    Run
	from   Directory // nil for a domain without a configuration
	found  principals.Snapshot
	began  time.Time
	said   time.Time // of the last note
	result Scanned
}

func (s *Service) scan(ctx context.Context, driver string, some []Domain, o ScanOptions) (results []Scanned, err error) {
	if info, _, ok := s.driver(driver); ok && info.ScanComponent == nil {
		return nil, errs.New(errs.Invalid, "The driver %s has no directory to scan.", driver)
	}
	var all []*scanning
	defer func() {
		for _, one := range all {
			one.end(ctx, err)
		}
	}()
	for _, d := range some {
		one, err := s.beginScan(ctx, d, o)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	for _, one := range all {
		if err := one.read(ctx); err != nil {
			return nil, err
		}
	}
	err = s.o.Store.InTx(ctx, func(ctx context.Context) error {
		for _, one := range all {
			if err := one.write(ctx, o); err != nil {
				return err
			}
		}
		return nil
	})
	results = []Scanned{}
	for _, one := range all {
		results = append(results, one.result)
	}
	return results, err
}

func (s *Service) beginScan(ctx context.Context, d Domain, o ScanOptions) (*scanning, error) {
	one := &scanning{s: s, domain: d, began: time.Now()}
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
	now := s.stamp()
	one.run = Run{ID: s.o.NewID(), Phase: Reading, DryRun: o.DryRun, StartedAt: now, HeardAt: now}
	if err := s.o.Store.BeginScan(ctx, d.Tenant, d.ID, one.run, now.Add(-silence)); err != nil {
		return nil, err
	}
	one.show()
	return one, nil
}

// show makes the state of the scan readable in this process.
func (one *scanning) show() {
	one.s.mu.Lock()
	defer one.s.mu.Unlock()
	run := one.run
	one.s.running[place{one.domain.Tenant, one.domain.ID}] = &run
}

// beat is how often a scan that reads tells other processes that it lives.
const beat = 5 * time.Second

// tell shows the state here at once, and to other processes from time to time.
func (one *scanning) tell(ctx context.Context) error {
	one.show()
	if time.Since(one.said) < beat {
		return nil
	}
	one.said, one.run.HeardAt = time.Now(), one.s.stamp()
	return one.s.o.Store.NoteScan(ctx, one.domain.Tenant, one.domain.ID, one.run)
}

// maxEntries bounds what a directory may hold.
const maxEntries = 2_000_000

// read takes the whole directory into memory: what is not whole changes nothing.
func (one *scanning) read(ctx context.Context) error {
	if one.from == nil {
		return nil
	}
	for e, err := range one.from.Entries(ctx) {
		if err != nil {
			return err
		}
		if e.Person != nil {
			one.found.People = append(one.found.People, *e.Person)
			one.run.Users++
		}
		if e.Group != nil {
			one.found.Groups = append(one.found.Groups, *e.Group)
			one.run.Groups++
		}
		n := one.run.Users + one.run.Groups
		if n > maxEntries {
			return errs.New(errs.Upstream, "The directory of the domain %s has more than %d entries: narrow its filters.", one.domain.ID, maxEntries)
		}
		if n%100 == 0 {
			if err := one.tell(ctx); err != nil {
				return err
			}
		}
	}
	one.run.Phase, one.run.HeardAt = Writing, one.s.stamp()
	one.show()
	return one.s.o.Store.NoteScan(ctx, one.domain.Tenant, one.domain.ID, one.run)
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
	if err := s.o.Store.HoldScan(ctx, d.Tenant, d.ID, one.run.ID); err != nil {
		return err
	}
	now, err := s.o.Store.Get(ctx, d.Tenant, d.ID)
	if err != nil {
		return err
	}
	if string(now.Config) != string(d.Config) || now.Sealed != d.Sealed || now.Type != d.Type {
		return errs.New(errs.Conflict, "The configuration of the domain %s was changed meanwhile. Scan again.", d.ID)
	}
	one.result.SyncReport, err = s.o.People.Sync(ctx, d.Tenant, d.ID, one.found, principals.SyncOptions{
		Source: d.Type, Force: o.Force, DryRun: o.DryRun,
		Progress: func(done, total int) {
			one.run.Written, one.run.Total = done, total
			one.show()
		},
	})
	if err != nil {
		return err
	}
	one.found = principals.Snapshot{}
	one.result.Duration = time.Since(one.began)
	if o.DryRun {
		return nil
	}
	at := s.stamp()
	one.result.ScannedAt = &at
	return s.o.Store.SetScanned(ctx, d.Tenant, d.ID, at)
}

// settleTime is how long the note of an ended scan may take after its caller has gone.
const settleTime = 10 * time.Second

// end notes how the scan ended. What cannot be noted counts as dead after a while.
func (one *scanning) end(ctx context.Context, failure error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	at := one.s.stamp()
	one.run.Phase, one.run.FinishedAt, one.run.HeardAt = Done, &at, at
	if failure != nil {
		one.run.Phase, one.run.Error = Failed, errs.MessageOf(failure)
		if one.run.Error == "" {
			one.run.Error = "The scan was broken off."
		}
	}
	_ = one.s.o.Store.NoteScan(ctx, one.domain.Tenant, one.domain.ID, one.run)
	one.s.mu.Lock()
	defer one.s.mu.Unlock()
	delete(one.s.running, place{one.domain.Tenant, one.domain.ID})
}
