package bundles

import (
	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns the count of bundles, and what is done with the records of deploys and the entries
// of bundles: those of renamed users get the new names, and the records of deploys from a deleted
// tenant are removed.
func (u Unchecked) Hooks() entity.Hooks {
	return entity.Hooks{
		Renamed: u.s.store.RenameUsers, Counts: entity.CountRows(40, "bundles", u.s.store.Count),
		TenantDeleted: u.s.store.ForgetSource, TenantsWith: u.s.store.Targets,
	}
}
