package bundles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/comments"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/files"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// Backup is the archive of what a restore or deploy replaced: a download for the tenant's
// superusers, for a week. To undo a restore, restore the archive. To undo a deploy, import it with
// the rule Overwrite, and remove what the deploy made; do not restore it, as it has only the
// replaced rows of each kind, and a restore would remove all others. What it cannot restore is
// among the warnings.
type Backup = files.File

// lifetime is how long such an archive is kept.
const lifetime = 7 * 24 * time.Hour

// writer writes a plan.
type writer struct {
	*plan
	created    map[entity.Key]bool
	skipped    map[entity.Key]bool
	same       map[entity.Key]sameEntity // entities with files that are unchanged so far
	digests    map[string]string         // of the files that a deploy into another tenant wrote, by fileID
	undeployed map[entity.Key]bool       // entities with imported files that they do not run yet
	lost       losses
}

// write writes a plan: it makes the backup, removes, imports the archive, and records what a deploy
// has brought.
func (p *plan) write(ctx context.Context, in io.ReadSeeker) (ImportResult, error) {
	w := &writer{
		plan: p, created: map[entity.Key]bool{}, skipped: map[entity.Key]bool{},
		same: map[entity.Key]sameEntity{}, digests: map[string]string{}, undeployed: map[entity.Key]bool{},
	}
	importArchive := func(ctx context.Context) error { return w.importArchive(ctx, in) }
	for _, step := range []func(context.Context) error{
		w.backUp, w.remove, importArchive, w.notify, w.saveDeployed, w.announceDeploy,
	} {
		if err := step(ctx); err != nil {
			return ImportResult{}, err
		}
	}
	return w.result, nil
}

// backUp stores a download with what is replaced.
func (w *writer) backUp(ctx context.Context) error {
	if w.replaced.empty() {
		return nil
	}
	h := archive.Header{
		Tenant: w.tenant, Bundle: archive.Bundle{Name: "Before a " + w.backup}, Counts: w.replaced.counts(),
	}
	name := fmt.Sprintf("before-%s-%s.tgz", w.backup, w.s.clock.Stamp().Format("20060102-150405"))
	draft := files.Draft{Filename: name, ContentType: archive.ContentType, Lifetime: lifetime}
	f, err := w.s.downloads.CreateForSuperusers(ctx, w.tenant, draft,
		func(to io.Writer) error {
			out, err := w.s.begin(to)
			if err != nil {
				return err
			}
			return w.s.write(ctx, w.tenant, h, w.replaced, out, func(row entity.Row) {
				if w.removed.has(row.Key) {
					w.lost.secrets += secretsOf(row)
				}
			})
		})
	if errs.CodeOf(err) == errs.Invalid {
		err = errs.Wrap(
			errs.Invalid, err, "What the %s replaces cannot be kept, so nothing is done: %s", w.backup,
			errs.MessageOf(err),
		)
	}
	w.result.Archive = &f
	return err
}

// secretsOf returns how many secrets an entity has, of which its row has the masks.
func secretsOf(row entity.Row) int { return bytes.Count(row.JSON, []byte(`"`+entity.Mask+`"`)) }

// remove deletes what the plan removes, beginning with the kinds that need others. What deleted
// users and teams own passes to the owner of the import.
func (w *writer) remove(ctx context.Context) error {
	for _, kind := range slices.Backward(w.s.kinds) {
		ids := w.removed[kind]
		if w.s.typeOf(kind).Owns {
			if err := w.passOn(ctx, ids); err != nil {
				return err
			}
		}
		if err := w.countLosses(ctx, kind, ids); err != nil {
			return err
		}
		for some := range slices.Chunk(ids, batch) {
			if err := w.drop(ctx, kind, some); err != nil {
				return err
			}
		}
	}
	w.warnOfLosses()
	return nil
}

// passOn moves what some principals own to the owner of the import.
func (w *writer) passOn(ctx context.Context, ids []string) error {
	for _, id := range ids {
		moved, err := w.s.content.Reassign(ctx, w.tenant, id, w.into.Owner)
		if err != nil {
			return err
		}
		if len(moved) == 0 {
			continue
		}
		sentence := fmt.Sprintf(
			"%s owned %s of content, which %s owns now.", id, entity.Count{N: len(moved), Of: "item"},
			w.into.Owner,
		)
		lost := slices.DeleteFunc(moved, func(r entity.Ref) bool {
			return w.replaced.has(entity.Key{Kind: r.Kind, ID: r.ID})
		})
		if len(lost) > 0 {
			sentence += fmt.Sprintf(" The archive of what is replaced does not give %d of them back.", len(lost))
		}
		w.warnOwn(sentence)
	}
	return nil
}

func (w *writer) drop(ctx context.Context, kind entity.Kind, ids []string) error {
	names := map[string]string{}
	if w.list {
		var err error
		if names, err = w.names(ctx, kind, nil, ids); err != nil {
			return err
		}
	}
	if _, err := w.s.transferers[kind].Remove(ctx, w.tenant, ids); err != nil {
		return err
	}
	if !w.s.typeOf(kind).Owns {
		gone := make([]entity.Key, len(ids))
		for i, id := range ids {
			gone[i] = entity.Key{Kind: kind, ID: id}
		}
		if err := w.s.content.Deleted(ctx, w.tenant, gone...); err != nil {
			return err
		}
	}
	for _, id := range ids {
		w.count(Change{deleted, entity.Key{Kind: kind, ID: id}, names[id]})
	}
	return nil
}

// losses counts what a restore or deploy removes and its backup does not contain.
type losses struct {
	users    int
	secrets  int                // in rows, which archives mask
	ofUsers  []entity.Dependent // goes with users
	ofOthers []entity.Dependent // goes with other entities
}

// countLosses counts what is lost with some entities that are going to be removed.
func (w *writer) countLosses(ctx context.Context, kind entity.Kind, ids []string) error {
	all, err := w.s.content.Dependents(ctx, w.tenant, kind, ids, w.s.clock.Stamp())
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d entity.Dependent) bool { return w.replaced.has(d.Holder) })
	if kind != entity.KindUser {
		w.lost.ofOthers = append(w.lost.ofOthers, all...)
		return nil
	}
	w.lost.users += len(ids)
	w.lost.ofUsers = append(w.lost.ofUsers, all...)
	return nil
}

// warnOfLosses warns of the losses, also in a dry run, so that a person can decide first.
func (w *writer) warnOfLosses() {
	lost := func(with string, all []entity.Count) {
		if len(all) > 0 {
			w.warnOwn(fmt.Sprintf(
				"Lost with %s: %s. The archive of what is replaced does not hold them.", with, listed(all),
			))
		}
	}
	content := entity.Counts(w.lost.ofOthers)
	if n := w.lost.secrets; n > 0 {
		content = slices.Insert(content, 0, entity.Count{N: n, Of: "secret"})
	}
	lost("the content that is removed", content)
	lost(entity.Count{N: w.lost.users, Of: "user"}.String(), entity.Counts(w.lost.ofUsers))
}

// listed returns counts as a list for a sentence.
func listed(all []entity.Count) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.String()
	}
	return strings.Join(words, ", ")
}

// importArchive imports the rows and files of the archive, which survey has checked.
func (w *writer) importArchive(ctx context.Context, in io.ReadSeeker) error {
	r, err := w.s.open(in, archive.Reread)
	if err != nil {
		return err
	}
	var file archive.Member
	for rows, err := range ahead(batches(r, &file)) {
		if err == nil {
			err = w.importRows(ctx, rows)
		}
		if err != nil {
			return err
		}
	}
	for file.File != nil {
		if err := w.importFile(ctx, file, r); err != nil {
			return err
		}
		if file, err = r.Next(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	w.finish()
	return nil
}

// maxNotice bounds the lines of the notification of a deploy from another tenant.
const maxNotice = 100

// notify sends the tenant's superusers a notification of a deploy from another tenant: what was
// left out and what was done.
func (w *writer) notify(ctx context.Context) error {
	n := len(w.notice)
	if !w.crossTenant || n == 0 || w.s.notify == nil {
		return nil
	}
	supers, err := w.s.principals.Superusers(ctx, w.tenant)
	if err != nil || len(supers) == 0 {
		return err
	}
	lines := slices.Clone(w.notice[:min(n, maxNotice)])
	if n > maxNotice {
		lines = append(lines, fmt.Sprintf("There are %d more warnings.", n-maxNotice))
	}
	return w.s.notify(ctx, w.tenant, supers, comments.Notification{
		Title: "What a deploy from the tenant " + w.caller.Tenant + " did and left out",
		Body:  strings.Join(lines, "\n"),
	})
}
