package bundles

import (
	"errors"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// contents is the table of contents of an archive, made by reading it to its end.
type contents struct {
	header    archive.Header
	ids       map[entity.Kind]map[string]bool
	files     map[string][]string // id of an entity to the paths of its files
	fileKinds []entity.Kind       // the kinds of ids whose entities have files
	place     int                 // in order, of the last row
}

// survey checks an archive and lists its contents. Errors: errs.Invalid; the reader's own.
func (s *Service) survey(in io.ReadSeeker) (contents, error) {
	r, err := s.open(in, archive.NewReader)
	if err != nil {
		return contents{}, err
	}
	c, err := s.contents(r.Header())
	for err == nil {
		var m archive.Member
		if m, err = r.Next(); err == nil {
			err = c.add(m)
		}
	}
	if !errors.Is(err, io.EOF) {
		return contents{}, err
	}
	return c, nil
}

func (s *Service) open(
	in io.ReadSeeker, read func(io.Reader, archive.Limits) (*archive.Reader, error),
) (*archive.Reader, error) {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return read(in, s.limits)
}

// contents returns the contents of an archive of which only the header has been read.
func (s *Service) contents(h archive.Header) (contents, error) {
	c := contents{header: h, ids: map[entity.Kind]map[string]bool{}, files: map[string][]string{}}
	for kind := range h.Counts {
		switch s.transferers[kind].(type) {
		case nil:
			return contents{}, errs.New(
				errs.Invalid, "The archive has rows of the kind %q, which is not known here.",
				short(string(kind)),
			)
		case entity.FileTransferer:
			c.fileKinds = append(c.fileKinds, kind)
		}
		c.ids[kind] = map[string]bool{}
	}
	return c, nil
}

// add adds the next row or file of the archive.
func (c *contents) add(m archive.Member) error {
	switch {
	case m.File != nil && c.fileKind(m.ID) == "":
		return errs.New(
			errs.Invalid, "The archive's file %q of %q belongs to no row of it that has files.",
			short(m.File.Path), short(m.ID),
		)
	case m.File != nil:
		c.files[m.ID] = append(c.files[m.ID], m.File.Path)
		return nil
	case c.early(m.Kind):
		return errs.New(
			errs.Invalid, "The archive's rows of %s come after those of a kind that may need them: %s.",
			m.Kind, archive.Repack,
		)
	case slices.Contains(c.fileKinds, m.Kind) && c.fileKind(m.ID) != "":
		return errs.New(
			errs.Invalid,
			"The archive's %s %s has the id of an item of another kind: it is not clear whose its files are.",
			m.Kind, short(m.ID),
		)
	}
	c.ids[m.Kind][m.ID] = true
	return nil
}

// early reports whether rows of a kind must come before those of the last one.
func (c *contents) early(kind entity.Kind) bool {
	at := slices.Index(order, string(kind))
	if at >= 0 && at < c.place {
		return true
	}
	c.place = max(c.place, at)
	return false
}

// fileKind returns the kind with files that has a row with this id, "" for none.
func (c *contents) fileKind(id string) entity.Kind {
	for _, kind := range c.fileKinds {
		if c.ids[kind][id] {
			return kind
		}
	}
	return ""
}
