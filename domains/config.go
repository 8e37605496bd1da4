package domains

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// The table and column that a domain's secrets are sealed for; the row is its id.
const (
	secretsTable  = "tc_domains"
	secretsColumn = "secrets"
)

// members are those of a JSON object.
type members = map[string]json.RawMessage

// change is a configuration that was given, with the stored secrets that it keeps.
type change struct {
	config  json.RawMessage // without the secrets; nil for none
	secrets members
	realm   Realm // nil without a configuration
	rules   rules
	is      bool // it differs from the stored one
	sent    bool // a secret was sent, perhaps the stored one

	schedule string // that of the stored one
}

// same reports whether two changes are to the same configuration.
func (c change) same(other change) bool {
	return bytes.Equal(c.config, other.config) && sameSecrets(c.secrets, other.secrets)
}

// stays reports whether a domain keeps the configuration and secrets that are stored.
func (c change) stays(d, was Domain, stored members) bool {
	return was.Type == d.Type && bytes.Equal(was.Config, c.config) && sameSecrets(stored, c.secrets)
}

func sameSecrets(a, b members) bool {
	return maps.EqualFunc(a, b, func(one, other json.RawMessage) bool { return bytes.Equal(one, other) })
}

// configure replaces a domain's configuration by the given one. A secret that is masked or left out
// keeps its stored value, an empty one or null removes it. A mask is refused if no secret is
// stored, and if the stored one would be sent to another server than before. configure checks the
// result with the driver. A given configuration of nil or null removes it all, with its secrets.
// was is the stored domain.
func (s *Service) configure(d *Domain, was Domain, info Info, driver Driver, given json.RawMessage) (change, error) {
	c, stored, err := s.merge(d, was, info, driver, given)
	if err == nil {
		err = inConfig(c.rules.acceptSchedule(s.clock.Stamp()))
	}
	if err != nil {
		return change{}, err
	}
	c.schedule = s.schedule(was)
	if c.is = !c.stays(*d, was, stored); !c.is {
		return c, nil // also what is sealed stays
	}
	d.Config = c.config
	return c, s.seal(d, c.secrets)
}

// merge returns what configure stores, and the secrets that are stored now.
func (s *Service) merge(
	d *Domain, was Domain, info Info, driver Driver, given json.RawMessage,
) (c change, stored members, err error) {
	if given = bytes.TrimSpace(given); len(given) == 0 || string(given) == "null" {
		stored, err = s.secrets(*d)
		if err != nil { // what cannot be read any more can be removed
			stored = members{"": nil}
		}
		return change{}, stored, nil
	}
	open, err := readConfig(given, info.Secrets)
	if err != nil {
		return change{}, nil, err
	}
	if err := info.knows(open); err != nil {
		return change{}, nil, err
	}
	if stored, err = s.secrets(*d); err != nil {
		return change{}, nil, err
	}
	c.secrets = members{}
	var kept []string
	for _, name := range info.Secrets {
		value, there := open[name]
		masked := string(value) == `"`+Mask+`"`
		switch {
		case masked && stored[name] == nil:
			return change{}, nil, errs.New(
				errs.Invalid,
				"config.%s is masked, but there is none to keep: send the secret itself, or leave it out", name,
			)
		case !there || masked:
			if stored[name] != nil {
				c.secrets[name] = stored[name]
				kept = append(kept, name)
			}
		case string(value) != "null" && string(value) != `""`:
			c.secrets[name], c.sent = value, true
		}
		delete(open, name)
	}
	if c.config, err = json.Marshal(open); err != nil {
		return change{}, nil, err
	}
	whole, err := together(c.config, c.secrets)
	if err != nil {
		return change{}, nil, err
	}
	if c.realm, err = s.openWith(*d, driver, whole); err != nil {
		return change{}, nil, inConfig(err)
	}
	if c.rules, err = readRules(info, c.config); err != nil {
		return change{}, nil, inConfig(err)
	}
	if len(kept) > 0 {
		now := *d
		now.Config = c.config
		if err := s.staysWhereItWas(was, now, c.realm, driver, kept, c.secrets); err != nil {
			return change{}, nil, err
		}
	}
	return c, stored, nil
}

// staysWhereItWas returns errs.Invalid if stored secrets would be sent to another server than
// before. Whoever changes the address must send the secrets again, so that nobody learns them by
// naming a server of their own.
func (s *Service) staysWhereItWas(was, now Domain, realm Realm, driver Driver, kept []string, secrets members) error {
	if was.Type == now.Type && sameJSON(was.Config, now.Config) {
		return nil
	}
	by, does := redirected(was, now), "may change"
	if sender, ok := realm.(SecretSender); ok {
		by, does = "the configuration", "changes"
		if before, err := s.open(was); err == nil {
			by = sender.Redirects(before)
		}
	}
	if by == "" {
		return nil
	}
	if by != "the configuration" && by != "type" {
		by = "config." + by
	}
	without := maps.Clone(secrets)
	delete(without, kept[0])
	drop := ""
	if whole, err := together(now.Config, without); err == nil {
		if _, err := driver.Open(whole); err == nil {
			drop = ", or null to drop it"
		}
	}
	return errs.New(errs.Invalid, "config.%s must be sent again%s: %s %s where it is sent", kept[0], drop, by, does)
}

// sameJSON reports whether two configurations have the same members.
func sameJSON(a, b json.RawMessage) bool {
	var one, other any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &other) == nil && reflect.DeepEqual(one, other)
}

// redirected returns the first member of a configuration that is not the same as before, "type" for
// another driver, and "" for none. It compares all members of drivers, as only a driver knows which
// of them name the server that its secrets are sent to.
func redirected(was, now Domain) string {
	if was.Type != now.Type {
		return "type"
	}
	var before, after members
	_, _ = json.Unmarshal(was.Config, &before), json.Unmarshal(now.Config, &after) // each is an object, or none
	names := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range names {
		if !sameJSON(before[name], after[name]) && !slices.Contains(signInMembers, name) && name != hiddenMember &&
			name != scheduleMember {
			return name
		}
	}
	return ""
}

// SameServer returns the canonical form of an address: scheme and host in lower case, with the
// default port of the scheme, and without a dot behind the host and a slash behind the path. ports
// has the default ports of the schemes. Drivers compare addresses by this form.
func SameServer(address string, ports map[string]string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil {
		return address
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	return scheme + "://" + net.JoinHostPort(
		host, cmp.Or(u.Port(), ports[scheme]),
	) + strings.TrimRight(u.EscapedPath(), "/")
}

// readConfig reads a configuration. It refuses a member that differs from a secret's name in case
// alone: a driver may read it as the secret, but it would not be masked.
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

// knows returns errs.Invalid for a member that a configuration may not have.
func (i Info) knows(open members) error {
	if i.Members == nil {
		return nil
	}
	for name, value := range open {
		if !slices.Contains(i.Members, name) {
			return errs.New(
				errs.Invalid, "config.%s is not known: the driver %s has %s", short(name), i.ID,
				cmp.Or(strings.Join(top(i.Members), ", "), "none"),
			)
		}
		var inner members
		if !slices.ContainsFunc(i.Members, func(m string) bool {
			return strings.HasPrefix(m, name+".")
		}) || json.Unmarshal(value, &inner) != nil {
			continue // Members does not list its members, or it has none: the driver checks it
		}
		for member := range inner {
			if !slices.Contains(i.Members, name+"."+member) {
				return errs.New(errs.Invalid, "config.%s.%s is not known", name, short(member))
			}
		}
	}
	return nil
}

// top returns the names of members at the top level.
func top(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(m string) bool { return strings.Contains(m, ".") })
}

// short shortens a name for a message.
func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// inConfig prefixes the member in a driver's error with "config.".
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
	d.Sealed, err = s.sealer.Seal(d.Tenant, secretsTable, secretsColumn, d.ID, plain)
	return err
}

func (l *lookup) secrets(d Domain) (members, error) {
	if d.Sealed == "" {
		return nil, nil
	}
	plain, err := l.sealer.Open(d.Tenant, secretsTable, secretsColumn, d.ID, d.Sealed)
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

// masked returns a domain with a mask for each stored secret, or for all secrets of the driver if
// the key does not open them.
func (s *Service) masked(d Domain) Domain {
	if d.Sealed != "" {
		more := members{}
		info, _ := s.info(d.Type)
		stored, err := s.secrets(d)
		for _, name := range info.Secrets {
			if err != nil || stored[name] != nil {
				more[name] = json.RawMessage(`"` + Mask + `"`)
			}
		}
		if config, err := together(d.Config, more); err == nil { // it was written by configure
			d.Config = config
		}
	}
	d.Sealed, d.SealedKeys = "", ""
	return d
}

// isAddress matches a text that a driver may read as an address, not a document with addresses in
// it.
var isAddress = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*://`)

// withoutQueries returns a masked domain as it is shown to callers who may not change it: an
// address in its configuration may have a key in its query.
func withoutQueries(d Domain) Domain {
	var all members
	if d.Config == nil || json.Unmarshal(d.Config, &all) != nil {
		return d
	}
	for name, value := range all {
		var address string
		if json.Unmarshal(value, &address) == nil && isAddress.MatchString(address) {
			before, _, _ := strings.Cut(address, "?")
			all[name], _ = json.Marshal(before)
		}
	}
	d.Config, _ = json.Marshal(all) // which has just been read
	return d
}
