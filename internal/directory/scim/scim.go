// Package scim implements SCIM 2.0 (RFC 7643, 7644), with which a company's identity provider, such
// as Entra or Okta, creates, changes, disables and groups the users of an authentication domain.
//
// Users are those of the domain, and groups are teams of it whose source is Source. A provider
// decides on the profile of users, on whether they may log in, and on the members of its groups. It
// cannot make a superuser or grant a right. The package has the values of the protocol, its filters
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
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Source is the source of users and teams that an identity provider maintains by SCIM.
const Source = principals.SourceSCIM

// Client is the provider of one domain, whose requests a Service answers.
type Client struct {
	Tenant, Domain string
	Token          string // id of the token of the request, for the log
}

// User is a user in the form of the protocol. Missing texts are "".
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
	Groups      []Ref // nil if they were not requested
	Created     time.Time
	Modified    time.Time
}

// Formatted returns the joined parts of the name.
func (u User) Formatted() string {
	return strings.Join(strings.Fields(u.GivenName+" "+u.MiddleName+" "+u.FamilyName), " ")
}

// Version returns a text that changes with every change of the user, except those of the groups.
func (u User) Version() string {
	return guard.Version(
		u.ID, u.ExternalID, u.UserName, u.DisplayName, u.GivenName, u.MiddleName, u.FamilyName, u.Email,
		u.Timezone, u.Active, u.Created, u.Modified,
	)
}

// Ref is a member of a group, or a group of a user.
type Ref struct{ ID, Display string }

// Group is a team in the form of the protocol.
type Group struct {
	ID         string
	ExternalID string
	Name       string
	Members    []Ref // nil if they were not requested
	Created    time.Time
	Modified   time.Time // includes changes of the members by SCIM
}

// Version returns a text that changes with every change of the group, and of its members by SCIM.
func (g Group) Version() string {
	return guard.Version(g.ID, g.ExternalID, g.Name, g.Created, g.Modified)
}

// Person is a user of a domain with its Identity.
type Person struct {
	principals.DirectoryUser
	Identity
	CreatedAt, UpdatedAt time.Time
}

// Identity is what SCIM stores in addition to the user's row.
type Identity struct {
	ID         string // UUID; "" for a user that no provider has requested yet
	ExternalID string
	Gone       bool      // the provider has deleted the user
	ChangedAt  time.Time // time of the last change of the identity
}

// Key is a property by which a Store finds users or groups without reading all others.
type Key int

// The keys. ByName is the folded username, or the name of a team. ByEmail is only for users, and
// ignores the case of ASCII letters.
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
	ID               string // of the user's Identity, or ""
	Gone             bool
	Label            string // display name, else username
}

// Store reads and writes users, teams and memberships. Domains are those of the rows: an unknown
// one has no users and teams. Teams are those of the domain whose source is Source and whose
// DirectoryGone is false, unless the doc of a method differs. The tests beside its bun-backed store
// define what every implementation must do.
type Store interface {
	principals.ProfileStore
	announced.TeamStore

	// People returns the users of a domain that have a key, including gone ones, ordered by folded
	// username. It returns not many more than 20,000.
	People(ctx context.Context, tenant, domain string, by Key, value string) ([]Person, error)
	// PeoplePage returns users of a domain that are not gone, ordered by folded username, and the
	// number of all.
	PeoplePage(ctx context.Context, tenant, domain string, offset, limit int) (page []Person, total int, err error)
	// EachPerson calls each with every user of a domain that is not gone, in that order, until it
	// returns false. each must not use the store.
	EachPerson(ctx context.Context, tenant, domain string, each func(Person) bool) error
	// Usernames returns the usernames of the users of a domain that are not gone, by id, for those
	// of some ids.
	Usernames(ctx context.Context, tenant, domain string, ids []string) (map[string]string, error)
	// Identify sets the ids of users without one. ids are by username. It ignores names without a
	// user.
	Identify(ctx context.Context, tenant string, ids map[string]string, at time.Time) error
	// Identities returns the ids of users, by username.
	Identities(ctx context.Context, tenant string, usernames []string) (map[string]string, error)
	// SetIdentity writes the Identity of a user. It returns errs.Conflict if the user does not
	// exist.
	SetIdentity(ctx context.Context, tenant, username string, i Identity) error
	// OtherSuperusers returns the number of enabled superusers other than a user.
	OtherSuperusers(ctx context.Context, tenant, username string) (int, error)

	// Groups returns the teams that have a key, including those with DirectoryGone, ordered by id.
	Groups(ctx context.Context, tenant, domain string, by Key, value string) ([]principals.Team, error)
	// GroupsPage returns teams ordered by folded name, then id, and the number of all.
	GroupsPage(
		ctx context.Context, tenant, domain string, offset, limit int,
	) (page []principals.Team, total int, err error)
	// EachGroup calls each with every team, in that order, until it returns false. each must not
	// use the store.
	EachGroup(ctx context.Context, tenant, domain string, each func(principals.Team) bool) error
	// MemberCounts returns the numbers of users of any domain in teams, by team id.
	MemberCounts(ctx context.Context, tenant string, teamIDs []string) (map[string]int, error)
	// GroupMembers returns the users of a domain in some teams, including gone ones, ordered by
	// team and username.
	GroupMembers(ctx context.Context, tenant, domain string, teamIDs []string) ([]Member, error)
	// UserGroups returns the teams of some users, ordered by username and team.
	UserGroups(ctx context.Context, tenant, domain string, usernames []string) ([]Member, error)

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Principals locks domains, renames users, ends their sessions, and finds free slugs of teams.
// principals.Unchecked implements it.
type Principals interface {
	// LockDomain locks a tenant until the transaction in ctx ends. It returns errs.NotFound if the
	// tenant does not exist or does not have the domain.
	LockDomain(ctx context.Context, tenant, domain string) error
	// Rename changes the names of users wherever they are stored, in the transaction in ctx. names
	// maps old names to new ones.
	Rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error
	// FreeSlug returns a slug for a new team: wanted, or wanted with a number after it.
	FreeSlug(ctx context.Context, tenant, wanted string) (string, error)
	// Disabled removes the sessions and personal tokens of disabled users, in the transaction in
	// ctx.
	Disabled(ctx context.Context, tenant string, usernames ...string) error
}

// Service implements the rules over a Store. It does not check an actor: httpapi checks the token
// and passes its Client.
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
	Feed       *entity.Changes  // nil: changes are not announced
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

// writing runs fn in a transaction. No other transaction changes users and teams of the tenant at
// the same time.
func (s *Service) writing(ctx context.Context, c Client, fn func(ctx context.Context) error) error {
	return s.o.Store.InTx(ctx, func(ctx context.Context) error {
		if err := s.o.Principals.LockDomain(ctx, c.Tenant, c.Domain); err != nil {
			return err
		}
		return fn(ctx)
	})
}

// Condition is the condition of a write. It returns errs.Stale if the version of a resource does
// not meet it. nil: all versions do.
type Condition func(version string) error

func (c Condition) check(version string) error {
	if c == nil {
		return nil
	}
	return c(version)
}
