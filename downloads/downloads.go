// Package downloads stores files that were made for a user, such as an export, for a day.
//
// httpapi, the root and hosts import it. Downloads are files: see package files.
package downloads

import (
	"context"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/paging"
)

// Download is one file to fetch.
type Download = files.File

// Superusers is the Username of a download that the service itself made: it is for all superusers of the tenant. No user
// can be called so.
const Superusers = "*"

// Service implements the rules for downloads: a download is for its creator alone, or for the superusers of its
// tenant, until it expires.
type Service struct{ files *files.Service }

// Options configure a Service. Store and Blobs are required.
type Options struct {
	Store    files.Store
	Blobs    Blobs
	Now      func() time.Time // default time.Now
	NewID    func() string    // default UUIDv7
	Lifetime time.Duration    // default 24 h
}

// New returns a Service.
func New(o Options) *Service {
	return &Service{files.New(files.Options{
		Store: o.Store, Blobs: o.Blobs, Noun: "Download", Table: "tc_downloads", Now: o.Now, NewID: o.NewID, Lifetime: o.Lifetime,
	})}
}

// Create creates a download with the bytes that write writes. write runs in this goroutine, and may read in the transaction in
// ctx; it must close its rows before it writes. After an error or a panic there is no download; an error from write is returned
// as it is. The name is the last part of the path filename, "download" if that is empty; contentType may be "" for
// application/octet-stream. Errors: errs.Invalid for a bad name or content type.
func (s *Service) Create(ctx context.Context, filename, contentType string, write func(io.Writer) error) (Download, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Download{}, err
	}
	return s.files.Create(ctx, a.Tenant, files.Draft{Username: a.User, Filename: filename, ContentType: contentType}, write)
}

// Get returns a download: the caller's own or, for a superuser, one that is for all superusers. Errors: errs.NotFound, also
// for another user's, superuser or not, and an expired one.
func (s *Service) Get(ctx context.Context, id string) (Download, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Download{}, err
	}
	return s.files.Get(ctx, a.Tenant, id, visible(a))
}

// Page returns a page of what Get returns: the caller's downloads and, for a superuser, those that are for all superusers. The
// newest are first, or the oldest when it is sorted by createdAt. Errors: errs.Invalid for a sort or cursor that does not
// fit.
func (s *Service) Page(ctx context.Context, q paging.Query) (paging.Page[Download], error) {
	a, err := actor.From(ctx)
	if err != nil {
		return paging.Page[Download]{}, err
	}
	users := []string{a.User}
	if a.Superuser {
		users = append(users, Superusers)
	}
	return s.files.Page(ctx, a.Tenant, users, q)
}

// Open returns a download with its bytes, which can be read from any place and which the caller closes.
// Errors: errs.NotFound, as Get.
func (s *Service) Open(ctx context.Context, id string) (Download, io.ReadSeekCloser, error) {
	a, err := actor.From(ctx)
	if err != nil {
		return Download{}, nil, err
	}
	return s.files.Open(ctx, a.Tenant, id, visible(a))
}

func visible(a actor.Actor) func(Download) bool {
	return func(d Download) bool { return d.Username == a.User || d.Username == Superusers && a.Superuser }
}
