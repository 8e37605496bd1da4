package domains

import (
	"context"
	"errors"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/turns"
)

// How many logins of one process ask directories and providers at once.
const (
	maxAsking   = 64
	maxAskingOf = 12 // of one tenant, so that none takes the places of all
	maxAskingAt = 8  // at one domain: a directory that hangs holds up its own people alone

	maxWait = 30 * time.Second // for a place: a thousand people at once all get in, one after the other
)

// How many scans of one process run at once: each has directories in memory. What is too many is refused at once.
const (
	maxScans   = 2
	maxScansOf = 1 // of one tenant
)

// places are those of the logins and the scans.
type places struct {
	at     *turns.Turns[place]  // of logins at a domain
	of     *turns.Turns[string] // of these, of a tenant
	scanOf *turns.Turns[string] // of scans of a tenant
	scan   chan struct{}        // of all scans
}

func newPlaces() places {
	return places{
		at: turns.New[place](maxAskingAt, 0, maxWait), of: turns.New[string](maxAskingOf, maxAsking, maxWait),
		scanOf: turns.New[string](maxScansOf, 0, 0), scan: make(chan struct{}, maxScans),
	}
}

// takePlace waits for a place among those who log in at a domain. Errors: errs.Unavailable.
func (s *Service) takePlace(ctx context.Context, at place) (leave func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.wait, turns.ErrLate)
	defer cancel()
	defer func() {
		err = turns.Busy(err, "Too many people log in at this domain, or in this tenant, at the moment. Try again.")
	}()
	here, err := s.places.at.Take(ctx, at)
	if err != nil {
		return nil, err
	}
	there, err := s.places.of.Take(ctx, at.tenant)
	if err != nil {
		here()
		return nil, err
	}
	return func() {
		there()
		here()
	}, nil
}

// takeScan takes the place of a scan. Errors: errs.Conflict while another one of the tenant runs; errs.Unavailable.
func (s *Service) takeScan(ctx context.Context, tenant string) (leave func(), err error) {
	own, err := s.places.scanOf.Take(ctx, tenant)
	if errors.Is(err, turns.ErrLate) {
		err = errs.New(errs.Conflict, "A domain of this tenant is being scanned already. Try again when that has ended.")
	}
	if err != nil {
		return nil, err
	}
	select {
	case s.places.scan <- struct{}{}:
		return func() {
			<-s.places.scan
			own()
		}, nil
	default:
		own()
		return nil, errs.New(errs.Unavailable, "Two scans of other tenants run already. Try again later.")
	}
}
