package tenants_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/store/tenants"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// interrupted is a store in which something happens to a delete.
type interrupted struct {
	tenants.Store
	empty  func(ctx context.Context, id string, progress func(int)) error
	rehide func() error // fails
}

func (s *interrupted) Empty(ctx context.Context, id string, progress func(int)) error {
	if empty := s.empty; empty != nil {
		s.empty = nil
		return empty(ctx, id, progress)
	}
	return s.Store.Empty(ctx, id, progress)
}

func (s *interrupted) Rehide(
	ctx context.Context, id string, was tenants.Hidden, since time.Time, why tenants.Hidden, at time.Time,
) error {
	if s.rehide != nil {
		if err := s.rehide(); err != nil {
			return err
		}
	}
	return s.Store.Rehide(ctx, id, was, since, why, at)
}

// TestSweepLeavesNewTenants: a sweep that was interrupted, while another delete came to the end and
// the id was given again, hides nothing of the new tenant.
func TestSweepLeavesNewTenants(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, ctx, at := is.New(t), t.Context(), now
		store := &interrupted{Store: bunstore.New(open(t))}
		u := tenants.New(tenants.Options{Store: store, Keys: ring{"a"}, Now: func() time.Time {
			return at
		}}).Unchecked()
		_, err := u.Add(ctx, tenants.Tenant{ID: "moved"})
		is.NoErr(err)
		is.NoErr(store.Hide(ctx, "moved", tenants.Deleting, at))
		at = at.Add(20 * time.Minute)
		store.empty = func(context.Context, string, func(int)) error {
			is.NoErr(u.Delete(ctx, "moved", tenants.DeleteOptions{}))
			_, err := u.Add(ctx, tenants.Tenant{ID: "moved", Name: "New"})
			is.NoErr(err)
			return entity.ErrMore
		}
		_, err = u.Hooks().Sweep(ctx, "moved")
		is.True(errors.Is(err, entity.ErrMore))
		_, err = u.Hooks().Sweep(ctx, "moved")
		is.NoErr(err)
		got, err := u.Lookup(ctx, "moved")
		is.NoErr(err)
		is.Equal(got.Name, "New")

		is.NoErr(u.Delete(ctx, "moved", tenants.DeleteOptions{}))
		_, err = u.Hooks().Sweep(ctx, "moved") // it was due, and is gone
		is.NoErr(err)
	})
}

// TestDeleteIsNotedAgain: a delete that could not note once that it goes on notes it later, and
// ends well.
func TestDeleteIsNotedAgain(t *testing.T) {
	is, ctx, at := is.New(t), t.Context(), now
	store := &interrupted{Store: bunstore.New(dbtest.SQLite(t))}
	u := tenants.New(tenants.Options{Store: store, Keys: ring{"a"}, Now: func() time.Time { return at }}).Unchecked()
	_, err := u.Add(ctx, tenants.Tenant{ID: "moved"})
	is.NoErr(err)
	busy := 1
	store.rehide = func() error {
		if busy--; busy >= 0 {
			return errs.New(errs.Unavailable, "busy")
		}
		return nil
	}
	store.empty = func(ctx context.Context, id string, progress func(int)) error {
		for range 3 {
			at = at.Add(2 * time.Minute)
			progress(1)
		}
		_, noted, err := store.Hidden(ctx, id)
		is.NoErr(err)
		is.Equal(noted, at)
		return store.Store.Empty(ctx, id, progress)
	}
	is.NoErr(u.Delete(ctx, "moved", tenants.DeleteOptions{}))
	_, err = u.Lookup(ctx, "moved")
	is.Equal(errs.CodeOf(err), errs.NotFound)
}
