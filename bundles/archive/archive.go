// Package archive reads and writes the file that content travels in: a .tgz of the format tenantcontent-bundle.
//
// It has these members, in this order: bundle.json, what the archive is; entities/<kind>/<id>.json, the rows, kind by kind
// in an order in which a kind comes after those that it needs; files/<id>/<path>, the files of pieces that have some; and
// checksums.json, the SHA-256 of every member before it. The same content gives the same bytes. Both ways it streams: what
// it keeps is the names of the members and their sums.
//
// bundles imports it, and programs that look into an archive may.
//
// Source: DECISIONS, section 7.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/fold"
)

// Format and Version say what a file is. A reader refuses a newer version.
const (
	Format  = "tenantcontent-bundle"
	Version = 1
)

// ContentType is the media type of an archive.
const ContentType = "application/gzip"

// Header is bundle.json.
type Header struct {
	Format  string            `json:"format"`  // set by NewWriter
	Version int               `json:"version"` // set by NewWriter
	Tenant  string            `json:"tenant"`  // where the content is from
	Bundle  Bundle            `json:"bundle"`
	Entries []json.RawMessage `json:"entries"` // as the API writes them: type, reference, data
	// Counts is how many rows of each kind there are. A kind without rows may be named too: a restore empties it.
	Counts map[entity.Kind]int `json:"counts"`
}

// Bundle is the manifest that an archive was made of; it is empty but for its name when there is none.
type Bundle struct {
	ID          string  `json:"id,omitempty"`
	Name        string  `json:"name"`
	Slug        string  `json:"slug,omitempty"`
	Description *string `json:"description,omitempty"`
}

// Member is a row or a file of an archive.
type Member struct {
	entity.Key              // of a file: ID alone
	JSON       []byte       // of a row: a JSON object
	File       *entity.File // nil for a row
}

// Limits bound what a Reader takes. What is 0 has its default.
type Limits struct {
	Members int   // number of members; default 200,000
	Bytes   int64 // unpacked; default 4 GiB
	Row     int64 // bytes of one row; default 4 MiB
	Ratio   int64 // unpacked to packed bytes, after the first MiB; default 200
}

// WithDefaults fills what is not set.
func (l Limits) WithDefaults() Limits {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	if l.Members == 0 {
		l.Members = 200_000
	}
	set(&l.Bytes, 4<<30)
	set(&l.Row, 4<<20)
	set(&l.Ratio, 200)
	return l
}

const (
	headerName = "bundle.json"
	sumsName   = "checksums.json"
	rowsFolder = "entities/"
	filFolder  = "files/"

	maxHeader = 16 << 20 // bytes of bundle.json
	maxName   = 4096     // bytes of a member's name
	free      = 1 << 20  // bytes before the ratio counts

	// typeRecord is the PAX record that carries a file's content type.
	typeRecord = "TENANTCONTENT.contentType"
)

// sum is the checksum of one member.
type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// rowName is the member of a row. In an id, all but lower-case letters, digits and hyphens is escaped: ids that differ in
// case alone, as keys of colors may, are two files on every file system.
func rowName(k entity.Key) string {
	return rowsFolder + string(k.Kind) + "/" + escapeID(k.ID) + ".json"
}

const hexDigits = "0123456789abcdef"

func escapeID(id string) string {
	return escape(id, func(c byte, i int) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
	})
}

// escapePath spells a file's path: as it is, but for %, backslashes and control characters. twin escapes all but digits
// and what parts a path, for one that differs from another one in case or Unicode form alone.
func escapePath(p string, twin bool) string {
	return escape(p, func(c byte, _ int) bool {
		if twin {
			return '0' <= c && c <= '9' || strings.IndexByte("/.-_", c) >= 0
		}
		return c != '%' && c >= ' ' && c != 0x7f && c != '\\'
	})
}

func escape(s string, plain func(c byte, i int) bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c, i) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// unescape reads what escape writes, and nothing else: what gives s must be the one spelling of it.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 {
			return "", false
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), utf8.ValidString(b.String())
}

// parse finds out what a member is by its name. Errors: errs.Invalid naming it.
func parse(name string) (Member, error) {
	if err := cleanName(name); err != nil {
		return Member{}, err
	}
	if rest, ok := strings.CutPrefix(name, rowsFolder); ok {
		kind, file, _ := strings.Cut(rest, "/")
		escaped, isJSON := strings.CutSuffix(file, ".json")
		id, ok := unescape(escaped)
		if kind != "" && isJSON && ok && id != "" && escapeID(id) == escaped && !strings.Contains(id, "\x00") {
			return Member{Key: entity.Key{Kind: entity.Kind(kind), ID: id}}, nil
		}
	}
	if rest, ok := strings.CutPrefix(name, filFolder); ok {
		escaped, escapedPath, _ := strings.Cut(rest, "/")
		id, ok := unescape(escaped)
		p, okPath := unescape(escapedPath)
		if ok && okPath && id != "" && escapeID(id) == escaped && (escapePath(p, false) == escapedPath || escapePath(p, true) == escapedPath) {
			return Member{Key: entity.Key{ID: id}, File: &entity.File{Path: p}}, cleanPath(p, name)
		}
	}
	return Member{}, bad(name, "is not one that an archive has")
}

// cleanName refuses names that no archive of this format has, whatever they are for.
func cleanName(name string) error {
	switch {
	case len(name) > maxName:
		return bad(name, "has too long a name")
	case !utf8.ValidString(name):
		return bad(name, "has a name that is not UTF-8")
	}
	return cleanPath(name, name)
}

// cleanPath refuses paths that lead out of where they are unpacked.
func cleanPath(p, name string) error {
	switch {
	case strings.HasPrefix(p, "/"):
		return bad(name, "has an absolute path")
	case p == "" || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../") || p == ".":
		return bad(name, "has a path that is not clean")
	case strings.ContainsAny(p, "\x00\\"):
		return bad(name, "has a path with a NUL or a backslash")
	}
	return nil
}

// bad names the member that is wrong.
func bad(name, what string, args ...any) error {
	if r := []rune(name); len(r) > 200 {
		name = string(r[:200]) + "…"
	}
	return errs.New(errs.Invalid, "The archive's member %q "+what+".", append([]any{name}, args...)...)
}

// twinOf is a name without case and in one Unicode form: names that share it are one file on some file system.
func twinOf(name string) string { return fold.Text(name) }
