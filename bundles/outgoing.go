package bundles

import (
	"io"

	"github.com/tenantcontent/tenantcontent/bundles/archive"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Limits bound an archive that is sent in or made: see package archive.
type Limits = archive.Limits

// begin begins an archive that can be sent in here again.
func (s *Service) begin(w io.Writer) (*archive.Writer, error) {
	return archive.Begin(&capped{w, s.size, s.size}, s.limits)
}

// capped takes so many bytes.
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

// apart refuses two entities with files that have one id: an archive tells files by that alone. Errors: errs.Invalid.
func (s *Service) apart(p plan) error {
	seen := map[string]entity.Kind{}
	for _, kind := range s.kinds {
		if _, ok := s.porters[kind].(entity.FilePorter); !ok {
			continue
		}
		for _, id := range p[kind] {
			if other, ok := seen[id]; ok {
				return errs.New(errs.Invalid, "The %s %s has the id of a %s: one archive cannot hold the files of both.", kind, short(id), other)
			}
			seen[id] = kind
		}
	}
	return nil
}
