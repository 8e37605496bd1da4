package entity

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"
)

// Hooks is what one package, or a host, does with its rows when what they belong to changes. A nil
// field does nothing. All but Removed and Sweep join the transaction in ctx, keep to the tenant
// they are given, and need no actor.
type Hooks struct {
	// Renamed replaces the names of users. names maps old ones to new ones; no new one is an old
	// one, nor that of another user. The rows of users, and what their kinds' Rename does, have
	// been changed before.
	Renamed func(ctx context.Context, tenant string, names map[string]string) error
	// Deleted removes what belongs to deleted entities, users and teams: comments on them, files,
	// settings that name them. It is called in the transaction that deletes them, with users and
	// teams while their rows are still there.
	Deleted func(ctx context.Context, tenant string, gone ...Key) error
	// RemoveRest removes some n rows at most, in one transaction, that the delete of an entity,
	// user or team has left because they are too many, and reports whether there may be more.
	// Nobody sees them any more. The ID of a user is the account: users of the name who come later
	// have another one.
	RemoveRest func(ctx context.Context, tenant string, of Key, n int) (more bool, err error)
	// Disabled removes the credentials of users who have been disabled, in the transaction that
	// disables them: enabling the users again does not bring them back.
	Disabled func(ctx context.Context, tenant string, usernames []string) error
	// Dependents counts what goes with some entities of a kind when they are deleted and is not in
	// archives. at is the time: what has expired does not count. It asks of hundreds of entities at
	// once.
	Dependents func(ctx context.Context, tenant string, kind Kind, ids []string, at time.Time) ([]Dependent, error)
	// Additions counts what a tenant's people added to some entities of a kind, by id; those with
	// nothing may be left out. A deploy does not remove an entity that has any.
	Additions func(ctx context.Context, tenant string, kind Kind, ids []string) (map[string][]Dependent, error)
	// Counts counts the rows of a tenant that people know by name, zeros included.
	Counts func(ctx context.Context, tenant string) ([]TenantCount, error)
	// TenantDeleted removes what a tenant has of another one that is being deleted, and perhaps
	// nothing. It is called for the tenants of TenantsWith, each in a transaction, while the row of
	// tenant is locked if it named the other as a source of deploys; and again if the deletion was
	// interrupted.
	TenantDeleted func(ctx context.Context, tenant, deleted string) error
	// TenantsWith returns the other tenants for which TenantDeleted has something to do; nil: it is
	// called for all of them. It is not in the transaction, and finds them without looking at the
	// tenants one by one.
	TenantsWith func(ctx context.Context, deleted string) ([]string, error)
	// Removed removes what a tenant had outside of the database. It is called when the tenant's
	// rows have been deleted, in no transaction; when it fails, the deletion does, and calls it
	// again when it goes on.
	Removed func(ctx context.Context, tenant string) error
	// Sealed are the columns that hold secrets under the key of the program. A change of the key
	// seals their values again.
	Sealed []SealedColumn
	// Sweep removes what a tenant has that has expired, in steps that are short on their own, and
	// returns the number of rows. It is background work, and called for the tenants that Due finds;
	// without Due it is called for all. It calls Step between two steps, and returns the error of
	// it, so that the sweeps of all tenants take turns.
	Sweep func(ctx context.Context, tenant string) (int, error)
	// Due are the rows by which the tenants are found that have something for Sweep.
	Due []Due
}

// Due are rows of a table of the database that are due for a sweep by a time in one of their
// columns. An index begins with that column and tenant_id, so that they are found without looking
// at the tenants one by one.
type Due struct {
	Table  string
	Column string        // a time; or text, for days
	Day    bool          // Column is a day, such as 2026-11-20
	Where  string        // the condition of the index, "" for none
	Age    time.Duration // how old the rows are at least
	Hidden bool          // rows of tenants that are being imported or deleted are due, too
	// Since makes the rows due whose time has come since the sweep before, in place of old ones:
	// for bounds on the number of rows, which nothing but a new one can pass.
	Since bool
}

// Sweep is what one of the hooks sweeps.
type Sweep struct {
	Due    []Due
	Tenant func(ctx context.Context, tenant string) (int, error)
}

// TenantCount is how many rows of one sort a tenant has.
type TenantCount struct {
	Of   string // what people call them, in the plural
	N    int
	Rank int // its place in the list: lower ones come first
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
	Key           string // the column that tells the rows of a tenant apart, and that the value is sealed for
}

// Dependent is how many rows of one sort belong to entities.
type Dependent struct {
	Count
	Rank   int // its place among the counts of a sentence: lower ones come first, 0 last
	Holder Key // an entity whose archive holds the rows, such as the team of memberships; zero for none
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

// AddHooks adds hooks behind those that are there. Like Add it belongs to the building of a
// program: not while the Registry is in use.
func (r *Registry) AddHooks(hooks ...Hooks) { r.hooks = append(r.hooks, hooks...) }

// Deleted calls Hooks.Deleted of all, in the order of registration, for whoever deletes entities:
// see there. For none it does nothing.
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

// RemoveRest calls Hooks.RemoveRest of all, in the order of registration, until one reports that
// there may be more: see there.
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

// Disabled calls Hooks.Disabled of all, in the order of registration, for whoever disables users:
// see there. For none it does nothing.
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

// TenantsWith returns the tenants for which one of the hooks has something to do when another
// tenant is deleted, in no order and perhaps some of them twice. every is true if all tenants are
// to be asked.
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

// TenantDeleted calls Hooks.TenantDeleted of all, in the order of registration.
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

// Removed calls Hooks.Removed of all. The failure of one of the hooks does not keep the others from
// it.
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

// Sweeps returns the Hooks.Sweep of all with what is due for them, in the order of registration.
func (r *Registry) Sweeps() []Sweep {
	var all []Sweep
	for _, h := range r.hooks {
		if h.Sweep != nil {
			all = append(all, Sweep{h.Due, h.Sweep})
		}
	}
	return all
}
