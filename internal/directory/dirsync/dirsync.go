// Package dirsync updates the users and teams of an authentication domain to the state of its
// directory.
//
// A Sync has four stages, each a method of a type that only the previous stage returns:
// snapshot.read → stored.match → matched.decide → plan.write. The stages before write change
// nothing. The same snapshot and rows result in the same plan, whatever the order of the snapshot.
//
// Users are identified by the ids of their entries, so that a rename in the directory renames the
// user, wherever the name is stored. A user of the domain without a source id is assigned to the
// entry with that name. A user who is missing or disabled in the directory is disabled, never
// deleted, and enabled again when the directory has the entry again. A user whom a superuser has
// disabled stays disabled. Sessions and personal tokens of users who are disabled end; those of
// users who are only locked in the directory wait until it lets them in again. The last enabled
// superuser of the tenant stays enabled. A directory never makes a superuser or grants a global
// permission.
//
// Groups become teams, which keep their slugs. The directory decides which of the domain's users
// are in these teams: new members get the role member, others keep theirs. Users who are missing or
// disabled keep membership and role. A team whose group is missing stays, without other users of
// the domain.
//
// domains, the root and hosts import it; internal/store/principals stores its rows, and principals
// has the rules for them.
package dirsync

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/directory/announced"
	"github.com/tenantcontent/tenantcontent/principals"
)

// Group is a group of people, which becomes a team.
type Group struct {
	ID          string   // as Identity.ID
	IDAttribute string   // as Identity.IDAttribute
	Name        string   // 1 to 255 characters
	Description string   // or ""
	Members     []string // ids of people, including those of groups in the group; unknown ones are ignored
}

// Snapshot is the content of a directory.
type Snapshot struct {
	People []principals.Identity
	Groups []Group
}

// MemberKey names a membership: a team and a user in it.
type MemberKey = announced.MemberKey

// Store reads and writes the users and teams of domains, many at once. Domains are those of the
// rows: an unknown one has no users and teams. The tests beside its bun-backed store define what
// every implementation must do.
type Store interface {
	principals.ProfileStore
	announced.TeamStore

	// DomainUsers calls each with every user of a domain, ordered by username. each must not use
	// the store.
	DomainUsers(ctx context.Context, tenant, domain string, each func(principals.DirectoryUser)) error
	// OtherSuperusers returns the number of enabled superusers other than a user; "": of all.
	OtherSuperusers(ctx context.Context, tenant, username string) (int, error)

	// DomainTeams returns the teams of a domain, ordered by id.
	DomainTeams(ctx context.Context, tenant, domain string) ([]principals.Team, error)
	// Slugs returns the slugs of all teams.
	Slugs(ctx context.Context, tenant string) ([]string, error)

	// PersonTeams returns the teams of a domain and source that have one of some source ids, and
	// those with any source id that a user is in. It also returns the teams of any domain whose ids
	// or slugs are among keys. Each has the role of the user.
	PersonTeams(
		ctx context.Context, tenant, domain, source, username string, sourceIDs, keys []string,
	) ([]PersonTeam, error)
	// DomainMembers calls each with every membership of the teams of a domain, unordered. each must
	// not use the store.
	DomainMembers(ctx context.Context, tenant, domain string, each func(MemberKey)) error

	// InTx runs fn in one transaction, which all calls with its context join.
	InTx(ctx context.Context, fn func(ctx context.Context) error) error
}

// Principals locks domains, renames users, and ends their sessions and tokens. principals.Unchecked
// implements it.
type Principals interface {
	// LockDomain locks a tenant until the transaction in ctx ends. It returns errs.Invalid for the
	// domain Local, and errs.NotFound if the tenant does not exist or does not have the domain.
	LockDomain(ctx context.Context, tenant, domain string) error
	// Rename changes the names of users wherever they are stored, in the transaction in ctx. names
	// maps old names to new ones.
	Rename(ctx context.Context, tenant string, names map[string]string, at time.Time) error
	// Disabled ends the sessions and tokens of users who have been disabled, in the transaction in
	// ctx.
	Disabled(ctx context.Context, tenant string, usernames ...string) error
}

// Service syncs users and teams with directories. It does not check an actor: it is for package
// domains, which does.
type Service struct {
	o     Options
	clock clock.Clock
}

// Options configure a Service. Store and Principals are required.
type Options struct {
	Store      Store
	Principals Principals
	Now        func() time.Time // default time.Now
	NewID      func() string    // team ids; default UUIDv7
	Feed       *entity.Changes  // nil: changes are not announced
}

// New returns a Service.
func New(o Options) *Service {
	o.Store = announce(o.Store, o.Feed)
	return &Service{o, clock.New(o.Now, o.NewID)}
}

// SyncOptions are the options of Sync.
type SyncOptions struct {
	Source string // id of the driver, kept as User.Source and Team.Source
	Force  bool   // disable users and remove memberships however many they are
	// return a Report, and write nothing; the first warning is what would be refused without
	// Force
	DryRun   bool
	Progress func(done, total int) // called from time to time while it writes; may be nil
}

// Counts counts users or teams by what was done to them. Each is counted once: a disabled user, who
// may only be locked, is not also updated.
type Counts struct{ Created, Updated, Disabled, Unchanged int }

// Report is the result of a Sync, or of its dry run.
type Report struct {
	Users, Teams   Counts   // a team is counted as disabled once, when its group is gone
	Added, Removed int      // memberships
	Warnings       []string // at most 1,000, then the number of others; in a dry run first the refusal
}

// ErrLosses is the cause of the error of a Sync that is refused without Force.
var ErrLosses = errors.New("dirsync: too much would be removed")

// Sync updates the users and teams of a domain to the state of its directory, in the transaction in
// ctx or one of its own. Invalid entries, such as one with the username of another domain's user,
// are left out with a warning and are not an error.
//
// Errors: errs.Invalid for the domain Local; errs.NotFound for the tenant or the domain;
// errs.Conflict, with the cause ErrLosses, if too many would be disabled or removed (plan.losses)
// without Force and DryRun, and when another caller makes a user in this moment.
func (s *Service) Sync(ctx context.Context, tenant, domain string, all Snapshot, o SyncOptions) (Report, error) {
	var report Report
	err := s.o.Store.InTx(ctx, func(ctx context.Context) error {
		if err := s.o.Principals.LockDomain(ctx, tenant, domain); err != nil {
			return err
		}
		p, err := s.plan(rows{ctx, s.o.Store, tenant, domain}, newSnapshot(domain, o.Source, all))
		if err != nil {
			return err
		}
		losses := ""
		if !o.Force {
			losses = p.losses()
		}
		if losses != "" && !o.DryRun {
			return errs.Wrap(
				errs.Conflict, ErrLosses,
				"The scan would %s; nothing was changed. Look at the directory, or scan with force=true.",
				losses,
			)
		}
		report = p.summary()
		if losses != "" {
			report.Warnings = slices.Insert(
				report.Warnings, 0, "Without force=true the scan would be refused: it would "+losses+".",
			)
		}
		if o.DryRun {
			return nil
		}
		return p.write(ctx, writer{s.o.Store, s.o.Principals, tenant, s.clock.Stamp(), o.Progress})
	})
	if err != nil {
		return Report{}, err
	}
	return report, nil
}

// plan passes a snapshot through the stages before write.
func (s *Service) plan(from reader, snap *snapshot) (*plan, error) {
	stored, err := snap.read(from)
	if err != nil {
		return nil, err
	}
	matched, err := stored.match(from)
	if err != nil {
		return nil, err
	}
	return matched.decide(from, s.clock.NewID)
}
