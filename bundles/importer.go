package bundles

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
	"github.com/tenantcontent/tenantcontent/internal/transfer/archive"
)

// importer is an import into one tenant, in a transaction.
type importer struct {
	s      *Service
	tenant string
	index  survey
	into   entity.ImportOptions
	report ImportResult
	list   bool
	dry    bool
	self   string // the caller's username

	source string // crossTenant: the tenant that deploys
	// crossTenant: rows of the archive that are there and that deploys of the source brought
	brought map[entity.Key]bool
	written map[string]string // crossTenant: digests of the files that were written, by fileID
	// in another tenant than the caller's: what it answers must not tell of that one's users
	crossTenant bool
	// crossTenant: sums of the transferer of teams, for the tenant's own superusers alone
	people entity.Warnings
	notice []string // crossTenant: warnings for the tenant's own superusers alone

	rows    []entity.Row // that are being imported, of one kind
	created map[entity.Key]bool
	skipped map[entity.Key]bool
	same    map[entity.Key]sameEntity // entities with files that are unchanged so far
	kept    plan                      // the content of the archive of what is replaced
	lost    losses

	undeployed map[entity.Key]bool // entities with imported files that they do not run yet
	dropped    int                 // warnings beyond maxWarnings
}

func (s *Service) importer(tenant string, index survey, o ImportOptions) *importer {
	l := &importer{
		s: s, tenant: tenant, index: index,
		into: entity.ImportOptions{
			Rule:       o.Rule,
			Warnings:   &entity.Warnings{},
			OwnArchive: index.header.Tenant == tenant,
		},
		list: o.Changes, dry: o.DryRun,
		report:  ImportResult{ByKind: map[entity.Kind]Counts{}, Warnings: []string{}},
		created: map[entity.Key]bool{}, skipped: map[entity.Key]bool{}, same: map[entity.Key]sameEntity{},
		undeployed: map[entity.Key]bool{},
	}
	for kind := range index.header.Counts {
		l.report.ByKind[kind] = Counts{}
	}
	if o.Changes {
		l.report.Changes = []Change{}
	}
	return l
}

// run imports the archive. The survey has checked it.
func (l *importer) run(ctx context.Context, in io.ReadSeeker) error {
	r, err := l.s.open(in, archive.Reread)
	if err != nil {
		return err
	}
	var file archive.Member
	for rows, err := range ahead(batches(r, &file)) {
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
	l.notice = slices.Insert(l.notice, 0, append(l.into.Warnings.Warnings(), l.people.Warnings()...)...)
	l.report.Warnings = slices.Insert(l.report.Warnings, 0, l.into.Warnings.Warnings()...)
	if l.dropped > 0 {
		l.report.Warnings = append(l.report.Warnings, fmt.Sprintf("There are %d more warnings.", l.dropped))
	}
	return nil
}

func compareKeys(a, b entity.Key) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// flush imports the rows.
func (l *importer) flush(ctx context.Context) error {
	kind := l.rows[0].Kind
	if l.crossTenant && kind == entity.KindUser {
		l.leaveUsers()
		return nil
	}
	if err := l.leaveOwn(ctx, kind); err != nil || len(l.rows) == 0 {
		return err
	}
	before, err := l.before(ctx, kind)
	if err != nil {
		return err
	}
	if err := l.leaveIdentical(ctx, kind, before); err != nil || len(l.rows) == 0 {
		return err
	}
	into := l.into
	if l.crossTenant && kind == entity.KindTeam {
		into.Warnings = &l.people
	}
	actions, warnings, err := l.s.transferers[kind].Import(ctx, l.tenant, l.rows, into)
	if err != nil {
		return err
	}
	if len(actions) != len(l.rows) {
		return fmt.Errorf("bundles: the transferer of %s gave %d actions for %d rows", kind, len(actions), len(l.rows))
	}
	changes, err := l.changes(ctx, kind, actions, before)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := l.record(ctx, c); err != nil {
			return err
		}
	}
	if l.crossTenant {
		l.withhold(kind, actions, warnings)
	} else {
		l.warn(warnings...)
	}
	return nil
}

// maxNamed bounds the users that one sentence names.
const maxNamed = 20

// leaveUsers skips the users of a batch from another tenant, whether or not the tenant has users of
// these names. A user who came along would hold the name against the person of the tenant's own
// directory who has it.
func (l *importer) leaveUsers() {
	var names []string
	for _, r := range l.rows {
		l.skipped[r.Key] = true
		l.count(Change{string(entity.Skipped), r.Key, r.ID})
		names = append(names, transfer.Short(r.ID))
	}
	l.into.Warnings.Add(
		"%s did not come along: a tenant's own people decide who its users are.",
		entity.Count{N: len(names), Of: "user"},
	)
	sentence := "The users left out: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		sentence += fmt.Sprintf(" and %d more", more)
	}
	l.tell(sentence + ".")
}

// withhold passes the warnings of a Transferer, which may name users of the tenant and their
// rights, to the tenant's own superusers. The caller is told how many they are, and nothing that
// depends on which users exist.
func (l *importer) withhold(kind entity.Kind, actions []entity.ImportAction, warnings []string) {
	l.tell(warnings...)
	l.warnOfRights(kind, actions)
	if n := len(warnings); n > 0 {
		l.into.Warnings.Add("Left out: %s, which may tell of the tenant's users. An import of the archive there "+
			"has all warnings.",
			entity.Count{N: n, Of: string(kind) + " warning"})
	}
}

// warnOfRights warns of roles and ownership in the rows of another tenant, which a deploy from
// there does not grant.
func (l *importer) warnOfRights(kind entity.Kind, actions []entity.ImportAction) {
	members, owned := 0, 0
	for i, r := range l.rows {
		switch {
		case kind == entity.KindTeam:
			members += memberCount(r.JSON)
			if actions[i] == entity.Created {
				l.tell(fmt.Sprintf("team %s is new here: %s.", r.ID, transfer.Short(column(r.JSON, "name"))))
			}
		case actions[i] == entity.Created:
			if owner := column(r.JSON, "ownerId"); owner != "" && !l.index.ids[entity.KindTeam][owner] {
				owned++
			}
		}
	}
	if members > 0 {
		l.into.Warnings.Add(
			"%s of teams did not come along: roles in a tenant are given by its own people.",
			entity.Count{N: members, Of: "member"},
		)
	}
	if owned > 0 {
		l.into.Warnings.Add(
			"The owner of %s did not come along: the tenant's own people own what is new there.",
			entity.Count{N: owned, Of: "new item"},
		)
	}
}

// memberCount returns how many members the row of a team has.
func memberCount(row json.RawMessage) (n int) {
	rawjson.Each(row, func(member string, value json.RawMessage) {
		if member == "members" {
			rawjson.Each(value, func(string, json.RawMessage) { n++ })
		}
	})
	return n
}

// warnStays warns that an entity of another tenant stays, without the reason, which the caller may
// not know. It does not name users.
func (l *importer) warnStays(kind entity.Kind, id string) {
	sentence := fmt.Sprintf("%s %s stays as it is.", kind, id)
	l.tell(sentence)
	if kind != entity.KindUser {
		l.warn(sentence)
	}
}

// tell adds sentences for the superusers of another tenant.
func (l *importer) tell(sentences ...string) {
	l.notice = append(l.notice, sentences[:min(len(sentences), max(0, maxWarnings-len(l.notice)))]...)
}

// warnOwn warns of what is the tenant's own affair: its own superusers, whoever the caller is.
func (l *importer) warnOwn(sentence string) {
	if l.crossTenant {
		l.tell(sentence)
		return
	}
	l.warn(sentence)
}

// maxNotice bounds the lines of the notification of a deploy from another tenant.
const maxNotice = 100

// notify sends the tenant's superusers a notification of a deploy from another tenant: what was
// left out and what was done.
func (l *importer) notify(ctx context.Context, source string) error {
	n := len(l.notice)
	if n == 0 || l.s.notify == nil {
		return nil
	}
	supers, err := l.s.principals.Superusers(ctx, l.tenant)
	if err != nil || len(supers) == 0 {
		return err
	}
	lines := slices.Clone(l.notice[:min(n, maxNotice)])
	if n > maxNotice {
		lines = append(lines, fmt.Sprintf("There are %d more warnings.", n-maxNotice))
	}
	return l.s.notify(
		ctx, l.tenant, supers, "What a deploy from the tenant "+source+" did and left out",
		strings.Join(lines, "\n"),
	)
}

// record records the change of a row. It removes the files of an overwritten entity that are not in
// the archive before new ones are written: a path may differ from another one in case alone, or be
// a folder now.
func (l *importer) record(ctx context.Context, c Change) error {
	switch c.Action {
	case string(entity.Created):
		l.created[c.Key] = true
		if l.crossTenant && c.Kind == entity.KindTeam {
			l.into.DeployedTeams[c.ID] = true
		}
	case string(entity.Skipped):
		l.skipped[c.Key] = true
	default:
		if p, ok := l.s.transferers[c.Kind].(entity.FileTransferer); ok {
			if err := l.comparePaths(ctx, p, &c); err != nil {
				return err
			}
			keep := l.index.files[c.ID]
			if l.crossTenant {
				own, err := l.ownFiles(ctx, p, c.Key, keep)
				if err != nil {
					return err
				}
				keep = slices.Concat(keep, own)
			}
			if err := p.KeepFiles(ctx, l.tenant, c.ID, keep); err != nil {
				return err
			}
		}
	}
	l.count(c)
	return nil
}

func (l *importer) file(ctx context.Context, m archive.Member, r io.Reader) error {
	k := entity.Key{Kind: l.s.fileKind(l.index, m.ID), ID: m.ID}
	if _, identical := l.same[k]; identical && l.leaves() {
		return l.compareFile(ctx, k, *m.File, r)
	}
	if l.skipped[k] {
		return nil // and so are its files
	}
	return l.put(ctx, l.s.transferers[k.Kind].(entity.FileTransferer), k, *m.File, r)
}

// noteUndeployed adds a warning, for the caller and in a deploy also for the tenant's superusers,
// if an entity does not run a file that was written until somebody deploys it. There is one for
// each entity.
func (l *importer) noteUndeployed(ctx context.Context, p entity.FileTransferer, k entity.Key, path string) error {
	d, ok := p.(entity.Deployable)
	if !ok || l.undeployed[k] {
		return nil
	}
	sentence, err := d.Undeployed(ctx, l.tenant, k.ID, path)
	if sentence == "" || err != nil {
		return err
	}
	l.undeployed[k] = true
	l.warn(sentence)
	if l.crossTenant {
		l.tell(sentence)
	}
	return nil
}

func (l *importer) count(c Change) {
	l.add(c.Kind, c.Action, 1)
	if l.list {
		l.report.Changes = append(l.report.Changes, c)
	}
}

func (l *importer) add(kind entity.Kind, action string, n int) {
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

func (l *importer) warn(warnings ...string) {
	fit := min(len(warnings), max(0, maxWarnings-len(l.report.Warnings)))
	l.report.Warnings = append(l.report.Warnings, warnings[:fit]...)
	l.dropped += len(warnings) - fit
}
