package domains

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// How many logins of one process use directories and providers at once.
const (
	maxAsking   = 64
	maxAskingOf = 12 // of one tenant, so that none takes the places of all
	maxAskingAt = 8  // at one domain: a directory that hangs holds up its own people alone

	maxWait = 30 * time.Second // for a place, long enough for a thousand logins at once
)

// How many scans of one process run at once, as each has directories in memory. Others are refused
// at once.
const (
	maxScans   = 2
	maxScansOf = 1 // of one tenant
	// of tenants whose directories were slow the last time, so that these never have all places
	maxSlow = maxScans - 1

	slowRead = time.Minute // directories that are read for longer are slow
)

// How many domains are saved or tried out at once in one process. They do not take the places of
// logins, which are full when somebody mends the configuration of a directory that hangs.
const (
	maxTrials   = 16
	maxTrialsOf = 3 // of one tenant
)

// places are the limiters of logins and scans.
type places struct {
	// of logins, by domain and client network, so that no network keeps the others waiting there
	domain *limiter.Limiter
	logins *limiter.Limiter // by tenant and domain
	scanOf *limiter.Limiter // of scans, by tenant
	scan   *limiter.Limiter // of all scans
	slow   *limiter.Limiter // of those that are slow

	learnFrom *limiter.Limiter // of callers of Ways, by client network
	learn     *limiter.Limiter // by tenant, in turn by client network
}

func newPlaces(observer entity.Observer) places {
	return places{
		domain: limiter.New(limiter.Options{
			PerKey: maxAskingAt, FairSubkeys: true, Timeout: maxWait, Observer: observer, Kind: "directory",
		}),
		logins: limiter.New(limiter.Options{
			Observer: observer, Kind: "directory",
			Capacity:  maxAsking,
			PerKey:    maxAskingOf,
			PerSubkey: maxAskingAt,
			Timeout:   maxWait,
		}),
		scanOf: limiter.New(limiter.Options{PerKey: maxScansOf, Observer: observer, Kind: "scan"}),
		scan:   limiter.New(limiter.Options{Capacity: maxScans, Observer: observer, Kind: "scan"}),
		slow:   limiter.New(limiter.Options{Capacity: maxSlow}),

		learnFrom: limiter.New(limiter.Options{PerKey: maxLearningFrom}),
		learn:     limiter.New(limiter.Options{Capacity: maxLearning, PerKey: 1, FairSubkeys: true, Timeout: maxLearn}),
	}
}

// takePlace waits for a place for a login at a domain, in turn by client network, and then by
// tenant.
// Errors: errs.Unavailable.
func (s *Service) takePlace(ctx context.Context, at place) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.wait, limiter.ErrBusy)
	defer cancel()
	const busy = "Too many people log in at this domain, or in this tenant, at the moment. Try again."
	// a tenant's id has no slash
	here, err := s.places.domain.Acquire(ctx, 1, at.tenant+"/"+at.domain, actor.OriginOf(ctx).Network())
	if err != nil {
		return nil, limiter.Unavailable(err, busy)
	}
	there, err := s.places.logins.Acquire(ctx, 1, at.tenant, at.domain)
	if err != nil {
		here()
		return nil, limiter.Unavailable(err, busy)
	}
	return func() {
		there()
		here()
	}, nil
}

// takeScan takes the place of a scan of some domains. One of other domains of the tenant is waited
// for, but not by a schedule, which comes again. Errors: errs.Conflict while one of the domains is
// scanned, and for a schedule while another one of the tenant is; errs.Unavailable.
func (s *Service) takeScan(
	ctx context.Context, tenant string, some []Domain, scheduled bool,
) (leave func(), err error) {
	own, err := s.places.scanOf.Acquire(ctx, 1, tenant)
	for !scheduled && errors.Is(err, limiter.ErrBusy) {
		if at := slices.IndexFunc(some, func(d Domain) bool { return s.scans(place{tenant, d.ID}) }); at >= 0 {
			return nil, errs.New(
				errs.Conflict, "The domain %s is being scanned already: see /api/domains/%s/scan.", some[at].ID,
				some[at].ID,
			)
		}
		select {
		case <-time.After(turnOfScan):
			own, err = s.places.scanOf.Acquire(ctx, 1, tenant)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if errors.Is(err, limiter.ErrBusy) {
		err = errs.New(
			errs.Conflict, "A domain of this tenant is being scanned already. Try again when that has ended.",
		)
	}
	if err != nil {
		return nil, err
	}
	slow := func() {}
	if s.isSlow(tenant) {
		if slow, err = s.places.slow.Acquire(ctx, 1); err != nil {
			own()
			return nil, limiter.Unavailable(
				err,
				"The directories of this tenant are slow, and those of another one that are slow, too, are being "+
					"scanned. Try again later.",
			)
		}
	}
	all, err := s.places.scan.Acquire(ctx, 1)
	if err != nil {
		slow()
		own()
		return nil, limiter.Unavailable(err, "Two scans of other tenants run already. Try again later.")
	}
	return func() {
		all()
		slow()
		own()
	}, nil
}

// turnOfScan is how often a scan that waits for another one looks whether that has ended.
const turnOfScan = 100 * time.Millisecond

// scans reports whether this process scans a domain.
func (s *Service) scans(at place) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[at] != nil
}

// isSlow reports whether reading the directories of a tenant took long the last time in this
// process.
func (s *Service) isSlow(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow[tenant]
}

// noteRead notes how long that took.
func (s *Service) noteRead(tenant string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if took > s.limits.slow {
		s.slow[tenant] = true
	} else {
		delete(s.slow, tenant)
	}
}
