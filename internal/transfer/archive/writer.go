package archive

import (
	"archive/tar"
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Writer writes an archive. It returns errs.Invalid for content that a Reader with the same Limits
// would refuse. The archive is valid only after Close has succeeded.
type Writer struct {
	limits Limits
	out    *bufio.Writer
	zip    *packer
	tar    *tar.Writer
	names  names
	counts map[entity.Kind]int
	kinds  map[entity.Kind]bool // kinds whose rows have begun
	kind   entity.Kind          // kind of the last row
	files  bool                 // all rows have been written
	sums   []line
}

// line is a member and its checksum.
type line struct {
	name string
	sum  sum
}

// NewWriter returns a Writer that has written the header. It returns errors as Header.Check does.
func NewWriter(w io.Writer, h Header, l Limits) (*Writer, error) {
	a, err := Begin(w, l)
	if err != nil {
		return nil, err
	}
	return a, a.Header(h)
}

// Begin begins an archive before its header is known, so that a client receives the first bytes at
// once. The caller must call Header next.
func Begin(w io.Writer, l Limits) (*Writer, error) {
	l = l.WithDefaults()
	out := bufio.NewWriterSize(w, 64<<10)
	zip, err := newPacker(out, l)
	if err != nil {
		return nil, err
	}
	return &Writer{
		limits: l, out: out, zip: zip, tar: tar.NewWriter(zip), names: newNames(l), counts: map[entity.Kind]int{},
		kinds: map[entity.Kind]bool{},
	}, out.Flush()
}

// Header writes bundle.json. It returns errors as NewWriter does.
func (a *Writer) Header(h Header) error {
	for k, n := range h.Counts {
		a.counts[k] = n
	}
	raw, err := h.bytes(a.limits)
	if err != nil {
		return err
	}
	return a.member(headerName, raw)
}

// Row adds a row. Rows of a kind must be consecutive, with different ids. It returns errs.Invalid
// for a row that a Reader would refuse.
func (a *Writer) Row(r entity.Row) error {
	name := rowName(r.Key)
	if a.files || r.Kind != a.kind && a.kinds[r.Kind] {
		return fmt.Errorf("archive: %s is out of order", name)
	}
	a.kind, a.kinds[r.Kind] = r.Kind, true
	if int64(len(r.JSON)) > a.limits.Row {
		return errs.New(
			errs.Invalid, "The %s %s has %d bytes: an archive takes at most %d.", r.Kind, short(r.ID),
			len(r.JSON), a.limits.Row,
		)
	}
	if wrong := wrongObject(r.JSON); wrong != "" {
		return bad(name, "%s", wrong)
	}
	a.counts[r.Kind]--
	return a.member(name, r.JSON)
}

// File adds a file of an entity whose row was added: f.Size bytes of r. Files must follow all rows.
// It returns errs.Invalid for a path or content type that a Reader would refuse, and the errors of
// r.
func (a *Writer) File(id string, f entity.File, r io.Reader) error {
	a.files = true
	name := fileName(id, f.Path)
	if !typeFits(f.ContentType) {
		return bad(name, "has a bad content type")
	}
	if err := a.begin(name, f.ContentType, f.Size); err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(a.tar, h), r)
	if err == nil && n != f.Size {
		err = fmt.Errorf("archive: %s has %d bytes, not %d", name, n, f.Size)
	}
	a.sums = append(a.sums, line{name, sum(h.Sum(nil))})
	return err
}

// Close ends the archive with its checksums. It does not close the underlying writer. It returns
// errs.Invalid if a file is a folder of another one, or the members or bytes exceed a limit.
func (a *Writer) Close() error {
	for kind, n := range a.counts {
		if n != 0 {
			return fmt.Errorf("archive: %d rows of %s less than the header says", n, kind)
		}
	}
	if err := a.names.clash(); err != nil {
		return err
	}
	if err := a.checksums(); err != nil {
		return err
	}
	if err := a.tar.Close(); err != nil {
		return err
	}
	if err := a.zip.Close(); err != nil {
		return err
	}
	return a.out.Flush()
}

// checksums writes checksums.json: one JSON object with a line for each member, in the order of the
// archive.
func (a *Writer) checksums() error {
	size := int64(len("{\n\n}\n"))
	for i, l := range a.sums {
		size += int64(len(l.text(i == 0)))
	}
	if err := a.begin(sumsName, "", size); err != nil {
		return err
	}
	_, _ = io.WriteString(a.tar, "{\n") // the tar writer returns its error later
	for i, l := range a.sums {
		if _, err := a.tar.Write(l.text(i == 0)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(a.tar, "\n}\n")
	return err
}

func (l line) text(first bool) []byte {
	quoted, _ := json.Marshal(l.name) // a string can always be encoded
	text := append(append(quoted, `: "`...), l.sum.String()+`"`...)
	if first {
		return text
	}
	return append([]byte(",\n"), text...)
}

func (a *Writer) member(name string, content []byte) error {
	if err := a.begin(name, "", int64(len(content))); err != nil {
		return err
	}
	a.sums = append(a.sums, line{name, sha256.Sum256(content)})
	_, err := a.tar.Write(content)
	return err
}

// begin writes the tar header of a member.
func (a *Writer) begin(name, contentType string, size int64) error {
	if err := a.names.add(name); err != nil {
		return err
	}
	if name != headerName && name != sumsName {
		if _, err := parse(name); err != nil { // for example that of a kind with a slash
			return err
		}
	}
	// It does not depend on the time or the machine.
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)}
	if contentType != "" {
		h.PAXRecords = map[string]string{typeRecord: contentType}
	}
	return a.tar.WriteHeader(h)
}
