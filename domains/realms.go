package domains

import (
	"sync"

	"github.com/tenantcontent/tenantcontent/errs"
)

// realms caches opened realms, so that what one has fetched, such as a provider's keys, serves the
// next login.
type realms struct {
	mu     sync.Mutex
	opened map[place]opened
	bytes  int // of all settings
}

type opened struct {
	of    settings
	realm Realm
	rules rules
}

// settings are what a realm was opened with.
type settings struct {
	driver, config, sealed, keys string
	ids                          IDAttributes
}

func (s settings) bytes() int { return len(s.driver) + len(s.config) + len(s.sealed) + len(s.keys) }

// The size of the cache. A realm takes a few times the bytes of its settings.
const (
	maxRealms     = 1000
	maxRealmBytes = 16 << 20
)

// at returns what is kept of a domain with these settings.
func (r *realms) at(domain place, of settings) (opened, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.opened[domain]
	return o, ok && o.of == of
}

// keep adds a realm unless one with its settings is there, and returns the one that is kept: all
// callers share what it knows.
func (r *realms) keep(domain place, o opened) opened {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.opened[domain]; ok && was.of == o.of {
		return was
	}
	r.put(domain, o)
	return o
}

// replace adds a realm in place of another one.
func (r *realms) replace(domain place, o opened) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(domain, o)
}

// put adds a realm, and removes others if there are too many.
func (r *realms) put(domain place, o opened) {
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

// open returns a domain's realm, from the cache if its configuration has not changed. It returns
// errs.Invalid if it has no configuration, or one that its driver refuses.
func (l *lookup) open(d Domain) (Realm, error) {
	o, err := l.openWithRules(d)
	return o.realm, err
}

// openWithRules is open that returns the rules, too.
func (l *lookup) openWithRules(d Domain) (opened, error) {
	o, err := l.look(d)
	if err == nil {
		o = l.realms.keep(place{d.Tenant, d.ID}, o)
	}
	return o, err
}

func (d Domain) settings() settings {
	return settings{d.Type, string(d.Config), d.Sealed, d.SealedKeys, d.IDs}
}

// realm is open for a look: it adds nothing to the cache, from which strangers could displace the
// realms of others.
func (l *lookup) realm(d Domain) (Realm, error) {
	o, err := l.look(d)
	return o.realm, err
}

func (l *lookup) look(d Domain) (opened, error) {
	if o, ok := l.realms.at(place{d.Tenant, d.ID}, d.settings()); ok {
		return o, nil
	}
	info, driver, ok := l.driver(d.Type)
	if !ok {
		return opened{}, errs.New(errs.Invalid, "The domain %s has the type %s, which is not known here.", d.ID, d.Type)
	}
	if d.Config == nil {
		return opened{}, errs.New(errs.Invalid, "The domain %s has no configuration.", d.ID)
	}
	secrets, err := l.secrets(d)
	if err != nil {
		return opened{}, err
	}
	whole, err := together(d.Config, secrets)
	if err != nil {
		return opened{}, err
	}
	o := opened{of: d.settings()}
	if o.realm, err = l.openWith(d, driver, whole); err == nil {
		o.rules, err = readRules(info, d.Config)
	}
	if err != nil {
		return opened{}, inConfig(err)
	}
	return o, nil
}
