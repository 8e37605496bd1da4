package bundles

import (
	"fmt"
	"slices"

	"github.com/tenantcontent/tenantcontent/entity"
)

// Change is what an import did with one row: an entity.ImportAction, or one of the two actions
// below.
type Change struct {
	Action string
	entity.Key
	// "" for a kind that cannot be looked up; in another tenant than the caller's what the archive
	// says, else the id
	Name string
}

const (
	unchanged = "unchanged" // exists already with the same content
	deleted   = "deleted"
)

// maxWarnings bounds the answer to an import of many rows that all lack their owner.
const maxWarnings = 1000

// report collects what an import does.
//
// Its result must not reveal the users of another tenant to the caller of a deploy. So the result
// counts each user of the archive as skipped, whether or not that tenant has one of that name, and
// names only what the bundle has or once had. It does not say why something stays, nor which
// principal gets the content of removed teams. Of the warnings of Transferers, which may name
// anybody, it has only the number, except for sums. The counts do reveal whether rows other than
// users exist. The tenant's own superusers get everything by importing the bundle's archive.
type report struct {
	result      ImportResult
	list        bool            // each change
	crossTenant bool            // of a deploy into another tenant than the caller's
	sums        entity.Warnings // warnings that are sums over all rows
	dropped     int             // warnings beyond maxWarnings

	// of a deploy into another tenant, for that tenant's own superusers only
	notice []string
	people entity.Warnings // sums of the transferer of teams
}

func newReport(counts map[entity.Kind]int, list, crossTenant bool) *report {
	r := &report{list: list, crossTenant: crossTenant}
	r.result = ImportResult{ByKind: map[entity.Kind]Counts{}, Warnings: []string{}}
	for kind := range counts {
		r.result.ByKind[kind] = Counts{}
	}
	if list {
		r.result.Changes = []Change{}
	}
	return r
}

// count adds a change.
func (r *report) count(c Change) {
	r.add(c.Kind, c.Action, 1)
	if r.list {
		r.result.Changes = append(r.result.Changes, c)
	}
}

// amend changes the action of a change that was counted as unchanged.
func (r *report) amend(change int, action entity.ImportAction) {
	c := &r.result.Changes[change]
	r.add(c.Kind, unchanged, -1)
	r.add(c.Kind, string(action), 1)
	c.Action = string(action)
}

func (r *report) add(kind entity.Kind, action string, n int) {
	by := r.result.ByKind[kind]
	for _, c := range []*Counts{&r.result.Counts, &by} {
		switch action {
		case string(entity.Created):
			c.Created += n
		case string(entity.Updated):
			c.Updated += n
		case string(entity.Skipped):
			c.Skipped += n
		case unchanged:
			c.Unchanged += n
		case deleted:
			c.Deleted += n
		}
	}
	r.result.ByKind[kind] = by
}

// warn adds warnings for the caller.
func (r *report) warn(warnings ...string) {
	fit := min(len(warnings), max(0, maxWarnings-len(r.result.Warnings)))
	r.result.Warnings = append(r.result.Warnings, warnings[:fit]...)
	r.dropped += len(warnings) - fit
}

// tell adds warnings for the superusers of another tenant.
func (r *report) tell(sentences ...string) {
	r.notice = append(r.notice, sentences[:min(len(sentences), max(0, maxWarnings-len(r.notice)))]...)
}

// warnOwn warns the tenant's own superusers, of which the caller may be one.
func (r *report) warnOwn(sentence string) {
	if r.crossTenant {
		r.tell(sentence)
		return
	}
	r.warn(sentence)
}

// warnStays warns that an entity stays, with a sentence of the reason. The caller of a deploy into
// another tenant may not know the reason, nor which users are there.
func (r *report) warnStays(k entity.Key, why string) {
	if !r.crossTenant {
		r.warn(why)
		return
	}
	sentence := fmt.Sprintf("%s %s stays as it is.", k.Kind, k.ID)
	r.tell(sentence)
	if k.Kind != entity.KindUser {
		r.warn(sentence)
	}
}

// finish adds the sums, which come first, and the number of the dropped warnings.
func (r *report) finish() {
	sums := r.sums.Warnings()
	r.notice = slices.Concat(sums, r.people.Warnings(), r.notice)
	r.result.Warnings = slices.Insert(r.result.Warnings, 0, sums...)
	if r.dropped > 0 {
		r.result.Warnings = append(r.result.Warnings, fmt.Sprintf("There are %d more warnings.", r.dropped))
	}
}
