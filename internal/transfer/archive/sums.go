package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"

	"github.com/tenantcontent/tenantcontent/errs"
)

// finish compares the checksums and checks that nothing follows.
func (a *Reader) finish(h *tar.Header) error {
	if _, ok := h.PAXRecords[typeRecord]; ok {
		return bad(h.Name, "has a content type")
	}
	// The size with each byte of a name escaped, and a margin.
	if most := int64(6*a.names.bytes + 256*len(a.names.seen)); h.Size > most {
		return bad(
			h.Name,
			"has %d bytes: at most %d are allowed for the members before it. If the archive was packed by hand, %s",
			h.Size, most, Repack,
		)
	}
	if err := a.compare(); err != nil {
		return err
	}
	for kind, n := range a.header.Counts {
		if a.counts[kind] != n {
			return errs.New(
				errs.Invalid, "The archive has %d rows of %s: bundle.json counts %d.", a.counts[kind],
				short(string(kind)), n,
			)
		}
	}
	if err := a.names.clash(); err != nil {
		return err
	}
	return a.over()
}

// over checks that nothing follows checksums.json.
func (a *Reader) over() error {
	if h, err := a.head(); err == nil {
		return bad(h.Name, "comes after checksums.json: %s", Repack)
	} else if !errors.Is(err, io.EOF) {
		return a.fault(err)
	}
	// tar may write zeros as padding, after which gzip must end.
	rest, err := io.ReadAll(io.LimitReader(&unpacked{a: a}, 64<<10))
	if err != nil {
		return a.fault(err)
	}
	if len(rest) == 64<<10 || len(bytes.Trim(rest, "\x00")) > 0 {
		return errs.New(errs.Invalid, "The archive goes on after its end.")
	}
	if _, err := a.src.buf.ReadByte(); err == nil {
		return errs.New(errs.Invalid, "The file goes on after the archive.")
	} else if !errors.Is(err, io.EOF) {
		return a.fault(err)
	}
	return nil
}

// compare reads checksums.json token by token, because it may be long.
func (a *Reader) compare() error {
	in := &ration{Reader: a.tar}
	d := json.NewDecoder(in)
	broken := errs.New(errs.Invalid, "The archive's checksums.json cannot be read.")
	token := func() (json.Token, error) { // the end of the member is the end of the JSON, too
		in.left = maxToken
		t, err := d.Token()
		switch {
		case errors.Is(err, io.EOF):
			return io.EOF, nil
		case err != nil && a.src.err == nil && errs.CodeOf(err) == errs.Internal:
			return nil, broken
		case err != nil:
			return nil, a.fault(err)
		}
		return t, nil
	}
	if t, err := token(); err != nil || t != json.Delim('{') {
		return cmp.Or(err, broken)
	}
	for {
		t, err := token()
		if err != nil {
			return err
		}
		if t == json.Delim('}') {
			break
		}
		name, ok := t.(string)
		if t, err = token(); err != nil || !ok {
			return cmp.Or(err, broken)
		}
		if err := a.fits(name, t); err != nil {
			return err
		}
	}
	if t, err := token(); err != nil || t != io.EOF {
		return cmp.Or(err, broken)
	}
	for name := range a.sums {
		return bad(name, "has no checksum")
	}
	return nil
}

// fits compares one checksum, once.
func (a *Reader) fits(name string, given json.Token) error {
	want, ok := a.sums[name]
	if !ok {
		return errs.New(
			errs.Invalid,
			"The archive's checksums.json names %q, which does not come before it or is named twice. If the "+
				"archive was packed by hand, %s.",
			short(name), Repack,
		)
	}
	delete(a.sums, name)
	if given != want.String() {
		return bad(name, "does not fit its checksum")
	}
	return nil
}
