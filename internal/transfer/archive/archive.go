// Package archive reads and writes archives of content: .tgz files of the format
// tenantcontent-bundle.
//
// An archive has these members, in this order:
//
//   - bundle.json, its description
//   - entities/<kind>/<id>.json, the rows, kind by kind, each kind after those that it needs
//   - files/<id>/<path>, the files of entities
//   - checksums.json, the SHA-256 of every member before it
//
// The same content has the same bytes. Archives are streamed: only the names of the members and
// their checksums are in memory.
//
// bundles imports it, and programs that read archives may.
package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Format and Version identify the file format. A reader refuses a newer version.
const (
	Format  = "tenantcontent-bundle"
	Version = 1
)

// ContentType is the media type of an archive.
const ContentType = "application/gzip"

// Member is a row or a file in an archive.
type Member struct {
	entity.Key              // for a file: only ID
	JSON       []byte       // for a row: a JSON object
	File       *entity.File // nil for a row
}

const (
	headerName = "bundle.json"
	sumsName   = "checksums.json"
	rowsFolder = "entities/"
	filFolder  = "files/"

	// typeRecord is the PAX record for a file's content type.
	typeRecord = "TENANTCONTENT.contentType"

	// sizeRecord is the PAX record for a size of more than maxOctal bytes, 8 GiB less one, which is
	// the limit of tar's eleven octal digits. A smaller file must not have the record, so that all
	// programs read the same size.
	sizeRecord = "size"
	maxOctal   = 1<<33 - 1
)

// sum is the checksum of one member.
type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// rowName returns the name of the member of a row. All characters of the id but lower-case letters,
// digits and hyphens are escaped. So ids that differ only in case, such as keys of colors, are two
// files on every file system.
func rowName(k entity.Key) string {
	return rowsFolder + string(k.Kind) + "/" + escapeID(k.ID) + ".json"
}

// fileName returns the name of the member of an entity's file.
func fileName(id, path string) string { return filFolder + escapeID(id) + "/" + escapePath(path) }

const hexDigits = "0123456789abcdef"

func escapeID(id string) string {
	return escape(id, func(c byte, i int) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0
	})
}

// escapePath escapes %, backslashes and control characters in a file's path.
func escapePath(p string) string {
	return escape(p, func(c byte, _ int) bool { return c != '%' && c >= ' ' && c != 0x7f && c != '\\' })
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

// unescape reverses escape. ok is false for text that is not a result of escape.
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

// parse returns the member with a name, which must be clean. It returns errs.Invalid naming the
// member.
func parse(name string) (Member, error) {
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
		if ok && okPath && id != "" && escapeID(id) == escaped && escapePath(p) == escapedPath {
			return Member{Key: entity.Key{ID: id}, File: &entity.File{Path: p}}, cleanPath(p, name)
		}
	}
	return Member{}, bad(name, "is not one that an archive has")
}

// cleanPath returns errs.Invalid for a path outside of the folder into which it is unpacked.
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

// bad returns an errs.Invalid that names a member.
func bad(name, what string, args ...any) error {
	return errs.New(errs.Invalid, "The archive's member %q "+what+".", append([]any{short(name)}, args...)...)
}

// short shortens a text for a message.
func short(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}
