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
	all, err := p.s.store.AllFiles(ctx, tenant, id)
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
	_, r, err := p.s.openFile(ctx, tenant, id, path)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// PutFile implements entity.FileTransferer.
func (p fileTransferer) PutFile(ctx context.Context, tenant, id string, f entity.File, r io.Reader) error {
	_, err := p.s.putFile(ctx, tenant, id, f.Path, f.ContentType, r, func(Entity) error { return nil })
	return transfer.Why(entity.Key{Kind: Library, ID: id}, err)
}

// KeepFiles implements entity.FileTransferer.
func (p fileTransferer) KeepFiles(ctx context.Context, tenant, id string, paths []string) error {
	keep := transfer.Set(paths)
	return p.s.store.InTx(ctx, func(ctx context.Context) error {
		all, err := p.s.store.AllFiles(ctx, tenant, id)
		if err != nil {
			return err
		}
		for _, f := range all {
			if keep[f.Path] {
				continue
			}
			if err := p.s.deleteFile(ctx, tenant, id, f.Path); err != nil {
				return err
			}
		}
		return nil
	})
}
