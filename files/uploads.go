package files

import (
	"cmp"
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// How many bytes an upload, and all uploads of a user that have not expired, may have.
const (
	defaultLimit = 256 << 20
	defaultQuota = 2 << 30
)

// Uploads are the files that users staged for another request, such as an import. An upload is for
// its uploader and the tenant's superusers alone, until it expires.
type Uploads struct {
	files *Service
	limit int64
}

// NewUploads returns Uploads. An upload has at most 256 MiB, and all of a user have 2 GiB, unless o
// has other limits. It sets what tells uploads from other files: Noun, Kind and Table.
func NewUploads(o Options) *Uploads {
	o.Noun, o.Kind, o.Table = "Upload", KindUpload, "tc_uploads"
	o.Limit = cmp.Or(o.Limit, defaultLimit)
	o.Quota = cmp.Or(o.Quota, max(defaultQuota, o.Limit))
	return &Uploads{files: New(o), limit: o.Limit}
}

// Create streams r into a new upload of the caller, whatever d.Username is; after an error there is
// none. An error of r is returned as it is.
// Errors: errs.Invalid for a bad name or content type; errs.TooLarge; errs.Full for what the
// caller's uploads, or the tenant's storage, have no room for: before r is read if the size is
// known (blobs.WithSize).
func (s *Uploads) Create(ctx context.Context, d Draft, r io.Reader) (File, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, err
	}
	d.Username = a.User
	return s.files.Create(ctx, a.Tenant, d, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// Used returns the bytes of all uploads of the caller, and how many these may be.
func (s *Uploads) Used(ctx context.Context) (used, allowed int64, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return 0, 0, err
	}
	return s.files.Used(ctx, a.Tenant, a.User)
}

// Get returns an upload. Errors: errs.NotFound, also for another user's and an expired one.
func (s *Uploads) Get(ctx context.Context, id string) (File, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, err
	}
	return s.files.Get(ctx, a.Tenant, id, ofUploads(a))
}

// Open returns an upload with its bytes, which can be read from any place and which the caller
// closes.
// Errors: errs.NotFound, as Get.
func (s *Uploads) Open(ctx context.Context, id string) (File, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return File{}, nil, err
	}
	return s.files.Open(ctx, a.Tenant, id, ofUploads(a))
}

// Delete removes an upload. Errors: errs.NotFound, as Get.
func (s *Uploads) Delete(ctx context.Context, id string) error {
	if of := (entity.Subject{Kind: KindUpload, ID: id, Action: entity.ActionDelete}); s.files.o.Feed.Wanted(ctx, of) {
		return s.files.o.Feed.Do(ctx, of, func(ctx context.Context) error { return s.Delete(ctx, id) })
	}
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	u, err := s.files.Get(ctx, a.Tenant, id, ofUploads(a))
	if err != nil {
		return err
	}
	if err := guard.Check(ctx, "upload", u); err != nil { // nothing changes an upload but its removal
		return err
	}
	return s.files.Delete(ctx, a.Tenant, u.ID)
}

func ofUploads(a actor.Actor) func(File) bool {
	return func(u File) bool { return u.Username == a.User || a.Superuser }
}

// UncheckedUploads has the methods of Uploads that check no permission: they need no actor and take
// any tenant. They are for the program that builds the services. Do not pass them what a request
// says before it has been checked.
type UncheckedUploads struct{ s *Uploads }

// Unchecked returns the methods that check no permission.
func (s *Uploads) Unchecked() UncheckedUploads { return UncheckedUploads{s} }

// Hooks returns what is done with uploads when users are renamed or deleted, and with expired ones:
// see Service.Hooks.
func (u UncheckedUploads) Hooks() entity.Hooks { return u.s.files.Hooks() }

// Limit returns how many bytes an upload has at most.
func (u UncheckedUploads) Limit() int64 { return u.s.limit }
