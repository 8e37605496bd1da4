package uploads

import "github.com/tenantcontent/tenantcontent/entity"

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Hooks returns what is done with uploads when users are renamed or deleted, and with expired ones: see files.Service.Hooks.
func (u Unchecked) Hooks() entity.Hooks { return u.s.files.Hooks() }
