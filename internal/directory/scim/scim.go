// Package scim lets a company's identity provider, such as Entra or Okta, create, change, disable
// and group the users of an authentication domain (SCIM 2.0: RFC 7643, 7644).
//
// Users are those of the domain, and groups are teams of it whose source is Source. A provider
// decides on the profile of users, on whether they may log in, and on who is in its groups; it
// makes no superuser and gives no right. The package has the values of the protocol, its filters
// and changes, and a Service with the rules; package httpapi has the routes.
//
// httpapi and the root import it; internal/store/principals stores its rows.
package scim

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Source is the source of users and teams that a provider of identities keeps by SCIM.
const Source = principals.SourceSCIM

// Client is whose requests a Service answers: the provider of one domain.
type Client struct {
	Tenant, Domain string
	Token          string // id of the token with which it came, for the log
}

// User is a user as the protocol has it. Texts are "" for none.
type User struct {
	ID          string // never changes
	ExternalID  string // the provider's
	UserName    string
	DisplayName string
	GivenName   string
	MiddleName  string
	FamilyName  string
	Email       string
	Timezone    string
	Active      bool
	Groups      []Ref // nil if they were not asked for
	Created     time.Time
	Modified    time.Time
}

// Formatted returns the parts of the name, joined.
func (u User) Formatted() string {
	return strings.Join(strings.Fields(u.GivenName+" "+u.MiddleName+" "+u.FamilyName), " ")
}

// Version changes with every change of the user but those of the groups.
func (u User) Version() string {
	return guard.Version(
		u.ID, u.ExternalID, u.UserName, u.DisplayName, u.GivenName, u.MiddleName, u.FamilyName, u.Email,
		u.Timezone, u.Active, u.Created, u.Modified,
	)
}

// Ref is a member of a group, or a group that a user is in.
type Ref struct{ ID, Display string }

// Group is a team as the protocol has it.
type Group struct {
	ID         string
	ExternalID string
	Name       string
	Members    []Ref // nil if they were not asked for
	Created    time.Time
	Modified   time.Time // also by a change of the members with SCIM
}

// Version changes with every change of the group, and of its members with SCIM.
func (g Group) Version() string {
	return guard.Version(g.ID, g.ExternalID, g.Name, g.Created, g.Modified)
}

// Person is a user of a domain with what SCIM keeps beside.
type Person struct {
	principals.DirectoryUser
	Identity
	CreatedAt, UpdatedAt time.Time
}

// Identity is what SCIM keeps of a user beside the user's row.
type Identity struct {
	ID         string // UUID, "" for a user whom no provider has asked for yet
	ExternalID string
	Gone       bool      // the provider has deleted the user
	ChangedAt  time.Time // of the identity
}

// Key is a property by which a Store finds users or groups without reading the others.
type Key int

// The keys. ByName is the folded username, or the name of a team; ByEmail is for users alone,
// without the case of ASCII letters.
const (
	ByID Key = iota
	ByName
	ByExternalID
	ByEmail
)

// Member is a user in a team.
type Member struct {
	TeamID, TeamName string
	Username         string
	ID               string // of the user's Identity, "" for none
	Gone             bool
	Label            string // display name, else username
}

// Store reads and writes users, teams and memberships. Domains are those of the rows: an unknown
// one has no users and teams. Teams are those of the domain whose source is Source, without those
// of which DirectoryGone is set, unless a method says otherwise. The tests beside its bun-backed
// store say what every implementation must do.
type Store interface {
	principals.ProfileStore

	// People returns the users of a domain that have a key, gone ones too, ordered by folded
	// username, and not many more than 20,000.
	People(ctx context.Context, tenant, domain string, by Key, value string) ([]Person, error)
	// PeoplePage returns users of a domain who are not gone, ordered by folded username, and how
	// many there are.
	PeoplePage(ctx context.Context, tenant, domain string, offset, limit int) (page []Person, total int, err error)
	// EachPerson calls each with every user of a domain who is not gone, in that order, until it
	// returns false. each must not use the store.
	EachPerson(ctx context.Context, tenant, domain string, each func(Person) bool) error
	// Usernames returns the usernames of the users of a domain who are not gone, by those of their
	// ids that are given.
	Usernames(ctx context.Context, tenant, domain string, ids []string) (map[string]string, error)
	// Identify sets the ids of users who have none. ids are by username; it ignores names without a
	// user.
	Identify(ctx context.Context, tenant string, ids map[string]string, at time.Time) error
	// Identities returns the ids of users, by username.
	Identities(ctx context.Context, tenant string, usernames []string) (map[string]string, error)
	// SetIdentity writes the Identity of a user. It fails with errs.Conflict if there is no such
	// user.
	SetIdentity(ctx context.Context, tenant, username string, i Identity) error
	// OtherSuperusers counts the enabled superusers beside a user.
	OtherSuperusers(ctx context.Context, tenant, username string) (int, error)

	// Groups returns the teams that have a key, also those of which DirectoryGone is set, ordered
	// by id.
	Groups(ctx context.Context, tenant, domain string, by Key, value string) ([]principals.Team, error)
	// GroupsPage returns teams ordered by folded name, then id, and how many there are.
	GroupsPage(
		ctx context.Context, tenant, domain string, offset, limit int,
	) (page []principals.Team, total int, err error)
	// EachGroup calls each with every team, in that order, until it returns false. each must not
	// use the store.
	EachGroup(ctx context.Context, tenant, domain string, each func(principals.Team) bool) error
	// MemberCounts counts the users of any domain in teams, by the teams' ids.
	MemberCounts(ctx context.Context, tenant string, teamIDs []string) (map[string]int, error)
	// GroupMembers returns the users of a domain in some teams, also those who are gone, ordered by
	// team and username.
	GroupMembers(ctx context.Context, tenant, domain string, teamIDs []string) ([]Member, error)
	// UserGroups returns the teams that some users are in, ordered by username and team.
	UserGroups(ctx context.Context, tenant, domain string, usernames []string) ([]Member, error)
	// AddMembers adds memberships; those that exist keep their roles.
	AddMembers(ctx context.Context, tenant string, all []principals.Membership) error
	// RemoveMembers removes users from a team; those who are not in it are no error.
	RemoveMembers(ctx context.Context, tenant, teamID string, usernames []string) error
	// InsertTeam and UpdateTeam are those of principals.Store.
	InsertTeam(ctx context.Context, tenant string, t principals.Team) error
	UpdateTeam(ctx context.Context, tenant, id string, edit func(*principals.Team) error) (principals.Team, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Principals locks domains, renames users, logs them out, and knows the slugs of teams.
// principals.Unchecked implements it.
type Principals interface {
	// LockDomain locks a tenant until the transaction in ctx ends. It returns errs.NotFound if
	// there is no such tenant, or it has no such domain.
	LockDomain(ctx context.Context, tenant, domain string) error
	// Rename changes the names of users wherever they are stored, in the transaction in ctx. names
	// maps old ones to new ones.
	Rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error
	// FreeSlug returns a slug for a new team: the one that is wanted, or else one with a number
	// behind it.
	FreeSlug(ctx context.Context, tenant, wanted string) (string, error)
	// Disabled removes the sessions and personal tokens of users who have been disabled, in the
	// transaction in ctx.
	Disabled(ctx context.Context, tenant string, usernames ...string) error
}

// Service implements the rules over a Store. It checks no actor: httpapi checks the token and
// passes its Client.
type Service struct {
	o     Options
	clock clock.Clock
}

// Options configure a Service. Store and Principals are required.
type Options struct {
	Store      Store
	Principals Principals
	Now        func() time.Time // default time.Now
	NewID      func() string    // of users and teams; default UUIDv7
	Feed       *entity.Changes  // nil: nobody listens
	Log        *slog.Logger     // receives who was disabled, enabled and deleted (info); default slog.Default
}

// New returns a Service.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Store = announce(o.Store, o.Feed)
	return &Service{o, clock.New(o.Now, o.NewID)}
}

// writing runs fn in a transaction in which nobody else changes users and teams of the tenant.
func (s *Service) writing(ctx context.Context, c Client, fn func(ctx context.Context) error) error {
	return s.o.Store.InTx(ctx, func(ctx context.Context) error {
		if err := s.o.Principals.LockDomain(ctx, c.Tenant, c.Domain); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// Condition is the condition of a write. It returns errs.Stale if the version of a resource does
// not fit; nil: any does.
type Condition func(version string) error

func (c Condition) check(version string) error {
	if c == nil {
		return nil
	}
	return c(version)
}
