package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/escapes"
)

// Reader reads one archive. It trusts nothing: what is wrong is errs.Invalid and names the member. What it gave before
// counts only when Next has given io.EOF, which says that every checksum fits and that nothing follows.
type Reader struct {
	limits Limits
	src    *source
	zip    *gzip.Reader
	tar    *tar.Reader
	header Header

	members int
	counts  map[entity.Kind]int
	kinds   map[entity.Kind]bool // begun
	kind    entity.Kind          // of the last row
	files   bool                 // rows are over
	twins   map[string]struct{}
	sums    map[string]sum

	name string // of the file that is being read
	hash hash.Hash
	err  error // the first one; it stays

	again bool // it was found whole before
}

// NewReader reads the header. Errors: errs.Invalid; r's own, as they are.
func NewReader(r io.Reader, l Limits) (*Reader, error) {
	a := &Reader{
		limits: l.WithDefaults(), src: &source{in: r}, counts: map[entity.Kind]int{}, kinds: map[entity.Kind]bool{},
		twins: map[string]struct{}{}, sums: map[string]sum{}, hash: sha256.New(),
	}
	a.src.buf = bufio.NewReaderSize(a.src, 64<<10)
	var err error
	if a.zip, err = gzip.NewReader(a.src.buf); err != nil {
		return nil, a.src.fault(err, "The file is not an archive: it is not gzip.")
	}
	a.zip.Multistream(false)
	a.tar = tar.NewReader(&unpacked{a: a})
	return a, a.readHeader()
}

// Again reads an archive once more that a Reader has read to its end: it does not compute the checksums again, nor look
// whether rows are JSON. The bytes must be the same ones.
func Again(r io.Reader, l Limits) (*Reader, error) {
	a, err := NewReader(r, l)
	if err == nil {
		a.again = true
	}
	return a, err
}

// Header gives bundle.json.
func (a *Reader) Header() Header { return a.header }

// Next gives the next row or file; of a file, Read gives the bytes. At the end of an archive that is whole and unchanged
// it gives io.EOF. Errors: errs.Invalid; the source's own, as they are.
func (a *Reader) Next() (Member, error) {
	if a.err != nil {
		return Member{}, a.err
	}
	var m Member
	if m, a.err = a.next(); a.err != nil {
		return Member{}, a.err
	}
	return m, nil
}

// Read reads the file that Next gave. Errors: as Next.
func (a *Reader) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if a.name == "" {
		return 0, io.EOF
	}
	n, err := a.tar.Read(p)
	if !a.again {
		a.hash.Write(p[:n])
	}
	if err == io.EOF {
		a.sums[a.name], a.name = sum(a.hash.Sum(nil)), ""
		return n, io.EOF
	}
	if err != nil {
		a.err = a.fault(err)
	}
	return n, a.err
}

func (a *Reader) readHeader() error {
	h, err := a.tar.Next()
	if err != nil {
		return a.fault(err)
	}
	if h.Name != headerName {
		return bad(h.Name, "is first, but bundle.json must be")
	}
	if err := a.plain(h); err != nil {
		return err
	}
	raw, err := a.whole(h, maxHeader)
	if err != nil {
		return err
	}
	// The format first: a newer version may have another shape.
	var is struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(raw, &is); err != nil || is.Format != Format {
		return errs.New(errs.Invalid, "The archive's bundle.json does not say the format %s.", Format)
	}
	if is.Version != Version {
		return errs.New(errs.Invalid, "The archive's bundle.json says version %d: this program reads version %d.", is.Version, Version)
	}
	if err := json.Unmarshal(raw, &a.header); err != nil {
		return errs.Wrap(errs.Invalid, err, "The archive's bundle.json cannot be read.")
	}
	for kind, n := range a.header.Counts {
		if n < 0 || kind == "" {
			return errs.New(errs.Invalid, "The archive's bundle.json counts %d of %q.", n, kind)
		}
	}
	return nil
}

func (a *Reader) next() (Member, error) {
	if a.name != "" { // a file that nobody read to its end: its checksum counts all the same
		if _, err := io.Copy(io.Discard, a); err != nil {
			return Member{}, err
		}
	}
	h, err := a.tar.Next()
	if errors.Is(err, io.EOF) {
		return Member{}, errs.New(errs.Invalid, "The archive has no checksums.json at its end.")
	}
	if err != nil {
		return Member{}, a.fault(err)
	}
	if err := a.plain(h); err != nil {
		return Member{}, err
	}
	if h.Name == sumsName && a.again {
		return Member{}, io.EOF
	}
	if h.Name == sumsName {
		if err := a.finish(h); err != nil {
			return Member{}, err
		}
		return Member{}, io.EOF
	}
	m, err := parse(h.Name)
	if err != nil {
		return Member{}, err
	}
	if m.File != nil {
		a.files, a.name = true, h.Name
		m.File.Size, m.File.ContentType = h.Size, h.PAXRecords[typeRecord]
		a.hash.Reset()
		return m, nil
	}
	return a.row(h, m)
}

// plain refuses what no member may be: links and devices, a name that was there, what the format has no use for.
func (a *Reader) plain(h *tar.Header) error {
	if a.members++; a.members > a.limits.Members {
		return errs.New(errs.Invalid, "The archive has more than %d members.", a.limits.Members)
	}
	if h.Typeflag != tar.TypeReg || h.Linkname != "" || h.Format&(tar.FormatUSTAR|tar.FormatPAX) == 0 || h.Format&tar.FormatGNU != 0 {
		return bad(h.Name, "is not a plain file")
	}
	for record := range h.PAXRecords {
		if record != "path" && record != typeRecord {
			return bad(h.Name, "has the extended header %q", record)
		}
	}
	if t, ok := h.PAXRecords[typeRecord]; ok && (len(t) > 255 || !utf8.ValidString(t)) {
		return bad(h.Name, "has a bad content type")
	}
	twin := twinOf(h.Name)
	if _, taken := a.twins[twin]; taken {
		return bad(h.Name, "is there twice, or another one differs in case alone")
	}
	a.twins[twin] = struct{}{}
	return cleanName(h.Name)
}

// row reads a row. Kinds come together, and before all files.
func (a *Reader) row(h *tar.Header, m Member) (Member, error) {
	if m.Kind != a.kind {
		if a.files || a.kinds[m.Kind] {
			return Member{}, bad(h.Name, "is out of order")
		}
		a.kind, a.kinds[m.Kind] = m.Kind, true
	}
	if a.files {
		return Member{}, bad(h.Name, "is out of order")
	}
	if a.counts[m.Kind]++; a.counts[m.Kind] > a.header.Counts[m.Kind] {
		return Member{}, bad(h.Name, "is one more than bundle.json counts")
	}
	raw, err := a.whole(h, a.limits.Row)
	if err != nil {
		return Member{}, err
	}
	m.JSON = raw
	if a.again {
		return m, nil
	}
	if !json.Valid(raw) || !utf8.Valid(raw) || raw[0] != '{' {
		return Member{}, bad(h.Name, "is not a JSON object")
	}
	if escapes.Bad(raw) {
		return Member{}, bad(h.Name, "has a NUL character or half of a surrogate pair")
	}
	return m, nil
}

// whole reads a member that has at most so many bytes.
func (a *Reader) whole(h *tar.Header, most int64) ([]byte, error) {
	if h.Size > most {
		return nil, bad(h.Name, "has %d bytes: at most %d are allowed", h.Size, most)
	}
	raw := make([]byte, h.Size)
	if _, err := io.ReadFull(a.tar, raw); err != nil {
		return nil, a.fault(err)
	}
	if !a.again {
		a.sums[h.Name] = sha256.Sum256(raw)
	}
	return raw, nil
}

// finish compares the checksums and makes sure that nothing follows.
func (a *Reader) finish(h *tar.Header) error {
	if len(h.PAXRecords) > 0 {
		return bad(h.Name, "has an extended header")
	}
	if err := a.compare(json.NewDecoder(a.tar)); err != nil {
		return err
	}
	for kind, n := range a.header.Counts {
		if a.counts[kind] != n {
			return errs.New(errs.Invalid, "The archive has %d rows of %s: bundle.json counts %d.", a.counts[kind], kind, n)
		}
	}
	if h, err := a.tar.Next(); err == nil {
		return bad(h.Name, "comes after checksums.json")
	} else if !errors.Is(err, io.EOF) {
		return a.fault(err)
	}
	// tar may pad with zeros what it packs, and gzip is over then.
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

// compare reads checksums.json piece by piece: it may be long.
func (a *Reader) compare(d *json.Decoder) error {
	broken := func(err error) error {
		if a.src.err != nil || errs.CodeOf(err) != errs.Internal {
			return a.fault(err)
		}
		return errs.New(errs.Invalid, "The archive's checksums.json cannot be read.")
	}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return broken(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return broken(err)
		}
		value, err := d.Token()
		if err != nil {
			return broken(err)
		}
		key, _ := name.(string)
		want, ok := a.sums[key]
		if !ok {
			return errs.New(errs.Invalid, "The archive's checksums.json names %q, which is not there or is named twice.", key)
		}
		if value != want.String() {
			return bad(key, "does not fit its checksum")
		}
		delete(a.sums, key)
	}
	if _, err := d.Token(); err != nil {
		return broken(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return broken(err)
	}
	for name := range a.sums {
		return bad(name, "has no checksum")
	}
	return nil
}

// fault tells an archive that is bad from one that could not be read.
func (a *Reader) fault(err error) error {
	if errs.CodeOf(err) != errs.Internal {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.src.fault(err, "The archive is cut off.")
	}
	return a.src.fault(err, "The archive is damaged.")
}

// source keeps what went wrong below, and counts the packed bytes.
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

func (s *source) fault(err error, message string) error {
	if s.err != nil {
		return s.err
	}
	return errs.Wrap(errs.Invalid, err, "%s", message)
}

// unpacked is what gzip gives, as much as the limits allow.
type unpacked struct{ a *Reader }

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.a.zip.Read(p)
	u.a.src.unpacked += int64(n)
	out, l := u.a.src.unpacked, u.a.limits
	switch {
	case out > l.Bytes:
		return 0, errs.New(errs.Invalid, "The archive has more than %d bytes when it is unpacked.", l.Bytes)
	case out > free && out > l.Ratio*u.a.src.n:
		return 0, errs.New(errs.Invalid, "The archive unpacks to more than %d times its size.", l.Ratio)
	}
	return n, err
}
