package transfertest

import (
	"context"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Owners is a Store of entities with owners, in one tenant that has the users jo and mia, but not
// nobody.
type Owners struct {
	Insert   func(ctx context.Context, n int, owner string) error // the nth entity, from 1 on
	Owned    func(ctx context.Context, owner string) (int, error)
	Reassign func(ctx context.Context, from, to string, at time.Time) ([]Moved, error)
	InTx     func(ctx context.Context, fn func(ctx context.Context) error) error
}

// Moved is a reference, returned by a Store, to an entity that it has moved.
type Moved struct {
	ID, OwnerID string
	UpdatedAt   time.Time
}

// NoOwner checks that no entity is stored for a missing user, whose name a new user could get.
func (o Owners) NoOwner(t *testing.T) {
	is := is.New(t)
	is.Equal(errs.CodeOf(o.Insert(t.Context(), 1, "nobody")), errs.Forbidden)
	n, err := o.Owned(t.Context(), "nobody")
	is.NoErr(err)
	is.Equal(n, 0)
}

// ReassignTells checks that the moved entities are returned, even while others are added.
func (o Owners) ReassignTells(t *testing.T, at time.Time) {
	is, ctx := is.New(t), t.Context()
	const entities = 60
	done := make(chan error)
	go func() {
		var err error
		for n := 0; n < entities && err == nil; n++ {
			err = o.Insert(ctx, n+1, "jo")
		}
		done <- err
	}()
	told := map[string]bool{}
	reassign := func() {
		is.NoErr(o.InTx(ctx, func(ctx context.Context) error {
			moved, err := o.Reassign(ctx, "jo", "mia", at)
			for _, m := range moved {
				is.True(!told[m.ID])
				is.Equal(m.OwnerID, "mia")
				is.Equal(m.UpdatedAt, at)
				told[m.ID] = true
			}
			return err
		}))
	}
	for ended := false; !ended; {
		select {
		case err := <-done:
			is.NoErr(err)
			ended = true
		default:
		}
		reassign()
	}
	is.Equal(len(told), entities)
	n, err := o.Owned(ctx, "mia")
	is.NoErr(err)
	is.Equal(n, entities)
}
