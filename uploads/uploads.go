// Package uploads holds files that a user staged for another request, such as an import, for a day.
//
// httpapi, the root and hosts import it. Uploads are files: see package files.
package uploads

import (
	"context"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/secure/guard"
)

// Upload is one staged file.
type Upload = files.File

// How many bytes an upload, and all uploads of a user that have not expired, may have.
const (
	defaultLimit = 256 << 20
	defaultQuota = 2 << 30
)

// Service implements the rules for uploads: an upload is for its uploader and the tenant's superusers alone, until
// it expires.
type Service struct {
	files *files.Service
	limit int64
}

// Options configure a Service. Store and Blobs are required.
type Options struct {
	Store    files.Store
	Blobs    Blobs
	Now      func() time.Time // default time.Now
	NewID    func() string    // default UUIDv7
	Limit    int64            // bytes of one upload; default 256 MiB
	Quota    int64            // bytes of all uploads of a user; default 2 GiB
	Lifetime time.Duration    // default 24 h
}

// New returns a Service.
func New(o Options) *Service {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.Quota == 0 {
		o.Quota = max(defaultQuota, o.Limit)
	}
	return &Service{limit: o.Limit, files: files.New(files.Options{
		Store: o.Store, Blobs: o.Blobs, Noun: "Upload", Table: "tc_uploads", Now: o.Now, NewID: o.NewID, Limit: o.Limit, Quota: o.Quota, Lifetime: o.Lifetime,
	})}
}

// Create streams r into a new upload; after an error there is none. The name is the last part of the path filename, "upload" if
// that is empty; contentType may be "" for application/octet-stream. An error of r is returned as it is.
// Errors: errs.Invalid for a bad name or content type; errs.TooLarge; errs.Full for what the
// caller's uploads, or the tenant's storage, have no room for: before r is read if the size is
// known (blobs.WithSize).
func (s *Service) Create(ctx context.Context, filename, contentType string, r io.Reader) (Upload, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Upload{}, err
	}
	draft := files.Draft{Username: a.User, Filename: filename, ContentType: contentType}
	return s.files.Create(ctx, a.Tenant, draft, func(w io.Writer) error {
		_, err := io.Copy(w, r)
		return err
	})
}

// Used returns the bytes of all uploads of the caller, and how many these may be.
func (s *Service) Used(ctx context.Context) (used, allowed int64, err error) {
	a, err := actor.From(ctx)
	if err != nil {
		return 0, 0, err
	}
	return s.files.Used(ctx, a.Tenant, a.User)
}

// Get returns an upload. Errors: errs.NotFound, also for another user's and an expired one.
func (s *Service) Get(ctx context.Context, id string) (Upload, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Upload{}, err
	}
	return s.files.Get(ctx, a.Tenant, id, visible(a))
}

// Open returns an upload with its bytes, which can be read from any place and which the caller closes.
// Errors: errs.NotFound, as Get.
func (s *Service) Open(ctx context.Context, id string) (Upload, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Upload{}, nil, err
	}
	return s.files.Open(ctx, a.Tenant, id, visible(a))
}

// Delete removes an upload. Errors: errs.NotFound, as Get.
func (s *Service) Delete(ctx context.Context, id string) error {
	a, err := actor.From(ctx)
	if err != nil {
		return err
	}
	u, err := s.files.Get(ctx, a.Tenant, id, visible(a))
	if err != nil {
		return err
	}
	if err := guard.Check(ctx, "upload", u); err != nil { // nothing changes an upload but its removal
		return err
	}
	return s.files.Delete(ctx, a.Tenant, u.ID)
}

func visible(a actor.Actor) func(Upload) bool {
	return func(u Upload) bool { return u.Username == a.User || a.Superuser }
}

// Limit returns how many bytes an upload has at most.
func (u Unchecked) Limit() int64 { return u.s.limit }
