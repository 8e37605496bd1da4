package domains

import (
	"sync"

	"github.com/tenantcontent/tenantcontent/errs"
)

// realms caches opened realms, so that what one has fetched, such as a provider's keys, serves the next login.
type realms struct {
	mu     sync.Mutex
	opened map[place]opened
	bytes  int // of all settings
}

type opened struct {
	of    settings
	realm Realm
}

// settings are what a realm was opened with.
type settings struct{ driver, config, sealed string }

func (s settings) bytes() int { return len(s.driver) + len(s.config) + len(s.sealed) }

// The size of the cache. A realm takes a few times the bytes of its settings.
const (
	maxRealms     = 1000
	maxRealmBytes = 16 << 20
)

// at returns the realm of a domain with these settings.
func (r *realms) at(domain place, of settings) (Realm, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.opened[domain]
	return o.realm, ok && o.of == of
}

// keep adds a realm, and removes others if there are too many.
func (r *realms) keep(domain place, o opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(domain)
	for other := range r.opened { // in no order
		if len(r.opened) < maxRealms && r.bytes+o.of.bytes() <= maxRealmBytes {
			break
		}
		r.forget(other)
	}
	r.opened[domain] = o
	r.bytes += o.of.bytes()
}

func (r *realms) forget(domain place) {
	r.bytes -= r.opened[domain].of.bytes()
	delete(r.opened, domain)
}

// open returns a domain's realm, from the cache if its configuration has not changed. It returns errs.Invalid if it has no
// configuration, or one that its driver refuses.
func (s *Service) open(d Domain) (Realm, error) {
	realm, err := s.realm(d)
	if err == nil {
		s.realms.keep(place{d.Tenant, d.ID}, opened{d.settings(), realm})
	}
	return realm, err
}

func (d Domain) settings() settings { return settings{d.Type, string(d.Config), d.Sealed} }

// realm is open for a look: it adds nothing to the cache, from which strangers could displace the realms of others.
func (s *Service) realm(d Domain) (Realm, error) {
	if realm, ok := s.realms.at(place{d.Tenant, d.ID}, d.settings()); ok {
		return realm, nil
	}
	_, driver, ok := s.driver(d.Type)
	if !ok {
		return nil, errs.New(errs.Invalid, "The domain %s has the type %s, which is not known here.", d.ID, d.Type)
	}
	if d.Config == nil {
		return nil, errs.New(errs.Invalid, "The domain %s has no configuration.", d.ID)
	}
	secrets, err := s.secrets(d)
	if err != nil {
		return nil, err
	}
	whole, err := together(d.Config, secrets)
	if err != nil {
		return nil, err
	}
	realm, err := driver.Open(whole)
	return realm, inConfig(err)
}
