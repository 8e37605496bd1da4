package sessions_test

import (
	"context"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// crowd is a directory whose answers take until the end of the test.
type crowd struct{ asked, end chan struct{} }

func (c crowd) Authenticate(context.Context, principals.Credentials) (principals.User, error) {
	c.asked <- struct{}{}
	<-c.end
	return principals.User{}, errs.New(errs.Unauthenticated, "Unable to log in")
}

// TestPendingLoginsAreBounded: too many at one tenant from one network are told to come back,
// whoever they are; other networks, and other tenants, are not.
func TestPendingLoginsAreBounded(t *testing.T) {
	is := is.New(t)
	c := crowd{make(chan struct{}, 2000), make(chan struct{})}
	s := sessions.New(sessions.Options{Authenticator: c, Tenants: &fixedTenants{"acme", "evil"}})
	ended := make(chan error, 2000)
	login := func(address, tenant, user string) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ctx = actor.WithOrigin(ctx, actor.Origin{Address: netip.MustParseAddr(address)})
		_, err := s.Login(ctx, principals.Credentials{Tenant: tenant, Domain: "local", Username: user, Password: "x"})
		return err
	}
	begin := func(address, tenant string) {
		go func() { ended <- login(address, tenant, "jo") }()
		<-c.asked
	}
	const most = 1280
	for range most {
		begin("192.0.2.1", "acme")
	}
	for _, user := range []string{"jo", "nobody"} {
		is.Equal(errs.CodeOf(login("192.0.2.1", "acme", user)), errs.Busy)
	}
	begin("192.0.2.2", "acme")
	begin("192.0.2.1", "evil")
	is.Equal(errs.CodeOf(login("192.0.2.1", "none", "jo")), errs.Unauthenticated) // without asking anybody
	close(c.end)
	for range most + 2 {
		is.Equal(errs.CodeOf(<-ended), errs.Unauthenticated)
	}
	is.Equal(errs.CodeOf(login("192.0.2.1", "acme", "jo")), errs.Unauthenticated)
}

// slowTenants are tenants whose ids are read when the test lets them be.
type slowTenants struct {
	fixedTenants
	reading chan struct{} // one for each reading that has begun
	read    chan error
}

func (s *slowTenants) IDs(ctx context.Context) ([]string, error) {
	s.reading <- struct{}{}
	select {
	case err := <-s.read:
		return s.fixedTenants, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestLoginsShareAReading: logins at unknown tenants that come while the ids are read share the
// next reading, which finds a tenant that was added meanwhile, and goes on when the first of them
// hangs up.
func TestLoginsShareAReading(t *testing.T) { synctest.Test(t, testSharedReading) }

func testSharedReading(t *testing.T) {
	is := is.New(t)
	tenants := &slowTenants{reading: make(chan struct{}), read: make(chan error)}
	c := crowd{make(chan struct{}, 1), make(chan struct{})}
	close(c.end)
	s := sessions.New(sessions.Options{Authenticator: c, Tenants: tenants})
	ended := make(chan error, 100)
	login := func(ctx context.Context, tenant string) {
		_, err := s.Login(ctx, principals.Credentials{Tenant: tenant, Domain: "local", Username: "jo", Password: "x"})
		ended <- err
	}
	first, hangUp := context.WithCancel(t.Context())
	go login(first, "none")
	<-tenants.reading
	for range 50 {
		go login(t.Context(), "none")
	}
	go login(t.Context(), "new")
	synctest.Wait()
	tenants.fixedTenants = fixedTenants{"acme"}
	hangUp()
	tenants.read <- nil
	is.Equal(errs.CodeOf(<-ended), errs.Unauthenticated)
	<-tenants.reading
	tenants.fixedTenants = fixedTenants{"acme", "new"}
	tenants.read <- nil
	for range 51 {
		is.Equal(errs.CodeOf(<-ended), errs.Unauthenticated)
	}
	is.Equal(len(c.asked), 1) // new's directory

	go login(t.Context(), "none")
	<-tenants.reading
	tenants.read <- context.DeadlineExceeded
	is.Equal(errs.CodeOf(<-ended), errs.Unavailable)
}
