package tenants

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Import is a tenant that is hidden while an import adds rows to it. An import that was not noted
// for ten minutes is taken over: a running server, or Delete, removes the tenant, and the methods
// of the Import fail with errs.Conflict.
type Import struct {
	u    Unchecked
	id   string
	mu   sync.Mutex
	at   time.Time // when it was noted last
	lost error     // it was taken over
}

// Begin adds a tenant that is hidden, for the rows that an import adds to it. Errors: errs.Invalid
// naming the field; errs.Conflict for a taken id.
func (u Unchecked) Begin(ctx context.Context, t Tenant) (*Import, error) {
	if err := t.accept(); err != nil {
		return nil, err
	}
	check, err := u.s.sealCheck(t.ID)
	if err != nil {
		return nil, err
	}
	t.CreatedAt = u.s.clock.Stamp()
	t.UpdatedAt = t.CreatedAt
	err = u.s.store.InTx(ctx, func(ctx context.Context) error {
		if err := u.insert(ctx, t, check); err != nil {
			return err
		}
		return u.s.store.Hide(ctx, t.ID, Importing, t.CreatedAt)
	})
	if err != nil {
		return nil, err
	}
	return &Import{u: u, id: t.ID, at: t.CreatedAt}, nil
}

// Beat notes once a minute that the import goes on. It is to be called before each write, so that
// nothing is written when the import was taken over, and each minute at least. It may be called by
// several goroutines.
func (i *Import) Beat(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lost != nil || i.u.s.clock.Now().Sub(i.at) < beat {
		return i.lost
	}
	return i.note(ctx, Importing)
}

// note notes why the tenant is hidden, unless the import was taken over.
func (i *Import) note(ctx context.Context, why Hidden) error {
	at := i.u.s.clock.Stamp()
	err := i.u.s.store.Rehide(ctx, i.id, Importing, i.at, why, at)
	if err == nil {
		i.at = at
	}
	return i.taken(err)
}

// taken returns the error of a write that found the tenant hidden in another way.
func (i *Import) taken(err error) error {
	if errs.CodeOf(err) != errs.NotFound {
		return err
	}
	i.lost = errs.New(
		errs.Conflict,
		"The import of the tenant %s stood still for ten minutes, and a delete has taken it over: nothing of it "+
			"is left when that has ended. Import it again.",
		i.id,
	)
	return i.lost
}

// Done ends the import: the tenant is served. No tenant may deploy into it, as those of its
// DeployFrom are of another server: here others may have their ids.
func (i *Import) Done(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	store := i.u.s.store
	return store.InTx(ctx, func(ctx context.Context) error {
		if err := i.taken(store.Show(ctx, i.id, Importing, i.at)); err != nil {
			return err
		}
		_, err := store.Update(ctx, i.id, func(t *Tenant) error {
			t.Settings.DeployFrom = []Source{}
			return nil
		})
		return err
	})
}

// Abandon removes what the import has made, unless it was taken over.
func (i *Import) Abandon(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.note(ctx, Deleting); err != nil {
		if i.lost != nil {
			return nil
		}
		return err
	}
	return (&removal{i.u.s, i.id, i.at}).run(ctx, nil)
}
