package domains

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
	"github.com/tenantcontent/tenantcontent/internal/fold"
)

// The place that a domain's secrets are sealed for; the row is its id.
const (
	secretsTable  = "tc_domains"
	secretsColumn = "secrets"
)

// members are those of a JSON object.
type members = map[string]json.RawMessage

// configure merges a configuration that was given into a domain's: a secret that is masked or left out keeps the stored
// one, an empty one or null goes. It checks the result with the driver. nil or null is none at all, also no secret.
func (s *Service) configure(d *Domain, info Info, driver Driver, given json.RawMessage) error {
	if given = bytes.TrimSpace(given); len(given) == 0 || string(given) == "null" {
		d.Config, d.Sealed = nil, ""
		return nil
	}
	open, err := readConfig(given, info.Secrets)
	if err != nil {
		return err
	}
	if err := info.knows(open); err != nil {
		return err
	}
	stored, err := s.secrets(*d)
	if err != nil {
		return err
	}
	secrets := members{}
	for _, name := range info.Secrets {
		value, there := open[name]
		switch {
		case !there || string(value) == `"`+Mask+`"`:
			if stored[name] != nil {
				secrets[name] = stored[name]
			}
		case string(value) != "null" && string(value) != `""`:
			secrets[name] = value
		}
		delete(open, name)
	}
	if d.Config, err = json.Marshal(open); err != nil {
		return err
	}
	whole, err := together(d.Config, secrets)
	if err != nil {
		return err
	}
	if _, err := driver.Open(whole); err != nil {
		return inConfig(err)
	}
	return s.seal(d, secrets)
}

// readConfig reads a configuration. A member that differs from a secret's name in case alone is refused: a driver may
// read it as the secret, and nobody would mask it.
func readConfig(given json.RawMessage, secret []string) (members, error) {
	if len(given) > maxConfig {
		return nil, errs.New(errs.Invalid, "config must have at most %d bytes", maxConfig)
	}
	var open members
	if err := json.Unmarshal(given, &open); err != nil || open == nil || escapes.Bad(given) {
		return nil, errs.New(errs.Invalid, "config must be a JSON object of text that a database can keep")
	}
	for name := range open {
		for _, s := range secret {
			if name != s && fold.Text(name) == fold.Text(s) {
				return nil, errs.New(errs.Invalid, "config.%s must be written %s", name, s)
			}
		}
	}
	return open, nil
}

// knows refuses what a configuration may not have.
func (i Info) knows(open members) error {
	if i.Members == nil {
		return nil
	}
	for name, value := range open {
		if !slices.Contains(i.Members, name) {
			return errs.New(errs.Invalid, "config.%s is not known: the driver %s has %s", short(name), i.ID, strings.Join(top(i.Members), ", "))
		}
		var inner members
		if !slices.ContainsFunc(i.Members, func(m string) bool { return strings.HasPrefix(m, name+".") }) || json.Unmarshal(value, &inner) != nil {
			continue // nothing is said of its members, or it has none: the driver looks at it
		}
		for member := range inner {
			if !slices.Contains(i.Members, name+"."+member) {
				return errs.New(errs.Invalid, "config.%s.%s is not known", name, short(member))
			}
		}
	}
	return nil
}

// top gives the members that are in no other one.
func top(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(m string) bool { return strings.Contains(m, ".") })
}

// short keeps a message short.
func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// inConfig makes a driver's complaint about a member one about the domain's.
func inConfig(err error) error {
	var e *errs.Error
	if errors.As(err, &e) && e.Code == errs.Invalid {
		return errs.Wrap(errs.Invalid, e.Cause, "config.%s", e.Message)
	}
	return err
}

func (s *Service) seal(d *Domain, secrets members) error {
	if d.Sealed = ""; len(secrets) == 0 {
		return nil
	}
	plain, err := json.Marshal(secrets)
	if err != nil {
		return err
	}
	d.Sealed, err = s.o.Keys.Seal(d.Tenant, secretsTable, secretsColumn, d.ID, plain)
	return err
}

func (s *Service) secrets(d Domain) (members, error) {
	if d.Sealed == "" {
		return nil, nil
	}
	plain, err := s.o.Keys.Open(d.Tenant, secretsTable, secretsColumn, d.ID, d.Sealed)
	if err != nil {
		return nil, err
	}
	var secrets members
	err = json.Unmarshal(plain, &secrets)
	return secrets, err
}

// together adds members to a JSON object.
func together(object json.RawMessage, more members) (json.RawMessage, error) {
	var all members
	if err := json.Unmarshal(object, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, more)
	return json.Marshal(all)
}

// masked gives a domain as anybody may see it. All secrets of the driver are masked where there is any: which of them
// are set is sealed, too.
func (s *Service) masked(d Domain) Domain {
	if d.Sealed != "" {
		more := members{}
		info, _ := s.Info(d.Type)
		for _, name := range info.Secrets {
			more[name] = json.RawMessage(`"` + Mask + `"`)
		}
		if config, err := together(d.Config, more); err == nil { // it was written by configure
			d.Config = config
		}
	}
	d.Sealed = ""
	return d
}

// withoutQueries gives a masked domain as those may see it who may not change it: an address in its configuration may
// have a key in its query.
func withoutQueries(d Domain) Domain {
	var all members
	if d.Config == nil || json.Unmarshal(d.Config, &all) != nil {
		return d
	}
	for name, value := range all {
		var address string
		if json.Unmarshal(value, &address) == nil && strings.Contains(address, "://") {
			before, _, _ := strings.Cut(address, "?")
			all[name], _ = json.Marshal(before)
		}
	}
	d.Config, _ = json.Marshal(all) // which has just been read
	return d
}

// realms keeps opened realms, so that what one has learned, such as a provider's keys, serves the next login.
type realms struct {
	mu     sync.Mutex
	opened map[place]opened
}

type opened struct {
	of    settings
	realm Realm
}

// settings are what a realm was opened with.
type settings struct{ driver, config, sealed string }

// maxRealms bounds the realms in memory.
const maxRealms = 1000

// open gives a domain's realm, the one of the last time where its configuration is the same. Errors: errs.Invalid when it
// has none, or one that its driver refuses.
func (s *Service) open(d Domain) (Realm, error) {
	at := place{d.Tenant, d.ID}
	want := settings{d.Type, string(d.Config), d.Sealed}
	s.realms.mu.Lock()
	o, ok := s.realms.opened[at]
	s.realms.mu.Unlock()
	if ok && o.of == want {
		return o.realm, nil
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
	if err != nil {
		return nil, inConfig(err)
	}
	s.realms.mu.Lock()
	defer s.realms.mu.Unlock()
	if len(s.realms.opened) >= maxRealms {
		clear(s.realms.opened)
	}
	s.realms.opened[at] = opened{want, realm}
	return realm, nil
}
