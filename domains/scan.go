package domains

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
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

// ScanState is the scan of one domain that runs, or ran last.
type ScanState struct {
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

// silence is after how long a scan of which nothing was heard counts as dead: its process has
// ended. While it writes, the row itself is locked.
const silence = 5 * time.Minute

// live reports whether a scan runs.
func (r ScanState) live(now time.Time) bool {
	return r.ID != "" && r.FinishedAt == nil && now.Sub(r.HeardAt) < silence
}

// ScanOptions say how to scan.
type ScanOptions struct {
	Domain string // of the driver's; "" for all
	Force  bool   // also when many users would be disabled, or memberships removed
	DryRun bool   // report, and write nothing

	scheduled bool // by the queue
}

// Scanned is what a scan did to one domain.
type Scanned struct {
	ID        string
	ScannedAt *time.Time // of the domain; a dry run leaves it
	Report
	Duration time.Duration
}

// Scan reads the directories of all of the tenant's domains with a driver and makes their users and
// teams what those say: see dirsync.Service.Sync. All directories are read before anything is
// written, and what is written is one transaction. A scan of other domains of the tenant in this
// process is waited for. It ends with ctx. It needs a superuser.
//
// Errors: errs.Forbidden; errs.NotFound for the driver; errs.Invalid when it cannot scan, or has no
// domain with the id of o.Domain; errs.Conflict while another scan of one of the domains runs, and,
// with the counts, when too many users would be disabled, or memberships removed, and neither
// o.Force nor o.DryRun is set; errs.Upstream when a directory cannot be read, not within 30
// minutes, or has more than this service keeps in memory; errs.Unavailable while two other tenants
// scan in this process, or one whose directories are slow and those of this tenant are, too.
// Nothing is written then.
func (s *Service) Scan(ctx context.Context, driver string, o ScanOptions) ([]Scanned, error) {
	a, err := actor.Allowed(ctx, actor.Superuser)
	if err != nil {
		return nil, err
	}
	if _, _, ok := s.driver(driver); !ok {
		return nil, errs.New(errs.NotFound, "Domain driver not found.")
	}
	all, err := s.store.All(ctx, a.Tenant, driver)
	if err != nil {
		return nil, err
	}
	if o.Domain != "" {
		all = slices.DeleteFunc(all, func(d Domain) bool { return d.ID != o.Domain })
		if len(all) == 0 {
			return nil, errs.New(errs.Invalid, "domain must be the id of a domain with the driver %s", driver)
		}
	}
	return s.scan(ctx, a.Tenant, driver, all, o)
}

// ScanDomain is like Scan for one domain. Errors: as Scan; errs.NotFound for the domain.
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
	return s.scan(ctx, a.Tenant, d.Type, []Domain{d}, o)
}

// ScanState returns the scan of a domain that runs, or ran last. It needs a superuser. A scan whose
// process has ended shows as failed. Errors: errs.Forbidden; errs.NotFound.
func (s *Service) ScanState(ctx context.Context, id string) (ScanState, error) {
	a, err := actor.Allowed(ctx, actor.SuperuserRead)
	if err != nil {
		return ScanState{}, err
	}
	if _, err := s.get(ctx, a.Tenant, id); err != nil {
		return ScanState{}, err
	}
	return s.state(ctx, a.Tenant, id)
}

func (s *Service) state(ctx context.Context, tenant, id string) (ScanState, error) {
	s.mu.Lock()
	mine := s.running[place{tenant, id}]
	var run ScanState
	if mine != nil {
		run = mine.shown
	}
	s.mu.Unlock()
	if mine != nil {
		run.HeardAt = s.clock.Stamp()
		return run, nil
	}
	run, err := s.store.LastScan(ctx, tenant, id)
	if err == nil && run.ID != "" && run.FinishedAt == nil && !run.live(s.clock.Now()) {
		run.Phase, run.FinishedAt, run.Error = Failed, &run.HeardAt, "The process that scanned has ended."
	}
	return run, err
}
