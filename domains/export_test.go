package domains

import (
	"context"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/turns"
)

// Hurry shortens how long a login waits for its place and for a directory, and how long a scan may read and is silent.
func (s *Service) Hurry(wait, check, read, beat time.Duration) {
	s.asking = turns.New[place](maxAskingAt, maxAsking, wait)
	s.limits.check, s.limits.read, s.limits.beat = check, read, beat
}

// Waiting gives the number of domains at which somebody logs in.
func (s *Service) Waiting() int { return s.asking.Keys() }

// Crowd takes all places at a domain.
func (s *Service) Crowd(ctx context.Context, tenant, domain string) (leave func(), err error) {
	var all []func()
	for range maxAskingAt {
		leave, err := s.takePlace(ctx, place{tenant, domain})
		if err != nil {
			return nil, err
		}
		all = append(all, leave)
	}
	return func() {
		for _, leave := range all {
			leave()
		}
	}, nil
}

// MaxTexts is how much a scan keeps.
const MaxTexts = maxTexts
