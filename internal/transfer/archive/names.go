package archive

import (
	"crypto/sha256"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/fold"
)

// names checks the names of the members of an archive, for a Reader or a Writer.
type names struct {
	limits Limits
	seen   map[[16]byte]struct{} // digests of folded names
	bytes  int
	files  []file
}

// file is the name of a file's member, unchanged and folded.
type file struct{ name, folded string }

func newNames(l Limits) names { return names{limits: l, seen: map[[16]byte]struct{}{}} }

// add returns errs.Invalid for a member beyond the limit, and for a name that is not clean, or that
// is the same file as another one on some file system.
func (n *names) add(name string) error {
	n.bytes += len(name)
	switch {
	case len(n.seen) >= n.limits.Members:
		return errs.New(
			errs.Invalid, "An archive must have at most %d members, and this one has more: %s.",
			n.limits.Members, setting,
		)
	case len(name) > maxName:
		return bad(name, "has too long a name")
	case n.bytes > n.limits.names():
		return errs.New(
			errs.Invalid, "The names of an archive's members must have at most %d bytes together.",
			n.limits.names(),
		)
	case !utf8.ValidString(name):
		return bad(name, "has a name that is not UTF-8")
	}
	if err := cleanPath(name, name); err != nil {
		return err
	}
	folded := fold.Text(name)
	sum := sha256.Sum256([]byte(folded))
	twin := [16]byte(sum[:16])
	if _, taken := n.seen[twin]; taken {
		return bad(name, "is there twice, or another one differs in case alone")
	}
	n.seen[twin] = struct{}{}
	if strings.HasPrefix(name, filFolder) {
		n.files = append(n.files, file{name, folded})
	}
	return nil
}

// setting is the part of an error message that names the setting for the limit.
const setting = "the operator sets the limit by TENANTCONTENT_MAX_ARCHIVE_MEMBERS"

// clash returns errs.Invalid, naming both, if a file would be a folder of another one on some file
// system.
func (n *names) clash() error {
	slices.SortFunc(n.files, func(a, b file) int { return folderFirst(a.folded, b.folded) })
	for i, below := range n.files[min(1, len(n.files)):] {
		if f := n.files[i]; strings.HasPrefix(below.folded, f.folded+"/") {
			return bad(f.name, "is a file, and a folder of %q too", short(below.name))
		}
	}
	return nil
}

// folderFirst compares names so that the content of a folder follows the folder: / sorts before all
// other characters.
func folderFirst(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		default:
			return int(a[i]) - int(b[i])
		}
	}
	return len(a) - len(b)
}
