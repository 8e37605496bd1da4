package tenants

import (
	"context"
	"slices"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
)

// Unchecked has the methods of a Service that check no permission: they need no actor and take any
// tenant. They are for the program that builds the services and for its command line. Do not pass
// them what a request says before it has been checked.
type Unchecked struct{ s *Service }

// Unchecked returns the methods that check no permission.
func (s *Service) Unchecked() Unchecked { return Unchecked{s} }

// Add adds a tenant. Without a name it is named as its id. Errors: errs.Invalid naming the field;
// errs.Conflict for a taken id.
func (u Unchecked) Add(ctx context.Context, t Tenant) (Tenant, error) {
	if !ValidID(t.ID) {
		return Tenant{}, errs.New(
			errs.Invalid,
			"id must be 1 to 63 lower-case letters, digits and hyphens, and not begin with a hyphen",
		)
	}
	if t.Name == "" {
		t.Name = t.ID
	}
	if err := t.accept(); err != nil {
		return Tenant{}, err
	}
	check, err := u.s.sealCheck(t.ID)
	if err != nil {
		return Tenant{}, err
	}
	t.CreatedAt = u.s.clock.Stamp()
	t.UpdatedAt = t.CreatedAt
	of := entity.Subject{Kind: Kind, ID: t.ID, Action: entity.ActionCreate}
	err = u.s.feed.In(ctx, nil, t.ID, of, func(ctx context.Context) error { return u.insert(ctx, t, check) })
	if err != nil {
		return Tenant{}, err
	}
	return t, nil
}

// Lookup returns a tenant. It returns errs.NotFound if there is none with this id.
func (u Unchecked) Lookup(ctx context.Context, id string) (Tenant, error) {
	return u.s.get(ctx, id)
}

// All returns all tenants, ordered by id.
func (u Unchecked) All(ctx context.Context) ([]Tenant, error) { return u.s.store.All(ctx) }

// SetQuota sets what a tenant may store. What it stores already stays, also if that is more.
// Errors: errs.Invalid; errs.NotFound.
func (u Unchecked) SetQuota(ctx context.Context, id string, q Quota) (Tenant, error) {
	if q.Bytes != nil && *q.Bytes < 0 || q.Workspaces != nil && *q.Workspaces < 0 {
		return Tenant{}, errs.New(errs.Invalid, "a quota must not be negative")
	}
	if _, err := u.Lookup(ctx, id); err != nil {
		return Tenant{}, err
	}
	return u.update(ctx, id, func(t *Tenant) error {
		t.Quota, t.UpdatedAt = q, u.s.clock.Stamp()
		return nil
	})
}

func (u Unchecked) update(ctx context.Context, id string, edit func(*Tenant) error) (t Tenant, err error) {
	err = u.s.feed.In(ctx, nil, id, updated(id), func(ctx context.Context) (err error) {
		t, err = u.s.store.Update(ctx, id, edit)
		return err
	})
	return t, err
}

// ChangeLicenses adds licenses to a tenant and removes others, in one write. A license that it has
// already is not added twice. Errors: errs.Invalid naming the license, also for one to remove that
// the tenant does not have; errs.NotFound.
func (u Unchecked) ChangeLicenses(ctx context.Context, id string, add, remove []string) (Tenant, error) {
	if _, err := u.Lookup(ctx, id); err != nil {
		return Tenant{}, err
	}
	return u.update(ctx, id, func(t *Tenant) error {
		has := t.Settings.Licenses
		for _, l := range remove {
			if slices.Contains(add, l) {
				return errs.New(errs.Invalid, "the license %q cannot be added and removed at once", l)
			}
			if !slices.Contains(has, l) {
				return errs.New(errs.Invalid, "the tenant %s does not have the license %q", id, l)
			}
		}
		for _, l := range add {
			if !line(l, maxLicense) {
				return errs.New(
					errs.Invalid, "a license must be 1 to %d characters without control characters, not %q",
					maxLicense, l,
				)
			}
		}
		has = slices.DeleteFunc(slices.Clone(has), func(l string) bool {
			return slices.Contains(remove, l) || slices.Contains(add, l)
		})
		t.Settings.Licenses, t.UpdatedAt = append(has, licenseSet(add)...), u.s.clock.Stamp()
		return t.accept()
	})
}

// HiddenIDs returns the ids of the tenants that are being deleted or imported: their rows are
// incomplete.
func (u Unchecked) HiddenIDs(ctx context.Context) ([]string, error) { return u.s.store.HiddenIDs(ctx) }

// IDs returns the ids of all tenants, ordered.
func (u Unchecked) IDs(ctx context.Context) ([]string, error) { return u.s.store.IDs(ctx) }

// Counts returns how many rows of each sort a tenant has, zeros included. It returns errs.NotFound
// if there is no such tenant.
func (u Unchecked) Counts(ctx context.Context, id string) ([]Count, error) {
	if _, err := u.Lookup(ctx, id); err != nil {
		return nil, err
	}
	rows, err := u.s.hooks.TenantCounts(ctx, id)
	all := make([]Count, len(rows))
	for i, r := range rows {
		all[i] = Count{Of: r.Of, N: r.N}
	}
	return all, err
}

// Any reports whether there is a tenant.
func (u Unchecked) Any(ctx context.Context) (bool, error) { return u.s.store.Any(ctx) }

// CheckDelete returns errs.Conflict, with what to do, if Delete would leave something of a tenant.
func (u Unchecked) CheckDelete(ctx context.Context, id string) error {
	if u.s.check == nil {
		return nil
	}
	return u.s.check(ctx, id)
}

// DeleteOptions configure a Delete.
type DeleteOptions struct {
	// Leave deletes a tenant also if something of it remains: see CheckDelete.
	Leave bool
	// Progress, unless it is nil, is called with the number of rows of each transaction.
	Progress func(rows int)
}

// Delete removes a tenant and all that it has. From the begin on nobody logs in there and nothing
// of it is found; its rows go in short transactions, and its id is free in the end. If that is
// interrupted, it goes on when Delete is called again, or by a sweep later. The other tenants lose
// their entries of DeployFrom for it and what their entity.Hooks remove, such as the records of its
// deploys, so that a tenant which is made with its id later has no right of it.
// Errors: errs.NotFound for a tenant that does not exist; errs.Conflict if it is being imported;
// those of CheckDelete for a tenant that is neither the rest of a deletion nor of an import.
func (u Unchecked) Delete(ctx context.Context, id string, o DeleteOptions) error {
	if !ValidID(id) {
		return errs.New(errs.NotFound, "Tenant %q not found.", id)
	}
	why, at, err := u.s.store.Hidden(ctx, id)
	if err == nil && why == "" && !o.Leave {
		err = u.CheckDelete(ctx, id)
	}
	if err != nil {
		return err
	}
	now := u.s.clock.Stamp()
	switch {
	case why != Importing:
		of := entity.Subject{Kind: Kind, ID: id, Action: entity.ActionDelete}
		err = u.s.feed.In(ctx, nil, id, of, func(ctx context.Context) error {
			return u.s.store.Hide(ctx, id, Deleting, now)
		})
	case u.s.clock.Now().Sub(at) < abandoned:
		err = importing(id, at)
	default:
		if err = u.s.store.Rehide(ctx, id, Importing, at, Deleting, now); errs.CodeOf(err) == errs.NotFound {
			// it goes on
			err = importing(id, u.s.clock.Now())
		}
	}
	if err != nil {
		return err
	}
	return (&removal{u.s, id, now}).run(ctx, o.Progress)
}

// importing returns the error for a tenant that an import has noted last at a time.
func importing(id string, at time.Time) error {
	return errs.New(errs.Conflict,
		"The tenant %s is being imported. If the import was killed, a running server removes what it has left, or "+
			"`tenant delete %s` does, from %s UTC on.",
		id, id, at.Add(abandoned).UTC().Format(time.DateTime))
}

// abandoned is how long after the last Hide or Rehide somebody else goes on with a tenant that is
// hidden, and beat how often these are called meanwhile.
const (
	abandoned = 10 * time.Minute
	beat      = time.Minute
)

// removal removes a tenant that is hidden as Deleting.
type removal struct {
	s     *Service
	id    string
	since time.Time // when it was noted last
}

// note notes that the removal was going on at a time. It is no error if somebody else has noted it
// since, or if the tenant is gone.
func (r *removal) note(ctx context.Context, at time.Time) error {
	err := r.s.store.Rehide(ctx, r.id, Deleting, r.since, Deleting, at)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	r.since = at
	return nil
}

// run removes the tenant. It ends without an error when somebody else has removed it meanwhile.
func (r *removal) run(ctx context.Context, progress func(rows int)) error {
	store, hooks := r.s.store, r.s.hooks
	others, every, err := hooks.TenantsWith(ctx, r.id)
	if err == nil && every {
		others, err = store.IDs(ctx)
	}
	if err != nil {
		return err
	}
	err = store.Forget(ctx, r.id, r.s.clock.Stamp(), others, func(ctx context.Context, other string) error {
		return hooks.TenantDeleted(ctx, other, r.id)
	})
	if err != nil {
		return err
	}
	err = store.Empty(ctx, r.id, func(rows int) {
		if progress != nil {
			progress(rows)
		}
		if now := r.s.clock.Stamp(); now.Sub(r.since) >= beat {
			_ = r.note(ctx, now) // tried again after the next rows: without it a sweep joins in after a while
		}
	})
	if err != nil {
		return err
	}
	why, _, err := store.Hidden(ctx, r.id)
	if errs.CodeOf(err) == errs.NotFound || err == nil && why != Deleting { // the id may be that of a new tenant by now
		return nil
	}
	if err == nil {
		err = hooks.Removed(ctx, r.id)
	}
	if err == nil {
		err = store.Delete(ctx, r.id)
	}
	if errs.CodeOf(err) == errs.NotFound {
		return nil
	}
	return err
}

// insert adds a tenant. Errors: errs.Conflict for a taken id, saying what is done to the tenant
// that has it.
func (u Unchecked) insert(ctx context.Context, t Tenant, check string) error {
	switch why, at, err := u.s.store.Hidden(ctx, t.ID); {
	case err != nil && errs.CodeOf(err) != errs.NotFound:
		return err
	case why == Deleting:
		return errs.New(errs.Conflict, "The tenant %s is being deleted: its id is free when that has ended.", t.ID)
	case why == Importing:
		return importing(t.ID, at)
	}
	return u.s.store.Insert(ctx, t, check)
}

// AIEnabled reports whether a tenant's AI module is on. It asks the database at most once a second,
// and at once after a change that Options.Changes counts. It returns errs.NotFound if there is no
// such tenant.
func (u Unchecked) AIEnabled(ctx context.Context, tenant string) (bool, error) {
	return u.s.ai.Get(ctx, tenant, "", func() (bool, error) {
		t, err := u.Lookup(ctx, tenant)
		return t.Settings.AI, err
	})
}

// Licensed reports whether a tenant has a license. It returns errs.NotFound if there is no such
// tenant.
func (u Unchecked) Licensed(ctx context.Context, tenant, license string) (bool, error) {
	t, err := u.s.get(ctx, tenant)
	return t.Settings.Licensed(license), err
}

// DefaultDomain returns the id of a tenant's default authentication domain. It returns
// errs.NotFound if there is no such tenant.
func (u Unchecked) DefaultDomain(ctx context.Context, id string) (string, error) {
	t, err := u.Lookup(ctx, id)
	return t.Settings.DefaultDomain, err
}

// ForgetDomain resets a tenant's default domain to local if it is the given one. It joins the
// transaction in ctx. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) ForgetDomain(ctx context.Context, id, domain string) error {
	t, err := u.Lookup(ctx, id)
	if err != nil || t.Settings.DefaultDomain != domain {
		return err
	}
	_, err = u.update(ctx, id, func(t *Tenant) error {
		if t.Settings.DefaultDomain == domain {
			t.Settings.DefaultDomain, t.UpdatedAt = local, u.s.clock.Stamp()
		}
		return nil
	})
	return err
}

// DeploysFrom reports whether a source may deploy bundles into a tenant, and the user who owns and
// runs what comes from there, "" for none. It returns errs.NotFound if there is no such tenant.
func (u Unchecked) DeploysFrom(ctx context.Context, id, source string) (allowed bool, runAs string, err error) {
	t, err := u.Lookup(ctx, id)
	for _, from := range t.Settings.DeployFrom {
		if from.Tenant == source {
			return true, from.RunAs, err
		}
	}
	return false, "", err
}
