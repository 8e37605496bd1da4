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

// Writer writes one archive.
type Writer struct {
	out    *bufio.Writer
	zip    *packer
	tar    *tar.Writer
	counts map[entity.Kind]int
	kinds  map[entity.Kind]bool // begun
	kind   entity.Kind          // of the last row
	files  bool                 // rows are over
	twins  map[string]struct{}
	names  []string // in order, with sums
	sums   []sum
}

// NewWriter begins an archive with its header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	a, err := Begin(w)
	if err != nil {
		return nil, err
	}
	return a, a.Header(h)
}

// Begin begins an archive before its header is known: who waits for it sees at once that it comes. Header must follow.
func Begin(w io.Writer) (*Writer, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	zip, err := newPacker(out)
	if err != nil {
		return nil, err
	}
	return &Writer{
		out: out, zip: zip, tar: tar.NewWriter(zip), counts: map[entity.Kind]int{}, kinds: map[entity.Kind]bool{},
		twins: map[string]struct{}{},
	}, out.Flush()
}

// Header writes bundle.json. The Writer makes h's format and version.
func (a *Writer) Header(h Header) error {
	h.Format, h.Version = Format, Version
	if h.Entries == nil {
		h.Entries = []json.RawMessage{}
	}
	if h.Counts == nil {
		h.Counts = map[entity.Kind]int{}
	}
	for k, n := range h.Counts {
		a.counts[k] = n
	}
	head, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	return a.member(headerName, "", append(head, '\n'))
}

// Row adds a row. Rows of one kind come together, with different ids. Errors: errs.Invalid for a row that a Reader would
// not take.
func (a *Writer) Row(r entity.Row) error {
	name := rowName(r.Key)
	if r.Kind != a.kind {
		if a.files || a.kinds[r.Kind] {
			return fmt.Errorf("archive: %s is out of order", name)
		}
		a.kind, a.kinds[r.Kind] = r.Kind, true
	}
	if limit := (Limits{}).WithDefaults().Row; int64(len(r.JSON)) > limit {
		return errs.New(errs.Invalid, "The %s %s has %d bytes: an archive takes at most %d.", r.Kind, r.ID, len(r.JSON), limit)
	}
	a.counts[r.Kind]--
	return a.member(name, "", r.JSON)
}

// File adds a file of a piece whose row was added: f.Size bytes of r. Files come after all rows.
func (a *Writer) File(id string, f entity.File, r io.Reader) error {
	a.files = true
	name := filFolder + escapeID(id) + "/" + escapePath(f.Path, false)
	if _, taken := a.twins[twinOf(name)]; taken {
		name = filFolder + escapeID(id) + "/" + escapePath(f.Path, true)
	}
	if err := cleanPath(f.Path, name); err != nil {
		return err
	}
	if err := a.begin(name, f.ContentType, f.Size); err != nil {
		return err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(a.tar, h), r)
	if err == nil && n != f.Size {
		err = fmt.Errorf("archive: %s has %d bytes, not %d", name, n, f.Size)
	}
	a.sums = append(a.sums, sum(h.Sum(nil)))
	return err
}

// Close ends the archive with its checksums. It does not close the writer below.
func (a *Writer) Close() error {
	for kind, n := range a.counts {
		if n != 0 {
			return fmt.Errorf("archive: %d rows of %s less than the header says", n, kind)
		}
	}
	size := int64(len("{\n\n}\n"))
	for i, name := range a.names {
		size += int64(len(sumLine(name, a.sums[i], i == 0)))
	}
	if err := a.tar.WriteHeader(plainHeader(sumsName, size)); err != nil {
		return err
	}
	_, _ = io.WriteString(a.tar, "{\n") // the tar writer keeps its error
	for i, name := range a.names {
		if _, err := a.tar.Write(sumLine(name, a.sums[i], i == 0)); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(a.tar, "\n}\n"); err != nil {
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

// sumLine is one line of checksums.json: a member of one JSON object, in the order of the archive.
func sumLine(name string, s sum, first bool) []byte {
	quoted, _ := json.Marshal(name) // a string always encodes
	line := append(append(quoted, `: "`...), s.String()+`"`...)
	if first {
		return line
	}
	return append([]byte(",\n"), line...)
}

func (a *Writer) member(name, contentType string, content []byte) error {
	if err := a.begin(name, contentType, int64(len(content))); err != nil {
		return err
	}
	a.sums = append(a.sums, sha256.Sum256(content))
	_, err := a.tar.Write(content)
	return err
}

// begin writes a member's header and keeps its name.
func (a *Writer) begin(name, contentType string, size int64) error {
	twin := twinOf(name)
	if _, taken := a.twins[twin]; taken {
		return errs.New(errs.Invalid, "Two members of the archive would be called %q.", name)
	}
	a.twins[twin] = struct{}{}
	a.names = append(a.names, name)
	h := plainHeader(name, size)
	if contentType != "" {
		h.PAXRecords = map[string]string{typeRecord: contentType}
	}
	return a.tar.WriteHeader(h)
}

// plainHeader says nothing that depends on the time or the machine.
func plainHeader(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: time.Unix(0, 0)}
}
