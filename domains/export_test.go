package domains

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Hurry shortens how long a login waits for its place and for a directory, and how long a scan may
// read and is silent.
func (s *Service) Hurry(wait, check, read, beat time.Duration) {
	s.limits.wait, s.checkTime, s.limits.read, s.limits.beat = wait, check, read, beat
}

// Slow sets from when on directories count as slow.
func (s *Service) Slow(slow time.Duration) { s.limits.slow = slow }

// Waiting returns the number of tenants at whose domains somebody logs in.
func (s *Service) Waiting() int { return s.places.logins.Keys() + s.places.domain.Keys() }

// Queued returns the number of logins that wait for a place at their domain.
func (s *Service) Queued() int { return s.places.domain.Waiting() }

// Crowd takes some places at a domain.
func (s *Service) Crowd(ctx context.Context, tenant, domain string, n int) (leave func(), err error) {
	var all []func()
	for range n {
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

// Scanning is the scan of one domain.
type Scanning = scanning

// BeginScan begins one, whatever else runs.
func (s *Service) BeginScan(ctx context.Context, d Domain) (*Scanning, error) {
	return s.beginScan(ctx, d, ScanOptions{})
}

// Beat shows how far the scan is, here and to other processes.
func (one *Scanning) Beat(ctx context.Context) error {
	one.show()
	return one.note(ctx)
}

// End ends it.
func (one *Scanning) End(ctx context.Context) { one.end(ctx, "", nil) }

// KeepRealms keeps realms, each twice, whose settings have so many bytes, and returns how many are
// kept then, and their bytes.
func KeepRealms(n, bytes int) (kept, all int) {
	r := realms{opened: map[place]opened{}}
	for i := range 2 * n {
		r.keep(place{"acme", strconv.Itoa(i / 2)}, opened{of: settings{config: strings.Repeat("x", bytes)}})
	}
	return len(r.opened), r.bytes
}

// MaxTexts is how much a scan keeps.
const MaxTexts = maxTexts

// Lookup returns what the Service shares with it.
func (s *Service) Lookup() Lookup { return Lookup{s.lookup} }
