package bundles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
)

// losses counts what a restore or deploy removes and the archive of what it replaces does not
// contain.
type losses struct {
	users    int
	secrets  int                // in rows, which archives mask
	ofUsers  []entity.Dependent // goes with users
	ofOthers []entity.Dependent // goes with other entities
}

// countLosses counts what is lost with some entities that are going to be removed.
func (l *importer) countLosses(ctx context.Context, kind entity.Kind, ids []string) error {
	all, err := l.s.content.Dependents(ctx, l.tenant, kind, ids, l.s.stamp())
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(d entity.Dependent) bool { return l.kept.has(d.Holder) })
	if kind != entity.KindUser {
		l.lost.ofOthers = append(l.lost.ofOthers, all...)
		return nil
	}
	l.lost.users += len(ids)
	l.lost.ofUsers = append(l.lost.ofUsers, all...)
	return nil
}

// warnOfLosses warns of the losses, also in a dry run, so that a person can decide first.
func (l *importer) warnOfLosses() {
	lost := func(with string, all []entity.Count) {
		if len(all) > 0 {
			l.warnOwn(fmt.Sprintf(
				"Lost with %s: %s. The archive of what is replaced does not hold them.", with, listed(all),
			))
		}
	}
	content := entity.Counts(l.lost.ofOthers)
	if n := l.lost.secrets; n > 0 {
		content = slices.Insert(content, 0, entity.Count{N: n, Of: "secret"})
	}
	lost("the content that is removed", content)
	lost(entity.Count{N: l.lost.users, Of: "user"}.String(), entity.Counts(l.lost.ofUsers))
}

// listed returns counts as a list for a sentence.
func listed(all []entity.Count) string {
	words := make([]string, len(all))
	for i, c := range all {
		words[i] = c.String()
	}
	return strings.Join(words, ", ")
}

// has reports whether a plan names an entity. Its ids are ordered.
func (p plan) has(k entity.Key) bool {
	_, found := slices.BinarySearchFunc(p[k.Kind], k.ID, cmp.Compare[string])
	return found
}
