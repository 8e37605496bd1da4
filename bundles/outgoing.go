package bundles

import (
	"io"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// Limits are the limits of archives that are read or made: see package archive.
type Limits = archive.Limits

// begin begins an archive within the service's own limits, so that it can be imported again.
func (s *Service) begin(w io.Writer) (*archive.Writer, error) {
	return archive.Begin(&capped{w, s.size, s.size}, s.limits)
}

// capped is a writer that fails after so many bytes.
type capped struct {
	io.Writer
	size, left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errs.New(errs.Invalid, "An archive must have at most %d bytes.", c.size)
	}
	return c.Writer.Write(p)
}

// checkFileIDs returns errs.Invalid if two entities with files have the same id, as an archive
// names files by the id alone.
func (s *Service) checkFileIDs(p idsByKind) error {
	seen := map[string]entity.Kind{}
	for _, kind := range s.kinds {
		if _, ok := s.transferers[kind].(entity.FileTransferer); !ok {
			continue
		}
		for _, id := range p[kind] {
			if other, ok := seen[id]; ok {
				return errs.New(
					errs.Invalid, "The %s %s has the id of a %s: one archive cannot hold the files of both.",
					kind, short(id), other,
				)
			}
			seen[id] = kind
		}
	}
	return nil
}
