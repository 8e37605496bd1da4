package downloads

import (
	"context"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/files"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any tenant. They are for the
// program that builds the services and for its command line. Do not pass them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// CreateForSuperusers creates a download, as Service.Create does, for the superusers of a tenant and with a lifetime of its own.
func (u Unchecked) CreateForSuperusers(ctx context.Context, tenant, filename, contentType string, lifetime time.Duration, write func(io.Writer) error) (Download, error) {
	draft := files.Draft{Username: Superusers, Filename: filename, ContentType: contentType, Lifetime: lifetime}
	return u.s.files.Create(ctx, tenant, draft, write)
}

// Hooks returns what is done with downloads when users are renamed or deleted, and with expired ones: see files.Service.Hooks.
func (u Unchecked) Hooks() entity.Hooks { return u.s.files.Hooks() }
