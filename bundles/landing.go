package bundles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tenantcontent/tenantcontent/bundles/archive"
	"github.com/tenantcontent/tenantcontent/entity"
)

// landing is one import into one tenant, in a transaction.
type landing struct {
	s      *Service
	tenant string
	look   survey
	into   entity.Landing
	report Report
	list   bool
	self   string // the caller's username
	abroad bool   // in another tenant than the caller's: what it answers must not tell of that one's users

	rows    []entity.Row // that are being imported, of one kind
	created map[entity.Key]bool
	skipped map[entity.Key]bool
	same    map[entity.Key]samePiece // pieces with files that are unchanged so far
	kept    plan                     // what the archive of what is replaced holds
	lost    losses
	dropped int // warnings beyond the most
}

func (s *Service) landing(tenant string, look survey, o How) *landing {
	l := &landing{
		s: s, tenant: tenant, look: look, into: entity.Landing{Rule: o.Rule, Tally: &entity.Tally{}}, list: o.Changes,
		report:  Report{ByKind: map[entity.Kind]Counts{}, Warnings: []string{}},
		created: map[entity.Key]bool{}, skipped: map[entity.Key]bool{}, same: map[entity.Key]samePiece{},
	}
	for kind := range look.header.Counts {
		l.report.ByKind[kind] = Counts{}
	}
	if o.Changes {
		l.report.Changes = []Change{}
	}
	return l
}

// run reads the archive into the tenant. The survey has found it to be whole.
func (l *landing) run(ctx context.Context, in io.ReadSeeker) error {
	r, err := l.s.open(in, archive.Again)
	if err != nil {
		return err
	}
	var file archive.Member
	for rows, err := range ahead(batches(r, &file), 0) {
		if err == nil {
			l.rows = rows
			err = l.flush(ctx)
		}
		if err != nil {
			return err
		}
	}
	for file.File != nil {
		if err := l.file(ctx, file, r); err != nil {
			return err
		}
		if file, err = r.Next(); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	l.report.Warnings = slices.Insert(l.report.Warnings, 0, l.into.Tally.Warnings()...)
	if l.dropped > 0 {
		l.report.Warnings = append(l.report.Warnings, fmt.Sprintf("There are %d more warnings.", l.dropped))
	}
	return nil
}

func compareKeys(a, b entity.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// flush imports the rows.
func (l *landing) flush(ctx context.Context) error {
	kind := l.rows[0].Kind
	before, err := l.before(ctx, kind)
	if err != nil {
		return err
	}
	arrivals, warnings, err := l.s.porters[kind].Import(ctx, l.tenant, l.rows, l.into)
	if err != nil {
		return err
	}
	if len(arrivals) != len(l.rows) {
		return fmt.Errorf("bundles: the porter of %s gave %d arrivals for %d rows", kind, len(arrivals), len(l.rows))
	}
	changes, err := l.changes(ctx, kind, arrivals, before)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := l.arrive(ctx, c); err != nil {
			return err
		}
	}
	if l.abroad {
		l.withhold(kind, arrivals, len(warnings))
	} else {
		l.warn(warnings...)
	}
	return nil
}

// withhold warns instead of a Porter, whose n sentences may name users of the tenant and tell of their rights. It says how many
// they are, and itself which rows were to be overwritten and were not.
func (l *landing) withhold(kind entity.Kind, arrivals []entity.Arrival, n int) {
	for i, arrival := range arrivals {
		if arrival == entity.Skipped && l.into.Rule == entity.Overwrite {
			l.stays(kind, l.rows[i].ID)
		}
	}
	if n > 0 {
		l.into.Tally.Add("Left out: %s, which may tell of the tenant's users. An import of the archive there has all warnings.",
			entity.Count{N: n, Of: string(kind) + " warning"})
	}
}

// stays warns that a piece stays, and not why: abroad that may be the tenant's own affair.
func (l *landing) stays(kind entity.Kind, id string) {
	l.warn(fmt.Sprintf("%s %s stays as it is.", kind, id))
}

// arrive notes what became of a row. The files that an overwritten piece is not to have go before the archive's come: a
// path may differ from another one in case alone, or be a folder now.
func (l *landing) arrive(ctx context.Context, c Change) error {
	switch c.Action {
	case string(entity.Created):
		l.created[c.Key] = true
	case string(entity.Skipped):
		l.skipped[c.Key] = true
	default:
		if p, ok := l.s.porters[c.Kind].(entity.FilePorter); ok {
			if err := l.comparePaths(ctx, p, &c); err != nil {
				return err
			}
			if err := p.KeepFiles(ctx, l.tenant, c.ID, l.look.files[c.ID]); err != nil {
				return err
			}
		}
	}
	l.count(c)
	return nil
}

func (l *landing) file(ctx context.Context, m archive.Member, r io.Reader) error {
	k := entity.Key{Kind: l.s.fileKind(l.look, m.ID), ID: m.ID}
	if l.skipped[k] {
		return nil // and so are its files
	}
	return l.put(ctx, l.s.porters[k.Kind].(entity.FilePorter), k, *m.File, r)
}

func (l *landing) count(c Change) {
	l.add(c.Kind, c.Action, 1)
	if l.list {
		l.report.Changes = append(l.report.Changes, c)
	}
}

func (l *landing) add(kind entity.Kind, action string, n int) {
	by := l.report.ByKind[kind]
	for _, c := range []*Counts{&l.report.Counts, &by} {
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
	l.report.ByKind[kind] = by
}

func (l *landing) warn(warnings ...string) {
	fit := min(len(warnings), max(0, maxWarnings-len(l.report.Warnings)))
	l.report.Warnings = append(l.report.Warnings, warnings[:fit]...)
	l.dropped += len(warnings) - fit
}
