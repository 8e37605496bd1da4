package cli

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/hal"
	"github.com/tenantcontent/tenantcontent/internal/drafts/libraries"
)

// comparison is the answer of the server to _compare.
type comparison struct {
	Tenant       string            `json:"tenant"`
	ID           string            `json:"id"`
	EditingID    *string           `json:"editingId"`
	DraftID      *string           `json:"draftId"`
	Missing      []string          `json:"missing"`
	Differs      []string          `json:"differs"`
	Extra        []string          `json:"extra"`
	Digests      map[string]string `json:"digests"` // of different and additional files
	MaxFileBytes int64             `json:"maxFileBytes"`
}

// Limits of one comparison. More files are compared with several requests.
const (
	maxCompared      = libraries.MaxCompared
	maxComparedBytes = 700 << 10 // of paths and digests, because a body has at most 1 MiB
)

// compare returns the differences between the files of an app or draft and those of the folder.
func (p *push) compare(ctx context.Context, id string) (whole comparison, err error) {
	for rest, first := p.local, true; len(rest) > 0; first = false {
		some, bytes := map[string]string{}, 0
		for len(rest) > 0 && len(some) < maxCompared && bytes < maxComparedBytes {
			some[rest[0].path] = rest[0].sha256
			bytes += 2*len(rest[0].path) + len(rest[0].sha256) // quotes in a path are escaped
			rest = rest[1:]
		}
		var c comparison
		if err := p.call(
			ctx, http.MethodPost, hal.Href("apps", id, "_compare"), map[string]any{"files": some}, &c,
		); err != nil {
			return comparison{}, err
		}
		if first {
			if whole = c; whole.Digests == nil {
				whole.Digests = map[string]string{}
			}
			continue
		}
		whole.Missing, whole.Differs = append(whole.Missing, c.Missing...), append(whole.Differs, c.Differs...)
		for _, path := range c.Differs {
			whole.Digests[path] = c.Digests[path]
		}
		also := make(map[string]bool, len(c.Extra)) // Extra must also be additional in the other comparisons
		for _, path := range c.Extra {
			also[path] = true
		}
		whole.Extra = slices.DeleteFunc(whole.Extra, func(path string) bool { return !also[path] })
	}
	return whole, nil
}

// plan is what a push will do.
type plan struct {
	added, changed []localFile
	removed        []string
	kept           []string          // only on the server, but in the folder at the last push or pull
	left           []string          // changed or removed by others, and not changed here
	others         []string          // added by others
	known          map[string]string // SHA-256 by path of the files that folder and app have in common afterwards
	unchanged      int
}

// has reports whether the app has a file that is not in the folder.
func (t plan) has(path string) bool {
	return slices.Contains(t.removed, path) || slices.Contains(t.kept, path) || slices.Contains(t.others, path)
}

func (t plan) empty() bool { return len(t.added)+len(t.changed)+len(t.removed) == 0 }

// planNew returns the plan for an app that will be created. Its error names the files that the
// server would refuse.
func (p *push) planNew(ctx context.Context) (plan, error) {
	var limits struct {
		Files struct {
			AppFileBytes int64 `json:"appFileBytes"`
		} `json:"files"`
	}
	if err := p.call(ctx, http.MethodGet, hal.Href("limits"), nil, &limits); err != nil {
		return plan{}, err
	}
	c := comparison{MaxFileBytes: limits.Files.AppFileBytes}
	for _, file := range p.local {
		c.Missing = append(c.Missing, file.path)
	}
	return p.plan(c, nil)
}

// plan returns the changes that make an app equal to the folder, without undoing what others have
// changed since the last push or pull. If c is a draft that an earlier push has begun, published is
// the plan for the published app, else nil. The draft may already have files of that push. The
// error names the files that the server would refuse and those that were changed on both sides.
func (p *push) plan(c comparison, published *plan) (todo plan, err error) {
	missing, differs := map[string]bool{}, map[string]bool{}
	for _, path := range c.Missing {
		missing[path] = true
	}
	for _, path := range c.Differs {
		differs[path] = true
	}
	todo.known = map[string]string{}
	wrong, both := &problems{}, &problems{}
	for _, file := range p.local {
		had, isKnown := p.folder.state.Files[file.path]
		foreign := false // changed by others
		switch {
		case p.Force:
		case missing[file.path] && published == nil:
			foreign = isKnown
		case missing[file.path]:
			foreign = slices.Contains(published.left, file.path)
		case differs[file.path]:
			foreign = !p.folder.state.known(file.path, c.Digests[file.path])
		}
		switch {
		case foreign && had == file.sha256:
			todo.left = append(todo.left, file.path)
			todo.known[file.path] = had
			continue
		case foreign && missing[file.path]:
			both.add(file.path, "was changed here, and removed on the server")
		case foreign && isKnown:
			both.add(file.path, "was changed here, and on the server")
		case foreign:
			both.add(file.path, "is new here, and somebody else has added another one")
		case missing[file.path]:
			todo.added = append(todo.added, file)
		case differs[file.path]:
			todo.changed = append(todo.changed, file)
		default:
			todo.unchanged++
			todo.known[file.path] = file.sha256
			continue
		}
		todo.known[file.path] = file.sha256
		if file.size > c.MaxFileBytes {
			wrong.add(
				file.path, "has %s; a file of an app must have at most %s", size(file.size).about(),
				size(c.MaxFileBytes).about(),
			)
		}
	}
	for _, path := range c.Extra {
		digest := c.Digests[path]
		had, isKnown := p.folder.state.Files[path]
		same := p.folder.state.known(path, digest)
		switch {
		case p.folder.ignores(path):
		case published != nil && !published.has(path) && slices.Contains(p.folder.state.Sent, digest):
			// an earlier push has sent it, and it was not published
			todo.removed = append(todo.removed, path)
		case p.Delete && (p.Force || same):
			todo.removed = append(todo.removed, path)
		case p.Delete && isKnown:
			both.add(path, "was removed here, and changed on the server")
		case same || isKnown:
			todo.kept = append(todo.kept, path)
			todo.known[path] = cmp.Or(had, digest)
		default:
			todo.others = append(todo.others, path)
		}
	}
	clashes(p.local, todo.kept, todo.others, wrong)
	return todo, refusals(wrong, both)
}

// refusals returns the error for files that the server would refuse and for those that were changed
// on both sides, or nil.
func refusals(wrong, both *problems) error {
	const refused = "nothing was sent, as the server would refuse these files"
	if len(both.all) == 0 {
		return wrong.err(refused)
	}
	text := both.text("nothing was sent, as these files were changed on the server since your last push or pull: " +
		"pull first, or overwrite them with --force")
	if len(wrong.all) == 0 {
		return errs.New(errs.Conflict, "%s", text)
	}
	return errs.New(errs.Invalid, "%s\n%s", wrong.text(refused), text)
}

// first refuses the first push of a folder to an app with other files.
func (p *push) first(c comparison) error {
	extra := slices.ContainsFunc(c.Extra, func(path string) bool { return !p.folder.ignores(path) })
	if p.folder.state.App != "" || p.Force || len(c.Differs) == 0 && !extra {
		return nil
	}
	return errs.New(errs.Conflict,
		"the app %s%s has other files than %s, which was never pushed to it or pulled from it: pull it to a new "+
			"folder and work there, or push with --force to overwrite what differs",
		harmless(c.ID), ofTenant(c.Tenant), harmless(p.Folder))
}
