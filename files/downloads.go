package files

import (
	"context"
	"io"
	"iter"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Superusers is the Username of a download that the service itself made: it is for all superusers
// of the tenant. No user can be called so.
const Superusers = "*"

// Downloads are the files that were made for a user, such as an export. A download is for its
// creator alone, or for the superusers of its tenant, until it expires.
type Downloads struct{ files *Service }

// NewDownloads returns Downloads. It sets what tells downloads from other files: Noun, Kind and
// Table.
func NewDownloads(o Options) *Downloads {
	o.Noun, o.Kind, o.Table = "Download", KindDownload, "tc_downloads"
	return &Downloads{New(o)}
}

// Create creates a download of the caller, whatever d.Username is, with the bytes that write
// writes. It calls write in this goroutine; write may read in the transaction in ctx, and must
// close its rows before it writes. If write returns an error or panics, Create stores nothing and
// returns the error unchanged. Errors: errs.Invalid for a bad name or content type.
func (s *Downloads) Create(ctx context.Context, d Draft, write func(io.Writer) error) (File, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, err
	}
	d.Username = a.User
	return s.files.Create(ctx, a.Tenant, d, write)
}

// Get returns a download: the caller's own or, for a superuser, one that is for all superusers.
// Errors: errs.NotFound, also for another user's, superuser or not, and an expired one.
func (s *Downloads) Get(ctx context.Context, id string) (File, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, err
	}
	return s.files.Get(ctx, a.Tenant, id, ofDownloads(a))
}

// List returns a page of what Get returns: the caller's downloads and, for a superuser, those that
// are for all superusers. The newest are first, or the oldest when it is sorted by createdAt.
// Errors: errs.Invalid for a sort or cursor that does not fit.
func (s *Downloads) List(ctx context.Context, q paging.Query) (paging.Page[File], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[File]{}, err
	}
	users := []string{a.User}
	if a.Superuser {
		users = append(users, Superusers)
	}
	return s.files.List(ctx, a.Tenant, users, q)
}

// All returns all downloads that Get returns, the newest first. It reads page after page; an error
// ends it.
func (s *Downloads) All(ctx context.Context) iter.Seq2[File, error] {
	return paging.All(paging.Query{Limit: paging.MaxLimit}, func(q paging.Query) (paging.Page[File], error) {
		return s.List(ctx, q)
	})
}

// Open returns a download with its bytes, which can be read from any place and which the caller
// closes.
// Errors: errs.NotFound, as Get.
func (s *Downloads) Open(ctx context.Context, id string) (File, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, nil, err
	}
	return s.files.Open(ctx, a.Tenant, id, ofDownloads(a))
}

func ofDownloads(a actor.Actor) func(File) bool {
	return func(d File) bool { return d.Username == a.User || d.Username == Superusers && a.Superuser }
}

// UncheckedDownloads has the methods of Downloads that check no permission: they need no actor and
// take any tenant. They are for the program that builds the services. Do not pass them what a
// request says before it has been checked.
type UncheckedDownloads struct{ s *Downloads }

// Unchecked returns the methods that check no permission.
func (s *Downloads) Unchecked() UncheckedDownloads { return UncheckedDownloads{s} }

// CreateForSuperusers creates a download, as Downloads.Create does, for the superusers of a tenant.
func (u UncheckedDownloads) CreateForSuperusers(
	ctx context.Context, tenant string, d Draft, write func(io.Writer) error,
) (File, error) {
	d.Username = Superusers
	return u.s.files.Create(ctx, tenant, d, write)
}

// Hooks returns what is done with downloads when users are renamed or deleted, and with expired
// ones: see Service.Hooks.
func (u UncheckedDownloads) Hooks() entity.Hooks { return u.s.files.Hooks() }
