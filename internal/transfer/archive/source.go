package archive

import (
	"bufio"
	"cmp"
	"errors"
	"io"

	"github.com/tenantcontent/tenantcontent/errs"
)

// source stores the error of the underlying reader, and counts the packed bytes.
type source struct {
	in       io.Reader
	buf      *bufio.Reader
	n        int64 // packed
	unpacked int64
	err      error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// fault returns errs.Invalid with the message, or the error of the source if it failed.
func (s *source) fault(err error, message string) error {
	if s.err != nil {
		return s.err
	}
	return errs.Wrap(errs.Invalid, err, "%s", message)
}

// unpacked reads the output of gzip, within the limits.
type unpacked struct{ a *Reader }

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.a.zip.Read(p)
	u.a.src.unpacked += int64(n)
	out, l := u.a.src.unpacked, u.a.limits
	switch {
	case out > l.Bytes:
		return 0, errs.New(errs.Invalid, "The archive has more than %d bytes when it is unpacked.", l.Bytes)
	case out > free && out/l.Ratio > u.a.src.n:
		return 0, errs.New(errs.Invalid, "The archive unpacks to more than %d times its size.", l.Ratio)
	case u.a.heading && out > u.a.from+maxTar:
		return 0, errs.New(
			errs.Invalid, "The header of the archive's member behind %q has more than %d bytes.",
			cmp.Or(short(u.a.last), "the beginning"), maxTar,
		)
	}
	return n, err
}

// ration is a reader that fails after a number of bytes, so that a parser does not search without
// end.
type ration struct {
	io.Reader
	left int
}

func (r *ration) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, errs.New(errs.Invalid, "The archive's checksums.json has a text of more than %d bytes.", maxToken)
	}
	n, err := r.Reader.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
