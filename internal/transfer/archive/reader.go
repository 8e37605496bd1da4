package archive

import (
	"archive/tar"
	"bufio"
	"cmp"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Reader reads an archive. It returns errs.Invalid, naming the member, for an invalid archive. Its
// results are valid only after Next has returned io.EOF, which means that all checksums match and
// nothing follows. Its memory is bounded by the Limits, whatever the archive contains.
type Reader struct {
	limits Limits
	src    *source
	zip    *gzip.Reader
	tar    *tar.Reader
	header Header

	names  names
	counts map[entity.Kind]int
	kinds  map[entity.Kind]bool // kinds whose rows have begun
	kind   entity.Kind          // kind of the last row
	files  bool                 // all rows have been read
	sums   map[string]sum

	last    string // name of the last member
	heading bool   // tar is reading the headers of a member
	from    int64  // offset at which the headers begin
	open    bool   // the last member is a file that is being read
	hash    hash.Hash
	err     error // the first error, which all calls return

	again bool // the archive has been checked before
}

// NewReader returns a Reader that has read the header. It returns errs.Invalid, or the errors of r
// unchanged.
func NewReader(r io.Reader, l Limits) (*Reader, error) {
	l = l.WithDefaults()
	a := &Reader{
		limits: l, src: &source{in: r},
		names: newNames(l), counts: map[entity.Kind]int{}, kinds: map[entity.Kind]bool{},
		sums: map[string]sum{}, hash: sha256.New(),
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

// Reread returns a Reader for an archive that a Reader has already read to its end. It does not
// check the checksums and the JSON of rows again. The bytes must be the same.
func Reread(r io.Reader, l Limits) (*Reader, error) {
	a, err := NewReader(r, l)
	if err == nil {
		a.again = true
	}
	return a, err
}

// Header returns bundle.json.
func (a *Reader) Header() Header { return a.header }

// Next returns the next row or file. Read returns the bytes of a file. At the end of a valid
// archive Next returns io.EOF. It returns errs.Invalid, or the errors of the source unchanged.
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

// Read reads the file that Next returned. It returns errors as Next does.
func (a *Reader) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	if !a.open {
		return 0, io.EOF
	}
	n, err := a.tar.Read(p)
	if !a.again {
		a.hash.Write(p[:n])
	}
	if err == io.EOF {
		a.note(sum(a.hash.Sum(nil)))
		a.open = false
		return n, io.EOF
	}
	if err != nil {
		a.err = a.fault(err)
	}
	return n, a.err
}

// note stores the checksum of the last member.
func (a *Reader) note(s sum) {
	if !a.again {
		a.sums[a.last] = s
	}
}

func (a *Reader) readHeader() error {
	h, err := a.head()
	if err != nil {
		return a.fault(err)
	}
	if h.Name != headerName {
		return bad(h.Name, "is first, but bundle.json must be: %s", Repack)
	}
	if err := a.plain(h); err != nil {
		return err
	}
	raw, err := a.whole(h, maxHeader)
	if err != nil {
		return err
	}
	if a.header, err = parseHeader(raw); err != nil {
		return err
	}
	return a.header.checkMembers(a.limits)
}

// head reads the tar header of the next member, up to maxTar bytes. It skips the folders that tar
// adds when a folder is packed, and removes ./ from names. It returns the errors of tar.
func (a *Reader) head() (*tar.Header, error) {
	for {
		a.heading, a.from = true, a.src.unpacked
		h, err := a.tar.Next()
		a.heading = false
		if err != nil {
			return nil, err
		}
		h.Name = strings.TrimPrefix(h.Name, "./")
		if h.Typeflag != tar.TypeDir || h.Size != 0 {
			return h, nil
		}
	}
}

func (a *Reader) next() (Member, error) {
	if a.open { // the rest of a file must be read for its checksum
		if _, err := io.Copy(io.Discard, a); err != nil {
			return Member{}, err
		}
	}
	h, err := a.head()
	if errors.Is(err, io.EOF) {
		return Member{}, errs.New(
			errs.Invalid, "The archive has no checksums.json at its end: if it was packed by hand, %s.", Repack,
		)
	}
	if err != nil {
		return Member{}, a.fault(err)
	}
	if err := a.plain(h); err != nil {
		return Member{}, err
	}
	switch {
	case h.Name == sumsName && a.again:
		return Member{}, io.EOF
	case h.Name == sumsName:
		return Member{}, cmp.Or(a.finish(h), io.EOF)
	}
	m, err := parse(a.last)
	if err != nil {
		return Member{}, err
	}
	if m.File == nil {
		return a.row(h, m)
	}
	a.files, a.open = true, true
	m.File.Size, m.File.ContentType = h.Size, strings.Clone(h.PAXRecords[typeRecord])
	a.hash.Reset()
	return m, nil
}

// plain returns errs.Invalid for links, devices, duplicate names and extended headers that change
// what a file is.
func (a *Reader) plain(h *tar.Header) error {
	if h.Typeflag != tar.TypeReg || h.Linkname != "" {
		return bad(h.Name, "is not a plain file")
	}
	for record := range h.PAXRecords {
		if record != typeRecord && (record != sizeRecord || h.Size <= maxOctal) && !describes(record) {
			return bad(h.Name, "has the extended header %q", short(record))
		}
	}
	if t, ok := h.PAXRecords[typeRecord]; ok && !typeFits(t) {
		return bad(h.Name, "has a bad content type")
	}
	if h.Size > maxOctal && h.Size > a.limits.Bytes-a.src.unpacked {
		return bad(
			h.Name, "has %d bytes: an archive must not have more than %d bytes when it is unpacked", h.Size,
			a.limits.Bytes,
		)
	}
	a.last = strings.Clone(h.Name) // tar's string is a part of a larger one
	return a.names.add(a.last)
}

// describes reports whether an extended header is one with which programs describe packed files.
func describes(record string) bool {
	switch record {
	case "path", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "comment":
		return true
	}
	return strings.HasPrefix(record, "SCHILY.") || strings.HasPrefix(record, "LIBARCHIVE.")
}

// Repack is the part of a sentence that explains what to do about an archive that was packed in
// another order: checksums.json has the names in the order of the archive.
const Repack = `in the folder that the archive was unpacked into, run: tar -czf ../archive.tgz --no-recursion -T ` +
	`<(sed -n 's/^"\(.*\)": "[0-9a-f]*",\?$/\1/p' checksums.json; echo checksums.json)`

func typeFits(t string) bool {
	return len(t) <= maxType && utf8.ValidString(t) && strings.IndexByte(t, 0) < 0
}

// row reads a row. Rows of a kind must be consecutive, and precede all files.
func (a *Reader) row(h *tar.Header, m Member) (Member, error) {
	if a.files || m.Kind != a.kind && a.kinds[m.Kind] {
		return Member{}, bad(h.Name, "is out of order: %s", Repack)
	}
	a.kind, a.kinds[m.Kind] = m.Kind, true
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
	if wrong := wrongObject(raw); wrong != "" {
		return Member{}, bad(h.Name, "%s", wrong)
	}
	return m, nil
}

// whole reads a member of at most most bytes.
func (a *Reader) whole(h *tar.Header, most int64) ([]byte, error) {
	if h.Size > most {
		return nil, bad(h.Name, "has %d bytes: at most %d are allowed", h.Size, most)
	}
	raw := make([]byte, h.Size)
	if _, err := io.ReadFull(a.tar, raw); err != nil {
		return nil, a.fault(err)
	}
	if !a.again {
		a.note(sha256.Sum256(raw))
	}
	return raw, nil
}

// fault returns errs.Invalid for an invalid archive, and the source's error if reading failed.
func (a *Reader) fault(err error) error {
	if errs.CodeOf(err) != errs.Internal {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return a.src.fault(err, "The archive is cut off.")
	}
	return a.src.fault(err, "The archive is damaged.")
}
