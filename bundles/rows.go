package bundles

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/text/rawjson"
	"github.com/tenantcontent/tenantcontent/internal/transfer"
)

// importRows imports a batch of rows of one kind, but for those that it leaves out.
func (w *writer) importRows(ctx context.Context, rows []entity.Row) error {
	kind := rows[0].Kind
	if w.crossTenant && kind == entity.KindUser {
		w.leaveUsers(rows)
		return nil
	}
	rows, err := w.leaveOwn(ctx, kind, rows)
	if err != nil || len(rows) == 0 {
		return err
	}
	before, err := w.before(ctx, kind, rows)
	if err != nil {
		return err
	}
	rows, err = w.leaveIdentical(ctx, kind, rows, before)
	if err != nil || len(rows) == 0 {
		return err
	}
	into := w.into
	if w.crossTenant && kind == entity.KindTeam {
		into.Warnings = &w.people
	}
	actions, warnings, err := w.s.transferers[kind].Import(ctx, w.tenant, rows, into)
	if err != nil {
		return err
	}
	if len(actions) != len(rows) {
		return fmt.Errorf("bundles: the transferer of %s gave %d actions for %d rows", kind, len(actions), len(rows))
	}
	if err := w.announce(ctx, rows, actions); err != nil {
		return err
	}
	changes, err := w.changes(ctx, kind, rows, actions, before)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := w.record(ctx, c); err != nil {
			return err
		}
	}
	if w.crossTenant {
		w.withhold(kind, rows, actions, warnings)
	} else {
		w.warn(warnings...)
	}
	return nil
}

// announce announces what has become of the rows.
func (w *writer) announce(ctx context.Context, rows []entity.Row, actions []entity.ImportAction) error {
	for i, r := range rows {
		var action entity.Action
		switch actions[i] {
		case entity.Created:
			action = entity.ActionCreate
		case entity.Updated:
			action = entity.ActionUpdate
		default:
			continue
		}
		if err := w.s.feed.Each(ctx, w.tenant, action, r.Key); err != nil {
			return err
		}
	}
	return nil
}

// maxNamed bounds the users that one sentence names.
const maxNamed = 20

// leaveUsers skips the users of another tenant, whether or not the tenant has users of these names.
// A user who came along would hold the name against the person of the tenant's own directory who
// has it.
func (w *writer) leaveUsers(rows []entity.Row) {
	var names []string
	for _, r := range rows {
		w.skip(r.Key, r.ID)
		names = append(names, transfer.Short(r.ID))
	}
	w.sums.Add(
		"%s did not come along: a tenant's own people decide who its users are.",
		entity.Count{N: len(names), Of: "user"},
	)
	sentence := "The users left out: " + strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		sentence += fmt.Sprintf(" and %d more", more)
	}
	w.tell(sentence + ".")
}

// skip records a row that is left out.
func (w *writer) skip(k entity.Key, name string) {
	w.skipped[k] = true
	w.count(Change{string(entity.Skipped), k, name})
}

// leaveOwn skips the rows that would overwrite entities of another tenant which deploys of the
// source did not bring, and returns the others. The caller is told how many, the tenant's
// superusers which. With another rule than Overwrite nothing would be overwritten.
func (w *writer) leaveOwn(ctx context.Context, kind entity.Kind, rows []entity.Row) ([]entity.Row, error) {
	if !w.crossTenant || w.into.Rule != entity.Overwrite {
		return rows, nil
	}
	var ids []string
	for _, r := range rows {
		if !w.brought[r.Key] {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return rows, nil
	}
	there, err := w.s.transferers[kind].Needs(ctx, w.tenant, ids)
	if err != nil {
		return nil, err
	}
	names := shippedNames(rows, ids)
	return slices.DeleteFunc(rows, func(r entity.Row) bool {
		if _, is := there[r.ID]; !is || w.brought[r.Key] {
			return false
		}
		w.skip(r.Key, names[r.ID])
		w.tell(fmt.Sprintf(
			"%s %s is your own and stays as it is: no deploy from %s brought it.", kind, r.ID, w.caller.Tenant,
		))
		return true
	}), nil
}

// before returns the stored rows of the entities of rows, if changes are to be reported.
func (w *writer) before(
	ctx context.Context, kind entity.Kind, rows []entity.Row,
) (map[string]json.RawMessage, error) {
	if !w.list || w.into.Rule != entity.Overwrite && !w.leavesIdentical() {
		return nil, nil
	}
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return w.stored(ctx, kind, ids)
}

// stored returns the rows of the given entities that exist, by id.
func (w *writer) stored(ctx context.Context, kind entity.Kind, ids []string) (map[string]json.RawMessage, error) {
	rows := map[string]json.RawMessage{}
	for row, err := range w.s.present(ctx, w.tenant, kind, ids) {
		if errs.CodeOf(err) == errs.NotFound { // a draft, which cannot be exported: its import reports it
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows[row.ID] = bytes.Clone(row.JSON)
	}
	return rows, nil
}

// leavesIdentical reports whether identical rows are reported as unchanged and not imported: with
// the rule Skip, and in a dry run with the rule Fail, which is to find the rows that differ.
func (w *writer) leavesIdentical() bool {
	return w.list && !w.crossTenant && (w.into.Rule == entity.Skip || w.into.Rule == entity.Fail && w.dry)
}

// leaveIdentical records the rows that are identical to stored ones as unchanged, and returns the
// others.
func (w *writer) leaveIdentical(
	ctx context.Context, kind entity.Kind, rows []entity.Row, before map[string]json.RawMessage,
) ([]entity.Row, error) {
	if !w.leavesIdentical() || len(before) == 0 {
		return rows, nil
	}
	rest, identical := []entity.Row{}, []string{}
	for _, r := range rows {
		same, err := w.identical(ctx, r, before[r.ID])
		if err != nil {
			return nil, err
		}
		if same {
			identical = append(identical, r.ID)
		} else {
			rest = append(rest, r)
		}
	}
	names, err := w.names(ctx, kind, rows, identical)
	if err != nil {
		return nil, err
	}
	for _, id := range identical {
		if err := w.leave(ctx, Change{unchanged, entity.Key{Kind: kind, ID: id}, names[id]}); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// identical reports whether overwriting with a row would change nothing. It ignores an unknown
// owner, who would be replaced, and the createdAt of a user.
func (w *writer) identical(ctx context.Context, r entity.Row, there json.RawMessage) (bool, error) {
	switch {
	case there == nil || bytes.Equal(r.JSON, there):
		return there != nil, nil
	case r.Kind == entity.KindUser:
		return sameBut("createdAt", r.JSON, there), nil
	}
	owner := column(r.JSON, "ownerId")
	if owner == "" || column(there, "ownerId") != w.into.Owner || !sameBut("ownerId", r.JSON, there) {
		return false, nil
	}
	known, err := w.s.principals.Known(ctx, w.tenant, []string{owner})
	return err == nil && !known[owner], err
}

// sameBut reports whether two rows have the same members, except for the value of one.
func sameBut(name string, a, b json.RawMessage) bool {
	members := func(row json.RawMessage) (all []string) {
		rawjson.Each(row, func(member string, value json.RawMessage) {
			if member != name {
				all = append(all, member, string(value))
			}
		})
		return all
	}
	return slices.Equal(members(a), members(b))
}

// changes returns the changes of imported rows.
func (w *writer) changes(
	ctx context.Context, kind entity.Kind, rows []entity.Row, actions []entity.ImportAction,
	before map[string]json.RawMessage,
) ([]Change, error) {
	all, ids, over := make([]Change, len(rows)), make([]string, len(rows)), []string{}
	for i, r := range rows {
		all[i], ids[i] = Change{Action: string(actions[i]), Key: r.Key}, r.ID
		if actions[i] == entity.Updated {
			over = append(over, r.ID)
		}
	}
	if !w.list {
		return all, nil
	}
	names, err := w.names(ctx, kind, rows, ids)
	if err != nil {
		return nil, err
	}
	now, err := w.stored(ctx, kind, over)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		all[i].Name = names[id]
		if old, ok := before[id]; ok && all[i].Action == string(entity.Updated) && bytes.Equal(old, now[id]) {
			all[i].Action = unchanged
		}
	}
	return all, nil
}

// names returns the names of the given entities that exist, by id. In another tenant than the
// caller's they are those in the rows, else the ids.
func (w *writer) names(
	ctx context.Context, kind entity.Kind, rows []entity.Row, ids []string,
) (map[string]string, error) {
	if w.crossTenant {
		return shippedNames(rows, ids), nil
	}
	refs, err := w.s.typeOf(kind).Refs(ctx, w.tenant, ids)
	names := make(map[string]string, len(refs))
	for id, ref := range refs {
		names[id] = ref.Name
	}
	return names, err
}

func shippedNames(rows []entity.Row, ids []string) map[string]string {
	names := make(map[string]string, len(ids))
	for _, id := range ids {
		names[id] = id
	}
	for _, r := range rows {
		if name := column(r.JSON, "name"); name != "" {
			names[r.ID] = name
		}
	}
	return names
}

// column returns a text column of a row, "" for none.
func column(row json.RawMessage, name string) (text string) {
	rawjson.Each(row, func(member string, value json.RawMessage) {
		if member == name {
			text, _ = rawjson.Text(value)
		}
	})
	return text
}

// record records the change of a row.
func (w *writer) record(ctx context.Context, c Change) error {
	switch c.Action {
	case string(entity.Created):
		w.created[c.Key] = true
		if w.crossTenant && c.Kind == entity.KindTeam {
			w.into.DeployedTeams[c.ID] = true
		}
	case string(entity.Skipped):
		w.skipped[c.Key] = true
	default:
		if p, ok := w.s.transferers[c.Kind].(entity.FileTransferer); ok {
			if err := w.clearFiles(ctx, p, &c); err != nil {
				return err
			}
		}
	}
	w.count(c)
	return nil
}

// withhold passes the warnings of a Transferer, which may name users of the tenant and their
// rights, to the tenant's own superusers. The caller is told how many they are, and nothing that
// depends on which users exist.
func (w *writer) withhold(kind entity.Kind, rows []entity.Row, actions []entity.ImportAction, warnings []string) {
	w.tell(warnings...)
	w.warnOfRights(kind, rows, actions)
	if n := len(warnings); n > 0 {
		w.sums.Add("Left out: %s, which may tell of the tenant's users. An import of the archive there "+
			"has all warnings.",
			entity.Count{N: n, Of: string(kind) + " warning"})
	}
}

// warnOfRights warns of roles and ownership in the rows of another tenant, which a deploy from
// there does not grant.
func (w *writer) warnOfRights(kind entity.Kind, rows []entity.Row, actions []entity.ImportAction) {
	members, owned := 0, 0
	for i, r := range rows {
		switch {
		case kind == entity.KindTeam:
			members += memberCount(r.JSON)
			if actions[i] == entity.Created {
				w.tell(fmt.Sprintf("team %s is new here: %s.", r.ID, transfer.Short(column(r.JSON, "name"))))
			}
		case actions[i] == entity.Created:
			if owner := column(r.JSON, "ownerId"); owner != "" && !w.contents.ids[entity.KindTeam][owner] {
				owned++
			}
		}
	}
	if members > 0 {
		w.sums.Add(
			"%s of teams did not come along: roles in a tenant are given by its own people.",
			entity.Count{N: members, Of: "member"},
		)
	}
	if owned > 0 {
		w.sums.Add(
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
