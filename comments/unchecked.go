package comments

import (
	"context"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Deliver notifies users with the Title and the Body of n, without a comment. It delivers the
// notification of an app, which n.Entity and n.Path name, at once, and queues any other. It joins
// the transaction in ctx.
func (u Unchecked) Deliver(ctx context.Context, tenant string, users []string, n Notification) error {
	n.Type, n.State = TypeNotice, Pending
	if n.Entity != (entity.Key{}) {
		n.Type, n.State = TypeApp, Delivered
	}
	all := make([]Notification, len(users))
	n.Tenant, n.CreatedAt = tenant, u.s.clock.Stamp()
	n.UpdatedAt = n.CreatedAt
	for i, name := range users {
		n.ID, n.Username = u.s.clock.NewID(), name
		all[i] = n
	}
	return u.s.queue.Enqueue(ctx, tenant, all)
}

// Hooks returns what comments do when their entities or people change. With an entity all comments
// on it are removed. The comments of deleted users stay, without an author: users who get their
// names later are not the authors. Renamed users keep their comments and where they are mentioned;
// messages stay as they were written. Notifications of apps are removed with their app, and after
// 90 days; Sweep also removes what is older than Options.KeepFor.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Renamed: u.s.store.RenameUsers, Deleted: u.s.deleted,
		RemoveRest: u.s.removeRest, Dependents: u.s.dependents, Additions: u.s.additions,
		Counts: entity.CountRows(70, "comments", u.s.store.Count),
		Due:    u.s.due(), Sweep: u.s.sweep,
	}
}

// due are the notifications of apps, which are kept for 90 days, and what is kept as long as
// Options says.
func (s *Service) due() []entity.Due {
	due := []entity.Due{
		{
			Table:  "tc_notifications",
			Column: "created_at",
			Where:  "type = 'app' AND state = 'delivered'",
			Age:    appNotices,
		},
	}
	if s.keepFor > 0 {
		due = append(
			due, entity.Due{Table: "tc_activities", Column: "created_at", Age: s.keepFor},
			entity.Due{Table: "tc_notifications", Column: "created_at", Age: s.keepFor},
		)
	}
	return due
}

func (s *Service) sweep(ctx context.Context, tenant string) (int, error) {
	n, err := s.store.SweepNotices(ctx, tenant, TypeApp, s.clock.Stamp().Add(-appNotices))
	if err != nil || s.keepFor <= 0 {
		return n, err
	}
	old, err := s.store.SweepOld(ctx, tenant, s.clock.Stamp().Add(-s.keepFor))
	return n + old, err
}
