// Package principals manages the users and teams of a tenant, their memberships and passwords, and
// the one id space over users and teams. It is one package because these refer to each other.
//
//	_, err := app.Principals.CreateUser(ctx, principals.User{Username: "jo"}, "a long password")
//	team, err := app.Principals.CreateTeam(ctx, principals.Team{Name: "Sales"})
//	moved, err := app.Principals.Reassign(ctx, "jo", team.ID)
//
// sessions, httpapi, the root, cmd and hosts import it; internal/store/principals stores its rows.
package principals

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"runtime"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Local is the id of the built-in domain, the only one whose users have passwords here.
const Local = "local"

// Everyone is the id of the principal that stands for all users. It has no row.
const Everyone = "*"

// User is one person of a tenant. Times are UTC in whole microseconds; nil is null.
type User struct {
	Tenant string
	// see ValidUsername; unique in the tenant ignoring case; changes with that in a directory alone
	Username    string
	Domain      string // id of an authentication domain, Local by default
	DisplayName *string
	FamilyName  *string
	GivenName   *string
	MiddleName  *string
	Email       *string
	EmailTyped  bool    // the users themselves have set Email, so nobody is found by it; only the Service sets it
	Timezone    *string // IANA name
	Superuser   bool
	Enabled     bool
	// a directory has disabled the user, and may enable it again; only the Service sets it, and an
	// edit may end it
	DirectoryDisabled bool
	// it has only locked the user, whose sessions and tokens wait for the end of that; only the
	// Service sets it
	DirectoryLocked   bool
	GlobalPermissions GlobalPermissions
	Source, SourceID  *string         // where it was imported from: a domain's driver and the id there
	Data, UserFields  json.RawMessage // JSON objects of at most 64 KiB, {} by default
	LastViewedFeed    *time.Time

	Locked bool // LockedAt is less than 15 minutes ago; set by the Service on every read
	// of the lock for all networks but the user's own; kept after it has run out, until the next
	// login
	LockedAt      *time.Time
	LoginAttempts int // failures since the last login, from all networks

	PasswordSetAt             *time.Time // another one for each password: sessions that began under another are over
	PasswordExpiresAt         *time.Time // no login from then on, until there is a new password
	ForgotPasswordRequestTime *time.Time
	MFA                       bool

	AIMessage *string
	AIConsent bool

	AvatarID        *string    // key of the uploaded picture
	AvatarUpdatedAt *time.Time // nil without one

	CreatedAt, UpdatedAt time.Time // UpdatedAt does not follow logins, passwords, the picture and the feed
}

// Version changes with every change of the row: logins, pictures and the feed change none.
func (u User) Version() string {
	return guard.Version(u.Username, u.Domain, u.DisplayName, u.FamilyName, u.GivenName, u.MiddleName, u.Email,
		u.Timezone,
		u.Superuser, u.Enabled,
		u.GlobalPermissions.AI, u.GlobalPermissions.JobCreation, u.GlobalPermissions.ViewAllTeams,
		u.GlobalPermissions.ViewAllUsers, u.GlobalPermissions.PainlessScriptCreation, u.Source,
		u.SourceID, u.Data, u.UserFields,
		u.PasswordExpiresAt, u.MFA, u.AIMessage, u.AIConsent, u.CreatedAt, u.UpdatedAt)
}

// GlobalPermissions are the rights of a user that do not come from roles in teams.
type GlobalPermissions struct {
	AI, JobCreation, ViewAllTeams, ViewAllUsers, PainlessScriptCreation bool
}

// Label returns the display name, else the username.
func (u User) Label() string { return labelOf(u.DisplayName, u.Username) }

// Initials returns the initials of the label.
func (u User) Initials() string { return Initials(u.Label()) }

// ManagesPassword reports whether the service keeps the user's password.
func (u User) ManagesPassword() bool { return u.Domain == Local }

// HasSharedDatasources returns false: no datasource can be shared.
func (u User) HasSharedDatasources() bool { return false }

// Team is a group of users. Its id is a principal id, as a username is.
type Team struct {
	Tenant       string
	ID           string // UUIDv7, lower case
	Name         string // 1 to 255 characters
	Slug         string // [A-Za-z0-9][A-Za-z0-9_-]{0,127}, never of UUID form; unique in the tenant, case matters
	Description  *string
	Domain       string // id of the authentication domain it comes from, Local by default
	Color        *string
	Icon         *string
	MaterialIcon *string
	Source       *string
	SourceID     *string
	// DirectoryGone reports whether the group of the team has been removed from the directory; only
	// the Service sets it.
	DirectoryGone bool
	CreatedAt     time.Time // UTC, whole microseconds
	UpdatedAt     time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (t Team) Version() string {
	return guard.Version(t.ID, t.Name, t.Slug, t.Description, t.Domain, t.Color, t.Icon, t.MaterialIcon,
		t.Source, t.SourceID, t.CreatedAt,
		t.UpdatedAt)
}

// NaturalID returns the slug: unlike that of content, it has no owner before it.
func (t Team) NaturalID() string { return t.Slug }

// Membership is one user's role in one team.
type Membership struct {
	TeamID      string
	TeamName    string
	Username    string
	DisplayName *string // of the user
	Role        actor.Role
	CreatedAt   time.Time // UTC, whole microseconds
}

// Version changes with every change of the row.
func (m Membership) Version() string {
	return guard.Version(m.TeamID, m.Username, int(m.Role), m.CreatedAt)
}

// Type is the type of a principal.
type Type string

// The types, as the API writes them.
const (
	TypeUser     Type = "User"
	TypeTeam     Type = "Team"
	TypeEveryone Type = "Everyone"
)

// Principal is a user or a team in the one id space over both.
type Principal struct {
	ID              string // username or team id
	Type            Type
	Name            string     // team name, else display name, else username
	DisplayName     *string    // of a user
	Email           *string    // of a user
	AvatarID        *string    // of a user
	AvatarUpdatedAt *time.Time // of a user with an avatar
	Color           *string    // of a team
	Icon            *string    // of a team
	MaterialIcon    *string    // of a team
}

// Initials returns the initials of the name.
func (p Principal) Initials() string { return Initials(p.Name) }

// Login is the state of a user that a login from one network reads and writes; times are zero for
// none.
type Login struct {
	Username string
	Domain   string
	Enabled  bool
	// DirectoryLocked is that of the User.
	DirectoryLocked bool
	Hash            string // PHC string, "" for no password
	Attempts        int    // failures since the last login, from all networks
	LockedAt        time.Time
	SetAt           time.Time
	ExpiresAt       time.Time
	Recent          []time.Time  // the last failures from all networks, oldest first; at most maxRecent
	Network         NetworkLogin // the network of this login

	NetworkLock time.Time // the last lock of any network; only for an edit without a network

	Unlock bool // set by an edit: ends the failures and locks of all networks
	Forget bool // set by an edit: forgets all networks
}

// NetworkLogin is the record of a user's logins from one network; times are zero for none.
type NetworkLogin struct {
	Attempts   int // failures since the last login
	FailedAt   time.Time
	LockedAt   time.Time
	LoggedInAt time.Time
}

// Store keeps users, teams and memberships. The tests beside its bun-backed store say what every
// implementation must do.
type Store interface {
	// User fails with errs.NotFound when the tenant has no user of exactly this name.
	User(ctx context.Context, tenant, username string) (User, error)
	// Users returns a page in the order of q.Sort: username (the default, ignoring case),
	// displayName (the label), createdAt or updatedAt.
	Users(ctx context.Context, tenant string, q paging.Query) (paging.Page[User], error)
	// EnabledSuperusers returns the names of the enabled superusers, ordered ignoring case. It
	// costs the same for any number of other users.
	EnabledSuperusers(ctx context.Context, tenant string) ([]string, error)
	// UsersNamed returns the users whose folded names are among these, in no order.
	UsersNamed(ctx context.Context, tenant string, folded []string) ([]User, error)
	// InsertUser adds a user without a password. It fails with errs.Conflict when the name is
	// taken, ignoring case.
	InsertUser(ctx context.Context, tenant string, u User) error
	// UpdateUser calls edit with the stored user and writes the result; no other write to this user
	// comes between. The username stays, and with another domain the ids that SCIM has for the user
	// go. An error from edit is returned as is and writes nothing.
	UpdateUser(ctx context.Context, tenant, username string, edit func(*User) error) (User, error)
	// DeleteUser removes a user and its memberships, and returns the account that the user had: see
	// entity.Hooks.RemoveRest. It fails with errs.NotFound.
	DeleteUser(ctx context.Context, tenant, username string) (account string, err error)
	// MarkFeedViewed sets LastViewedFeed of a user, and not UpdatedAt. It locks only the user's
	// row. It fails with errs.NotFound.
	MarkFeedViewed(ctx context.Context, tenant, username string, at time.Time) error
	// OtherSuperusers counts the enabled superusers beside this user.
	OtherSuperusers(ctx context.Context, tenant, username string) (int, error)

	// Login finds a user by the folded name, with the record of a network. It fails with
	// errs.NotFound.
	Login(ctx context.Context, tenant, folded, network string) (Login, error)
	// EditLogin is like UpdateUser for what Login holds beside the name, domain, Enabled and
	// DirectoryLocked, and writes only what changed. Of a user's networks it keeps the MaxNetworks
	// that the user has logged in from last, and as many others.
	EditLogin(ctx context.Context, tenant, folded, network string, edit func(*Login) error) error
	// Attempt is EditLogin for an attempt to log in, which does not wait for others that write:
	// what it counts may be kept in memory until they have ended, where Login and other attempts
	// find it. edit is then called again, with the login as it is by that time. If it returns an
	// error then, nothing is counted, and the sessions that the user has got meanwhile end. Errors:
	// also errs.Unavailable when too much is kept.
	Attempt(ctx context.Context, tenant, folded, network string, edit func(*Login) error) error
	// SweepNetworks removes the networks that have expired at a time, and returns their number: see
	// NetworkLogin.ExpiresAt.
	SweepNetworks(ctx context.Context, tenant string, at time.Time) (int, error)

	// Team finds a team by its id or, when key has no UUID form, by its slug. It fails with
	// errs.NotFound.
	Team(ctx context.Context, tenant, key string) (Team, error)
	// Teams returns a page in the order of q.Sort: name (the default, ignoring case), createdAt or
	// updatedAt.
	Teams(ctx context.Context, tenant string, q paging.Query) (paging.Page[Team], error)
	// Slugs returns the slugs of all teams.
	Slugs(ctx context.Context, tenant string) ([]string, error)
	// InsertTeam fails with errs.Conflict when the slug is taken.
	InsertTeam(ctx context.Context, tenant string, t Team) error
	// UpdateTeam is like UpdateUser, by id. It fails with errs.Conflict when the slug is taken.
	UpdateTeam(ctx context.Context, tenant, id string, edit func(*Team) error) (Team, error)
	// DeleteTeam removes a team. Nobody is a member of it any more; RemoveMembersOf removes the
	// rows. It fails with errs.NotFound.
	DeleteTeam(ctx context.Context, tenant, id string) error

	// Members returns a page of a team's memberships in the order of q.Sort: displayName (the
	// default, the users' labels ignoring case), username or createdAt.
	Members(ctx context.Context, tenant, teamID string, q paging.Query) (paging.Page[Membership], error)
	// Memberships returns a page of a user's memberships in the order of q.Sort: teamName (the
	// default, ignoring case) or createdAt.
	Memberships(ctx context.Context, tenant, username string, q paging.Query) (paging.Page[Membership], error)
	// Member fails with errs.NotFound if the user is not in the team.
	Member(ctx context.Context, tenant, teamID, username string) (Membership, error)
	// RemoveMembersOf removes the rows of some n memberships at most in a team that was deleted,
	// and reports whether there may be more.
	RemoveMembersOf(ctx context.Context, tenant, teamID string, n int) (more bool, err error)
	// PutMember adds a membership or sets the role of the one that exists. It fails with
	// errs.Conflict when the team or the user does not exist.
	PutMember(ctx context.Context, tenant string, m Membership) error
	// DeleteMember fails with errs.NotFound when the user is not in the team.
	DeleteMember(ctx context.Context, tenant, teamID, username string) error

	// Principal finds a user, a team or Everyone by id. It fails with errs.NotFound.
	Principal(ctx context.Context, tenant, id string) (Principal, error)
	// Principals returns all users and teams, not Everyone, in the order of their folded names,
	// then ids. It holds no connection while the caller works on one.
	Principals(ctx context.Context, tenant string) iter.Seq2[Principal, error]

	TransferStore
	DomainStore
	DependentStore

	// LockPrincipals keeps content from being added for users and teams until the transaction in
	// ctx ends, and waits for what is just being added. Those that do not exist are no error. It
	// comes after LockTenant.
	LockPrincipals(ctx context.Context, tenant string, ids []string) error
	// LockTenant keeps other callers of LockTenant for this tenant waiting until the transaction in
	// ctx ends. It fails with errs.NotFound when there is no such tenant.
	LockTenant(ctx context.Context, tenant string) error
	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Content is what belongs to users and teams in other packages: the entities that they own, and all
// that entity.Hooks are for. *entity.Registry implements it.
type Content interface {
	Owned(ctx context.Context, tenant, owner string) (map[entity.Kind]int, error)
	Owners(ctx context.Context, tenant string, among []string) (map[string]bool, error)
	Rename(ctx context.Context, tenant string, names map[string]string) error
	Reassign(ctx context.Context, tenant, from, to string) ([]entity.Ref, error)
	ReassignOnly(ctx context.Context, tenant, from, to string, kinds ...entity.Kind) ([]entity.Ref, error)
	Deleted(ctx context.Context, tenant string, gone ...entity.Key) error
	Disabled(ctx context.Context, tenant string, usernames ...string) error
}

// Domains checks what domains other than Local allow their users. domains.Lookup implements it.
type Domains interface {
	// CheckKnown returns errs.Invalid if a tenant has no domain with an id. It is called, in the
	// transaction in ctx, whenever a user or team gets another domain, and by LockDomain.
	CheckKnown(ctx context.Context, tenant, id string) error
	// CheckUsable returns an error for people if a domain accepts no log-in, or none as one of its
	// users. It is called, in the transaction in ctx, when a user is added to another domain, or
	// moves.
	CheckUsable(ctx context.Context, tenant, id string) error
	// CheckUser returns an error for people if the directory of a domain does not know the person
	// that a user would become, or cannot be asked. CheckMove calls it.
	CheckUser(ctx context.Context, tenant string, to Move) error
	// CheckEmail returns errs.Forbidden if people log in as the user of a domain who has their
	// e-mail address, so that no user may choose one. It is called, in the transaction in ctx, when
	// users change their own address.
	CheckEmail(ctx context.Context, tenant, id string) error
}

// Service implements the rules for users and teams over a Store.
type Service struct {
	store     Store
	blobs     Blobs
	content   Content
	hostKinds []entity.Kind
	feed      *entity.Changes
	removals  Removals
	domains   Domains // nil: see Options
	clock     clock.Clock
	passwords *hasher
	counting  *limiter.Limiter // of logins that record an attempt, by tenant
	log       *slog.Logger
	refusal   time.Duration
}

// Options configure a Service. Store is required, and Blobs for pictures.
type Options struct {
	Store   Store
	Blobs   Blobs
	Content Content // default nil: nothing belongs to users and teams
	// HostKinds are the host's own kinds of content, which Reassign moves, too.
	HostKinds []entity.Kind
	Feed      *entity.Changes // nil: changes are not announced
	// Removals removes what deleted users and teams had, in the transaction in ctx or later; nil
	// leaves the rows.
	Removals Removals
	// Domains has the domains of users and teams; nil: every domain is known and usable, and
	// knows its people.
	Domains Domains
	Now     func() time.Time // default time.Now
	NewID   func() string    // team ids; default UUIDv7
	Cost    Cost             // of new password hashes; default DefaultCost
	Refusal time.Duration    // a refused password takes as long at least, after its wait in the queue; default 0
	Log     *slog.Logger     // receives each lock and unlock of a user (info); default slog.Default
}

// New returns a Service.
func New(o Options) *Service {
	if o.Cost == (Cost{}) {
		o.Cost = DefaultCost()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{
		log: o.Log, refusal: o.Refusal, store: announce(o.Store, o.Feed), blobs: o.Blobs, content: o.Content,
		hostKinds: o.HostKinds, feed: o.Feed, removals: o.Removals,
		domains: o.Domains, clock: clock.New(o.Now, o.NewID),
		passwords: newHasher(o.Cost, runtime.GOMAXPROCS(0)),
		counting:  limiter.New(limiter.Options{Capacity: maxAllCounted, PerKey: maxCounting, Timeout: settleTime}),
	}
}

func labelOf(display *string, name string) string {
	if display != nil && *display != "" {
		return *display
	}
	return name
}
