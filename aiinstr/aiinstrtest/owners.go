package aiinstrtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/aiinstr"
	"github.com/tenantcontent/tenantcontent/errs"
)

// testNoOwner: nothing is kept for somebody who is not there, whom another one may come to be called like.
func testNoOwner(t *testing.T, s aiinstr.Store) {
	is := is.New(t)
	i := instruction(1, "a")
	i.OwnerID = "nobody"
	is.Equal(errs.CodeOf(s.Insert(t.Context(), "acme", i)), errs.Forbidden)
	n, err := s.Owned(t.Context(), "acme", "nobody")
	is.NoErr(err)
	is.Equal(n, 0)
}

// testReassignTells: what is moved is told, also while more is coming.
func testReassignTells(t *testing.T, s aiinstr.Store) {
	is, ctx := is.New(t), t.Context()
	const pieces = 60
	done := make(chan error)
	go func() {
		var err error
		for n := 0; n < pieces && err == nil; n++ {
			err = s.Insert(ctx, "acme", instruction(n+1, fmt.Sprint("s", n)))
		}
		done <- err
	}()
	told := map[string]bool{}
	reassign := func() {
		is.NoErr(s.InTx(ctx, func(ctx context.Context) error {
			moved, err := s.Reassign(ctx, "acme", "jo", "mia", tuesday)
			for _, i := range moved {
				is.True(!told[i.ID])
				is.Equal(i.OwnerID, "mia")
				is.Equal(i.UpdatedAt, tuesday)
				told[i.ID] = true
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
	is.Equal(len(told), pieces)
	n, err := s.Owned(ctx, "acme", "mia")
	is.NoErr(err)
	is.Equal(n, pieces)
}
