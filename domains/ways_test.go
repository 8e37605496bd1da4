package domains_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// slowly is a Store that reads all domains when a test lets it.
type slowly struct {
	domains.Store
	begun, goOn chan struct{}
}

func (s slowly) All(ctx context.Context, tenant, driver string) ([]domains.Domain, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Store.All(ctx, tenant, driver)
}

// TestWaysOfACrowd: who asks from a network from which too many ask is refused at once, and others
// are not.
func TestWaysOfACrowd(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	store := slowly{w.store, make(chan struct{}, 100), make(chan struct{})}
	s := w.with(t, func(o *options) { o.Store = store })
	from := func(address string) context.Context {
		return actor.WithOrigin(t.Context(), actor.Origin{Address: netip.MustParseAddr(address)})
	}
	const callers = 70
	answered := make(chan error, callers)
	for range callers {
		go func() {
			_, err := s.Unchecked().Ways(from("203.0.113.1"), "acme")
			answered <- err
		}()
	}
	<-store.begun
	for range callers - 64 { // which have a place, or wait for one
		is.Equal(errs.CodeOf(<-answered), errs.Busy)
	}
	other := make(chan error, 1)
	go func() {
		_, err := s.Unchecked().Ways(from("203.0.113.2"), "evil")
		other <- err
	}()
	<-store.begun // it reads beside them
	close(store.goOn)
	is.NoErr(<-other)
	for range 64 { // on a busy machine some have waited in vain
		if err := <-answered; err != nil {
			is.Equal(errs.CodeOf(err), errs.Busy)
		}
	}
}

// TestWaysWithoutADatabase: a failure is no answer, of a tenant that exists and of one that does
// not.
func TestWaysWithoutADatabase(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	s := w.with(t, func(o *options) { o.Store = away{w.store} })
	for _, tenant := range []string{"acme", "none"} {
		_, err := s.Unchecked().Ways(t.Context(), tenant)
		is.True(errors.Is(err, errAway))
	}
	ways, err := s.Unchecked().Ways(t.Context(), "no tenant")
	is.NoErr(err)
	is.Equal(len(ways), 1)
}

var errAway = errors.New("the database is away")

type away struct{ domains.Store }

func (away) All(context.Context, string, string) ([]domains.Domain, error) { return nil, errAway }
