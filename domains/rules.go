package domains

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// The members of a configuration that this package reads itself, whatever the driver: drivers do
// not know them.
var signInMembers = []string{
	"accounts", "accountsBy", "allow", "allow.groups",
	"allow.domains", "allow.claims", "teams", "teams.create", "teams.map",
}

// hiddenMember is one more of them, of every driver.
const hiddenMember = "hidden"

// redirects is the LoginMethod of a driver whose people log in at a provider.
const redirects = "GET"

// withOwnMembers adds the members to Info.Members that this package reads of the configurations of
// a driver.
func withOwnMembers(i Info) Info {
	if i.Members == nil {
		return i
	}
	i.Members = append(slices.Clone(i.Members), hiddenMember)
	if i.LoginMethod == redirects {
		i.Members = append(i.Members, signInMembers...)
	}
	if i.ScanComponent != nil {
		i.Members = append(i.Members, scheduleMember)
	}
	return i
}

// The bounds of rules.
const (
	maxListed    = 1000 // texts of one list
	maxText      = 1024 // bytes of one
	maxMapped    = 200  // groups of teams.map
	maxOfClaims  = 50   // claims of allow.claims
	maxClaimName = 255  // bytes
)

// Ways to find the account of a person who has logged in at a provider.
const (
	byUsername = "username"
	byEmail    = "email"
	byID       = "id"
)

// rules are the members of a configuration that this package reads. All but Hidden and Schedule are
// of domains whose people log in at a provider. The zero value is that of a configuration without
// them.
type rules struct {
	Hidden bool `json:"hidden"` // log-in pages do not list the domain; of every driver

	Schedule string `json:"schedule"` // when the directory is scanned, "" for never; of directories

	Accounts   string    `json:"accounts"`   // id of the domain whose users log in here, "" for this one
	AccountsBy string    `json:"accountsBy"` // what they are found by
	Allow      allow     `json:"allow"`
	Teams      teamRules `json:"teams"`
}

// allow restricts who may log in. A person must have one of the texts of each member that is not
// nil.
type allow struct {
	Groups  []string         `json:"groups"`
	Domains []string         `json:"domains"` // of verified e-mail addresses, in lower case
	Claims  map[string]texts `json:"claims"`
}

// teamRules map the groups of a person to teams.
type teamRules struct {
	Create *bool        `json:"create"` // false: a group without a team gets none
	Map    []mappedTeam `json:"map"`
}

// mappedTeam is a group whose people join a team that is there already.
type mappedTeam struct {
	Group string `json:"group"`
	Team  string `json:"team"` // id or slug
	Role  string `json:"role"`

	role actor.Role
}

// texts is one text, or a list of texts.
type texts []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *texts) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(t))
}

// readRules reads the rules of a configuration. Errors: errs.Invalid, with a message that begins
// with the member at fault.
func readRules(i Info, config json.RawMessage) (rules, error) {
	var r rules
	if config == nil {
		return r, nil
	}
	var all members
	if err := json.Unmarshal(config, &all); err != nil {
		return r, err
	}
	type member struct {
		name string
		into any
		want string
	}
	own := []member{{hiddenMember, &r.Hidden, "true or false"}}
	signIn := []member{
		{"accounts", &r.Accounts, "the id of a domain"}, {"accountsBy", &r.AccountsBy, "username, email or id"},
		{"allow", &r.Allow, "{groups: [texts], domains: [texts], claims: {name: text or [texts]}}"},
		{"teams", &r.Teams, "{create: true or false, map: [{group, team, role}]}"},
	}
	if i.LoginMethod == redirects {
		own = append(own, signIn...)
	}
	if i.ScanComponent != nil {
		own = append(own, member{scheduleMember, &r.Schedule, "a cron expression"})
	}
	for _, m := range own {
		raw, there := all[m.name]
		if !there {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if err := d.Decode(m.into); err != nil {
			wrong := m.name
			if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
				wrong += "." + e.Field
			}
			return r, errs.Wrap(errs.Invalid, err, "%s is not understood: %s must be %s", wrong, m.name, m.want)
		}
	}
	return r, cmp.Or(r.acceptAccounts(), r.Allow.accept(), r.Teams.accept())
}

func (r *rules) acceptAccounts() error {
	switch {
	case r.Accounts == "" && r.AccountsBy != "":
		return errs.New(errs.Invalid, "accountsBy needs accounts, the domain whose users log in here")
	case r.Accounts == Local:
		return errs.New(
			errs.Invalid, "accounts must not be local: its users log in with passwords of this service alone",
		)
	case r.AccountsBy == "":
		r.AccountsBy = byUsername
	case r.AccountsBy != byUsername && r.AccountsBy != byEmail && r.AccountsBy != byID:
		return errs.New(errs.Invalid, "accountsBy must be username, email or id")
	}
	return nil
}

func (a *allow) accept() error {
	if err := cmp.Or(acceptTexts("allow.groups", a.Groups), acceptTexts("allow.domains", a.Domains)); err != nil {
		return err
	}
	for i, d := range a.Domains {
		if a.Domains[i] = strings.ToLower(d); strings.ContainsAny(d, "@*/ ") || !strings.Contains(d, ".") {
			return errs.New(errs.Invalid, "allow.domains must be domains of e-mail addresses, such as example.com")
		}
	}
	if a.Claims != nil && (len(a.Claims) == 0 || len(a.Claims) > maxOfClaims) {
		return errs.New(errs.Invalid, "allow.claims must have 1 to %d claims", maxOfClaims)
	}
	for name, want := range a.Claims {
		if name == "" || len(name) > maxClaimName {
			return errs.New(errs.Invalid, "allow.claims must have names of 1 to %d bytes", maxClaimName)
		}
		if want == nil {
			return errs.New(errs.Invalid, "allow.claims.%s must be text, or a list of texts", short(name))
		}
		if err := acceptTexts("allow.claims."+short(name), want); err != nil {
			return err
		}
	}
	return nil
}

// acceptTexts checks a list, which may be left out. An empty one would let nobody in.
func acceptTexts(name string, all []string) error {
	if all == nil {
		return nil
	}
	if len(all) == 0 || len(all) > maxListed {
		return errs.New(errs.Invalid, "%s must have 1 to %d texts: leave it out to allow everybody", name, maxListed)
	}
	for _, text := range all {
		if text == "" || len(text) > maxText || !escapes.Storable(text) {
			return errs.New(errs.Invalid, "%s must have texts of 1 to %d bytes", name, maxText)
		}
	}
	return nil
}

func (t *teamRules) accept() error {
	if len(t.Map) > maxMapped {
		return errs.New(errs.Invalid, "teams.map must have at most %d groups", maxMapped)
	}
	for i := range t.Map {
		m := &t.Map[i]
		if m.Group == "" || len(m.Group) > maxText || m.Team == "" || len(m.Team) > maxClaimName ||
			!escapes.Storable(m.Team) {
			return errs.New(
				errs.Invalid,
				"teams.map must have a group and a team, which is there already, in each of its members",
			)
		}
		role, err := actor.ParseRole(cmp.Or(m.Role, actor.Member.String()))
		if err != nil {
			return errs.New(errs.Invalid,
				"teams.map has the role %s of the group %s: it must be member, "+
					"designer, dataWizard, publisher or admin",
				short(m.Role), short(m.Group))
		}
		m.role = role
	}
	return nil
}

// checkRules checks what rules name against the tenant's rows, in the transaction in ctx. Errors:
// errs.Invalid naming the member.
func (s *Service) checkRules(ctx context.Context, d Domain, r rules) error {
	if err := s.checkTeams(ctx, d.Tenant, r.Teams); err != nil || r.Accounts == "" {
		return err
	}
	if r.Accounts == d.ID {
		return errs.New(errs.Invalid, "config.accounts must be another domain, whose users log in here")
	}
	other, err := s.get(ctx, d.Tenant, r.Accounts)
	if errs.CodeOf(err) == errs.NotFound {
		return errs.New(
			errs.Invalid, "config.accounts must be the id of a domain of the tenant, whose users log in here",
		)
	}
	if err != nil {
		return err
	}
	if info, _ := s.info(other.Type); info.ScanComponent != nil {
		return nil
	}
	counts, err := s.o.Principals.DomainContent(ctx, d.Tenant)
	if err == nil && counts[other.ID].Users == 0 {
		err = errs.New(
			errs.Invalid, "config.accounts must be a directory, or have users: the domain %s has none",
			other.ID,
		)
	}
	return err
}

// checkTeams checks that the teams of a mapping are there.
func (s *Service) checkTeams(ctx context.Context, tenant string, t teamRules) error {
	if len(t.Map) == 0 {
		return nil
	}
	teams := make([]string, len(t.Map))
	for i, m := range t.Map {
		teams[i] = m.Team
	}
	unknown, err := s.o.Directories.UnknownTeams(ctx, tenant, teams)
	if err == nil && len(unknown) > 0 {
		err = errs.New(
			errs.Invalid,
			"config.teams.map has the team %s, which is not there: name the id or slug of a team of the tenant",
			short(unknown[0]),
		)
	}
	return err
}

// checkUnnamed returns errs.Conflict if the users of a domain log in at another one, which names
// it.
func (s *Service) checkUnnamed(ctx context.Context, tenant, id string) error {
	named, err := s.naming(ctx, tenant, id, func(rules) bool { return true })
	if err == nil && named != "" {
		err = errs.New(
			errs.Conflict, "The domain %s logs in the users of this one: change its config.accounts first.",
			named,
		)
	}
	return err
}

// naming returns the id of a domain where the users of another one log in by rules for which is
// holds, "" for none.
func (l *lookup) naming(ctx context.Context, tenant, id string, is func(rules) bool) (string, error) {
	all, err := l.store.All(ctx, tenant, "")
	for _, d := range all {
		info, _ := l.info(d.Type)
		if r, err := readRules(info, d.Config); err == nil && r.Accounts == id && is(r) {
			return d.ID, nil
		}
	}
	return "", err
}
