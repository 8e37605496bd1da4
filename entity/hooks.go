package entity

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"
)

// Hooks is what one package, or a host, does with its rows when the entities that they belong to
// change. A nil field does nothing. All but Removed and Sweep join the transaction in ctx, change
// only rows of the given tenant, and need no actor.
type Hooks struct {
	// Renamed replaces the names of users. names maps old names to new ones. A new name is not an
	// old one, nor that of another user. It is called after the rows of users were changed and
	// Rename of all kinds was called.
	Renamed func(ctx context.Context, tenant string, names map[string]string) error
	// Deleted removes what belongs to deleted entities, users and teams: comments on them, files,
	// settings that name them. It is called in the transaction that deletes them. The rows of users
	// and teams still exist then.
	Deleted func(ctx context.Context, tenant string, gone ...Key) error
	// Reassigned is told what has another owner, in the transaction that has moved it.
	Reassigned func(ctx context.Context, tenant string, moved ...Ref) error
	// RemoveRest removes some n rows at most, in one transaction, that the delete of an entity,
	// user or team has left because they are too many, and reports whether there may be more.
	// Nobody sees them any more. The ID of a user is the account: users of the name who come later
	// have another one.
	RemoveRest func(ctx context.Context, tenant string, of Key, n int) (more bool, err error)
	// Disabled removes the credentials of users who have been disabled, in the transaction that
	// disables them. Enabling the users again does not restore the credentials.
	Disabled func(ctx context.Context, tenant string, usernames []string) error
	// Dependents returns how many rows are deleted with some entities of a kind and are not in
	// archives. Rows that have expired at the time at are not counted. It is called with hundreds
	// of entities at once.
	Dependents func(ctx context.Context, tenant string, kind Kind, ids []string, at time.Time) ([]Dependent, error)
	// Additions returns how many rows the users of a tenant added to some entities of a kind, by
	// id. Entities without additions may be left out. A deploy does not remove an entity that has
	// any.
	Additions func(ctx context.Context, tenant string, kind Kind, ids []string) (map[string][]Dependent, error)
	// Counts returns the numbers of rows of a tenant under the names that people know, including
	// zeros.
	Counts func(ctx context.Context, tenant string) ([]TenantCount, error)
	// TenantDeleted removes the rows of a tenant that refer to another tenant, which is being
	// deleted. It is called in a transaction for each tenant of TenantsWith. The row of the tenant
	// is locked if it named the other one as a source of deploys. It is called again if the
	// deletion was interrupted.
	TenantDeleted func(ctx context.Context, tenant, deleted string) error
	// TenantsWith returns the other tenants for which TenantDeleted may have something to do; nil:
	// it is called for all of them. It is called outside the transaction, and must not query the
	// tenants one by one.
	TenantsWith func(ctx context.Context, deleted string) ([]string, error)
	// Removed removes what a tenant had outside of the database. It is called outside of a
	// transaction, after the tenant's rows were deleted. If it fails, the deletion fails, and calls
	// it again when it is continued.
	Removed func(ctx context.Context, tenant string) error
	// Sealed are the columns with secrets that are sealed with the key of the program. A change of
	// the key seals their values again.
	Sealed []SealedColumn
	// Sweep removes expired rows of a tenant, in short steps, and returns their number. It runs in
	// the background for the tenants that Due finds, or for all tenants without Due. Between two
	// steps it calls Step and returns its error, so that the sweeps of all tenants get equal time.
	Sweep func(ctx context.Context, tenant string) (int, error)
	// Due are the rows that show for which tenants Sweep has something to do.
	Due []Due
}

// Due selects rows of a table that are due for a sweep by a time in one of their columns. The table
// must have an index on that column and tenant_id, so that the rows are found without querying the
// tenants one by one.
type Due struct {
	Table string
	// Column is a time, or a text if it is a day. If it is tenant_id, which the primary key begins
	// with, each row is due.
	Column string
	Day    bool          // Column is a day, such as 2026-11-20
	Where  string        // the condition of the index, or ""
	Age    time.Duration // the least age of the rows
	Hidden bool          // include the rows of tenants that are being imported or deleted
	// Since selects the rows whose time is after the last sweep, in place of old rows. It is for
	// limits on the number of rows, which only new rows can exceed.
	Since bool
}

// Sweep is the Sweep of one of the hooks, with its Due.
type Sweep struct {
	Due    []Due
	Tenant func(ctx context.Context, tenant string) (int, error)
}

// TenantCount is the number of rows of one sort that a tenant has.
type TenantCount struct {
	Of   string // the name of the rows for people, in the plural
	N    int
	Rank int // its order in the list, lowest first
}

// CountRows returns a Hooks.Counts for rows of one sort.
func CountRows(
	rank int, of string, count func(ctx context.Context, tenant string) (int, error),
) func(context.Context, string) ([]TenantCount, error) {
	return func(ctx context.Context, tenant string) ([]TenantCount, error) {
		n, err := count(ctx, tenant)
		return []TenantCount{{Of: of, N: n, Rank: rank}}, err
	}
}

// SealedColumn is a column of text, perhaps null, whose values are sealed for their tenant, table,
// column and row.
type SealedColumn struct {
	Table, Column string
	Key           string // the column that identifies a row in its tenant; the value is sealed for it
}

// Dependent is the number of rows of one sort that belong to entities.
type Dependent struct {
	Count
	Rank   int // its order among the counts of a sentence: lower ones come first, 0 last
	Holder Key // the entity whose archive contains the rows, such as the team of memberships; zero: none
}

// Counts returns the sums of all counts that are not 0, one for each noun, in the order of their
// ranks.
func Counts(all []Dependent) []Count {
	rank := func(d Dependent) int { return cmp.Or(d.Rank, math.MaxInt) }
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Dependent) int { return cmp.Compare(rank(a), rank(b)) })
	var sums []Count
	for _, d := range all {
		switch at := slices.IndexFunc(sums, func(c Count) bool { return c.Of == d.Of }); {
		case d.N == 0:
		case at < 0:
			sums = append(sums, d.Count)
		default:
			sums[at].N += d.N
		}
	}
	return sums
}

// AddHooks adds hooks after those already registered. It must not be called once the Registry is in
// use.
func (r *Registry) AddHooks(hooks ...Hooks) { r.hooks = append(r.hooks, hooks...) }

// Deleted calls all Hooks.Deleted in the order of registration. Code that deletes entities must
// call it. Without entities it does nothing.
func (r *Registry) Deleted(ctx context.Context, tenant string, gone ...Key) error {
	if len(gone) == 0 {
		return nil
	}
	for _, h := range r.hooks {
		if h.Deleted == nil {
			continue
		}
		if err := h.Deleted(ctx, tenant, gone...); err != nil {
			return err
		}
	}
	return nil
}

func (r *Registry) reassigned(ctx context.Context, tenant string, moved []Ref) error {
	if len(moved) == 0 {
		return nil
	}
	for _, h := range r.hooks {
		if h.Reassigned == nil {
			continue
		}
		if err := h.Reassigned(ctx, tenant, moved...); err != nil {
			return err
		}
	}
	return nil
}

// RemoveRest calls all Hooks.RemoveRest in the order of registration, until one reports that there
// may be more.
func (r *Registry) RemoveRest(ctx context.Context, tenant string, of Key, n int) (more bool, err error) {
	for _, h := range r.hooks {
		if h.RemoveRest == nil {
			continue
		}
		if more, err := h.RemoveRest(ctx, tenant, of, n); err != nil || more {
			return more, err
		}
	}
	return false, nil
}

// Disabled calls all Hooks.Disabled in the order of registration. Code that disables users must
// call it. Without users it does nothing.
func (r *Registry) Disabled(ctx context.Context, tenant string, usernames ...string) error {
	if len(usernames) == 0 {
		return nil
	}
	for _, h := range r.hooks {
		if h.Disabled == nil {
			continue
		}
		if err := h.Disabled(ctx, tenant, usernames); err != nil {
			return err
		}
	}
	return nil
}

// Dependents returns the counts of all Hooks.Dependents, in the order of registration.
func (r *Registry) Dependents(
	ctx context.Context, tenant string, kind Kind, ids []string, at time.Time,
) ([]Dependent, error) {
	var all []Dependent
	for _, h := range r.hooks {
		if h.Dependents == nil || len(ids) == 0 {
			continue
		}
		some, err := h.Dependents(ctx, tenant, kind, ids, at)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// Additions returns the counts of all Hooks.Additions by id, in the order of registration.
func (r *Registry) Additions(
	ctx context.Context, tenant string, kind Kind, ids []string,
) (map[string][]Dependent, error) {
	all := map[string][]Dependent{}
	for _, h := range r.hooks {
		if h.Additions == nil || len(ids) == 0 {
			continue
		}
		some, err := h.Additions(ctx, tenant, kind, ids)
		if err != nil {
			return nil, err
		}
		for id, counts := range some {
			all[id] = append(all[id], counts...)
		}
	}
	return all, nil
}

// TenantCounts returns the counts of all Hooks.Counts in the order of their ranks.
func (r *Registry) TenantCounts(ctx context.Context, tenant string) ([]TenantCount, error) {
	var all []TenantCount
	for _, h := range r.hooks {
		if h.Counts == nil {
			continue
		}
		some, err := h.Counts(ctx, tenant)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortStableFunc(all, func(a, b TenantCount) int { return cmp.Compare(a.Rank, b.Rank) })
	return all, nil
}

// TenantsWith returns the tenants for which a hook has something to do when another tenant is
// deleted, unordered and possibly with duplicates. every is true if TenantDeleted must be called
// for all tenants.
func (r *Registry) TenantsWith(ctx context.Context, deleted string) (tenants []string, every bool, err error) {
	for _, h := range r.hooks {
		switch {
		case h.TenantDeleted == nil:
		case h.TenantsWith == nil:
			every = true
		default:
			some, err := h.TenantsWith(ctx, deleted)
			if err != nil {
				return nil, false, err
			}
			tenants = append(tenants, some...)
		}
	}
	return tenants, every, nil
}

// TenantDeleted calls all Hooks.TenantDeleted in the order of registration.
func (r *Registry) TenantDeleted(ctx context.Context, tenant, deleted string) error {
	for _, h := range r.hooks {
		if h.TenantDeleted == nil {
			continue
		}
		if err := h.TenantDeleted(ctx, tenant, deleted); err != nil {
			return err
		}
	}
	return nil
}

// Removed calls all Hooks.Removed, even if one of them fails.
func (r *Registry) Removed(ctx context.Context, tenant string) error {
	var failed []error
	for _, h := range r.hooks {
		if h.Removed != nil {
			failed = append(failed, h.Removed(ctx, tenant))
		}
	}
	return errors.Join(failed...)
}

// Sealed returns the columns of all Hooks.Sealed, in the order of registration.
func (r *Registry) Sealed() []SealedColumn {
	var all []SealedColumn
	for _, h := range r.hooks {
		all = append(all, h.Sealed...)
	}
	return all
}

// Sweeps returns all Hooks.Sweep with their Due, in the order of registration.
func (r *Registry) Sweeps() []Sweep {
	var all []Sweep
	for _, h := range r.hooks {
		if h.Sweep != nil {
			all = append(all, Sweep{h.Due, h.Sweep})
		}
	}
	return all
}
