package content

import (
	"context"
	"io"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// fileTransferer is the transferer of libraries.
type fileTransferer struct {
	entity.Transferer
	s *Service
}

var _ entity.FileTransferer = fileTransferer{}

// Files implements entity.FileTransferer.
func (p fileTransferer) Files(ctx context.Context, tenant, id string) ([]entity.File, error) {
	all, err := p.s.files.All(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	files := make([]entity.File, len(all))
	for i, f := range all {
		files[i] = entity.File{Path: f.Path, ContentType: f.ContentType, Size: f.Size}
	}
	return files, nil
}

// OpenFile implements entity.FileTransferer.
func (p fileTransferer) OpenFile(ctx context.Context, tenant, id, path string) (io.ReadCloser, error) {
	_, r, err := p.s.files.Open(ctx, tenant, id, path)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// PutFile implements entity.FileTransferer.
func (p fileTransferer) PutFile(ctx context.Context, tenant, id string, f entity.File, r io.Reader) error {
	_, err := p.s.files.Put(ctx, tenant, id, f.Path, f.ContentType, r, p.s.lockLibrary(tenant, id, anybody))
	return transfer.Why(entity.Key{Kind: Library, ID: id}, err)
}

// KeepFiles implements entity.FileTransferer.
func (p fileTransferer) KeepFiles(ctx context.Context, tenant, id string, paths []string) error {
	return p.s.store.InTx(ctx, func(ctx context.Context) error {
		if err := p.s.lockLibrary(tenant, id, anybody)(ctx); err != nil {
			return err
		}
		return p.s.files.Keep(ctx, tenant, id, paths)
	})
}

// anybody may change a library: bundles has checked who imports.
func anybody(Entity) error { return nil }
