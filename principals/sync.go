package principals

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// Snapshot is the content of a directory.
type Snapshot struct {
	People []Identity
	Groups []Group
}

// SyncOptions are the options of Sync.
type SyncOptions struct {
	Source   string                // id of the driver, kept as User.Source and Team.Source
	Force    bool                  // disable and remove however many are missing
	DryRun   bool                  // report, and write nothing; the first warning says what would be refused without Force
	Progress func(done, total int) // called from time to time while it writes; may be nil
}

// SyncCounts counts users or teams by what was done to them. Each is counted once: a disabled one is not also updated.
type SyncCounts struct{ Created, Updated, Disabled, Unchanged int }

// SyncReport is the result of a Sync, or of its dry run.
type SyncReport struct {
	Users, Teams   SyncCounts // a team is disabled when its group is gone: once
	Added, Removed int        // memberships
	Warnings       []string   // at most 1,000, how many there are beside, and in front the one of a dry run
}

// Sync updates the users and teams of a domain to the state of its directory, in the transaction in ctx or one of its own. It
// needs no actor.
//
// Users are identified by the ids of their entries, so that a rename in the directory renames the user, wherever the name is
// stored. A user of the domain without a source id is assigned to the entry with that name. A user who is missing or disabled
// in the directory is disabled, never deleted, and enabled again when the directory has the entry again. A user whom a
// superuser has disabled stays disabled. The last enabled superuser of the tenant stays enabled. A directory never makes a
// superuser or grants a global permission.
//
// Groups become teams, which keep their slugs. The directory decides which of the domain's users are in these teams: new
// members get the role member, others keep theirs. Users who are missing or disabled keep membership and role. A team whose
// group is missing stays, without other users of the domain.
//
// Invalid entries, such as one with the username of another domain's user, are left out with a warning and are no error.
//
// Errors: errs.Invalid for the domain Local; errs.NotFound for the tenant or the domain; errs.Conflict when more than a fifth
// of the enabled users of the domain, and more than ten, would be disabled, or as many of their memberships in its teams
// removed, without Force and DryRun, and also for however few, when more than half of the users would be disabled, or the
// snapshot has nobody, or no group of the members; or when somebody else makes a user in this moment.
func (s *Service) Sync(ctx context.Context, tenant, domain string, snap Snapshot, o SyncOptions) (SyncReport, error) {
	if err := foreign(domain); err != nil {
		return SyncReport{}, err
	}
	var report SyncReport
	err := s.store.InTx(ctx, func(ctx context.Context) error {
		if err := s.store.LockTenant(ctx, tenant); err != nil {
			return err
		}
		if err := s.checkDomain(ctx, tenant, domain); err != nil {
			return err
		}
		p, err := s.plan(ctx, tenant, domain, snap, o.Source)
		if err != nil {
			return err
		}
		losses := ""
		if !o.Force {
			losses = p.losses()
		}
		if losses != "" && !o.DryRun {
			return errs.New(errs.Conflict, "The scan would %s; nothing was changed. Look at the directory, or scan with force=true.", losses)
		}
		join := p.join()
		report = p.report
		report.Added, report.Removed, report.Warnings = len(join), len(p.leave), p.sentences()
		if losses != "" {
			report.Warnings = slices.Insert(report.Warnings, 0, "Without force=true the scan would be refused: it would "+losses+".")
		}
		if o.DryRun {
			return nil
		}
		return s.apply(ctx, tenant, p, join, o.Progress)
	})
	if err != nil {
		return SyncReport{}, err
	}
	return report, nil
}

// foreign returns errs.Invalid for the domain Local, which has no directory.
func foreign(domain string) error {
	if domain == Local {
		return errs.New(errs.Invalid, "Users of the domain %s come from nowhere else.", Local)
	}
	return acceptDomain(&domain)
}

// plan computes the plan of a scan. It reads each table once, and the holders of new names.
func (s *Service) plan(ctx context.Context, tenant, domain string, snap Snapshot, source string) (*plan, error) {
	p := newPlan(domain, snap, source)
	if err := s.store.DomainUsers(ctx, tenant, domain, p.user); err != nil {
		return nil, err
	}
	p.tie()
	holders, err := s.store.Holders(ctx, tenant, p.wantedNames())
	if err != nil {
		return nil, err
	}
	p.name(holders)
	superusers, err := s.store.OtherSuperusers(ctx, tenant, "")
	if err != nil {
		return nil, err
	}
	p.decide(superusers)
	existing, err := s.store.DomainTeams(ctx, tenant, domain)
	if err != nil {
		return nil, err
	}
	p.teams(existing, s.newID)
	if len(p.newTeams) > 0 {
		slugs, err := s.store.Slugs(ctx, tenant)
		if err != nil {
			return nil, err
		}
		p.slugs(slugs)
	}
	p.collectSeats()
	return p, s.store.DomainMembers(ctx, tenant, domain, p.member)
}

// apply writes a plan, in batches. Names are freed before other users get them, and users and teams are written before
// memberships.
func (s *Service) apply(ctx context.Context, tenant string, p *plan, join []MemberKey, progress func(done, total int)) error {
	now, done := s.stamp(), 0
	total := len(p.renames) + len(p.edits) + len(p.creates) + len(p.newTeams) + len(p.oldTeams) + len(p.leave) + len(join)
	step := func(n int, err error) error {
		if done += n; err == nil && progress != nil {
			progress(done, total)
		}
		return err
	}
	if len(p.renames) > 0 {
		if err := step(len(p.renames), s.rename(ctx, tenant, p.renames, now)); err != nil {
			return err
		}
	}
	if err := s.applyUsers(ctx, tenant, p, now, step); err != nil {
		return err
	}
	if err := s.applyTeams(ctx, tenant, p, now, step); err != nil {
		return err
	}
	for some := range transfer.Chunks(p.leave) {
		if err := step(len(some), s.store.DeleteMembers(ctx, tenant, some)); err != nil {
			return err
		}
	}
	for some := range transfer.Chunks(join) {
		members := make([]Membership, len(some))
		for i, member := range some {
			members[i] = Membership{TeamID: member.TeamID, Username: member.Username, Role: actor.Member, CreatedAt: now}
		}
		if err := step(len(some), s.store.AddMembers(ctx, tenant, members)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) applyUsers(ctx context.Context, tenant string, p *plan, now time.Time, step func(int, error) error) error {
	silent := p.writer.silent()
	for some := range transfer.Chunks(p.edits) {
		names, places := make([]string, len(some)), make(map[string]int32, len(some))
		for i, at := range some {
			names[i] = p.nameOf(at)
			places[names[i]] = at
		}
		err := s.store.EditDirectoryUsers(ctx, tenant, names, now, func(u *DirectoryUser) { p.edit(silent, places[u.Username], u) })
		if err := step(len(some), err); err != nil {
			return err
		}
	}
	for some := range transfer.Chunks(p.creates) {
		users := make([]DirectoryUser, len(some))
		for i, at := range some {
			users[i] = silent.newUser(p.snap.People[at])
		}
		if err := step(len(some), s.store.AddDirectoryUsers(ctx, tenant, p.domain, users, now)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) applyTeams(ctx context.Context, tenant string, p *plan, now time.Time, step func(int, error) error) error {
	for some := range transfer.Chunks(p.newTeams) {
		for i := range some {
			some[i].Tenant, some[i].CreatedAt, some[i].UpdatedAt = tenant, now, now
		}
		if err := step(len(some), s.store.PutTeams(ctx, tenant, some, nil)); err != nil {
			return err
		}
	}
	for _, t := range p.oldTeams {
		_, err := s.store.UpdateTeam(ctx, tenant, t.ID, func(stored *Team) error {
			stored.Name, stored.Description, stored.Source, stored.DirectoryGone, stored.UpdatedAt = t.Name, t.Description, t.Source, t.DirectoryGone, now
			return nil
		})
		if err := step(1, err); err != nil {
			return err
		}
	}
	return nil
}
