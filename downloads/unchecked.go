package downloads

import (
	"context"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/files"
)

// Unchecked makes downloads without an actor and checks no permission. It is for the program that builds the services, and for
// services whose own methods have checked the caller; never for a tenant or name that comes from a request unchecked.
type Unchecked struct{ files *files.Service }

// Unchecked returns the methods that check nothing.
func (s *Service) Unchecked() Unchecked { return Unchecked{s.files} }

// CreateForSuperusers creates a download, as Service.Create does, for the superusers of a tenant and with a lifetime of its own.
func (u Unchecked) CreateForSuperusers(ctx context.Context, tenant, filename, contentType string, lifetime time.Duration, write func(io.Writer) error) (Download, error) {
	draft := files.Draft{Username: Superusers, Filename: filename, ContentType: contentType, Lifetime: lifetime}
	return u.files.Create(ctx, tenant, draft, write)
}
