package bundles

import (
	"github.com/tenantcontent/tenantcontent/entity"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns what bundles do when users are renamed: their entries and the records of deploys follow.
func (u Unchecked) Hooks() entity.Hooks { return entity.Hooks{Renamed: u.s.store.RenameUsers} }
