package domains_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// silentServer returns the address of a server that takes connections and never says anything, and
// the most connections that were open at once so far.
func silentServer(t *testing.T) (address string, most func() int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	var mu sync.Mutex
	open, peak := 0, 0
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open++
			peak = max(peak, open)
			mu.Unlock()
			t.Cleanup(func() { c.Close() })
			accepting.Go(func() {
				_, _ = io.Copy(io.Discard, c) // until the client closes it
				mu.Lock()
				open--
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		accepting.Wait()
	})
	return l.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return peak
	}
}

// TestHangingDirectory: many logins at a directory that does not answer hold up nobody else, and
// none of them waits for long, whatever the configuration says.
func TestHangingDirectory(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(time.Second, 3*time.Second, time.Minute, time.Minute)
	address, most := silentServer(t)
	w.add(t, "Hangs", "LDAP", fmt.Sprintf(`{"url": "ldap://%s", "baseDN": "dc=x", "timeoutMs": 300000}`, address))
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	var logins sync.WaitGroup
	answers := make(chan errs.Code, 70)
	begun := time.Now()
	for i := range cap(answers) {
		logins.Go(func() {
			_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
				Tenant: "acme", Domain: "hangs", Username: fmt.Sprint("user", i), Password: "secret",
			})
			answers <- errs.CodeOf(err)
		})
	}
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "user0001", Password: "secret",
		})
		is.NoErr(err) // for want of a place it would be errs.Unavailable
	}
	logins.Wait()
	is.True(time.Since(begun) < 20*time.Second)
	close(answers)
	got := map[errs.Code]int{}
	for code := range answers {
		got[code]++
	}
	is.True(got[errs.Upstream] >= 8) // on a busy machine some come when the first have left
	is.Equal(got[errs.Upstream]+got[errs.Unavailable], cap(answers))
	is.True(most() <= 16)    // 8 at once, and those of before whose end the directory has not seen yet
	is.Equal(w.Waiting(), 0) // nothing is kept of domains at which nobody logs in

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.Unchecked().Authenticate(ctx, principals.Credentials{
		Tenant: "acme", Domain: "hangs", Username: "jo", Password: "secret",
	})
	is.True(err != nil && time.Since(begun) < 20*time.Second) // who hangs up does not wait
}

// TestOneTenantHangs: the directories of a tenant, however many hang, take no places from another
// tenant.
func TestOneTenantHangs(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(50*time.Millisecond, time.Minute, time.Minute, time.Minute)
	var leave []func()
	crowd := func(tenant, domain string, n int) error {
		left, err := w.Crowd(t.Context(), tenant, domain, n)
		if err == nil {
			leave = append(leave, left)
		}
		return err
	}
	for _, tenant := range []string{"a", "b", "c", "d", "e"} {
		is.NoErr(crowd(tenant, "x", 8))
		is.Equal(errs.CodeOf(crowd(tenant, "x", 1)), errs.Unavailable) // a domain has 8
		is.NoErr(crowd(tenant, "y", 4))
		is.Equal(errs.CodeOf(crowd(tenant, "z", 1)), errs.Unavailable) // a tenant has 12
	}
	is.NoErr(crowd("f", "x", 4))
	is.Equal(errs.CodeOf(crowd("g", "x", 1)), errs.Unavailable) // all have 64
	leave[0]()
	is.NoErr(crowd("g", "x", 8))
	is.Equal(errs.CodeOf(crowd("a", "x", 1)), errs.Unavailable)
	for _, left := range leave[1:] {
		left()
	}
	is.Equal(w.Waiting(), 0)
}

// TestDomainIsFairToNetworks: however many from one network wait at a domain whose directory hangs,
// one from another network is next.
func TestDomainIsFairToNetworks(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	from := func(address string) context.Context {
		return actor.WithOrigin(t.Context(), actor.Origin{Address: netip.MustParseAddr(address)})
	}
	leave, err := w.Crowd(from("192.0.2.1"), "acme", "x", 7)
	is.NoErr(err)
	last, err := w.Crowd(from("192.0.2.1"), "acme", "x", 1)
	is.NoErr(err)
	var others sync.WaitGroup
	admitted := make(chan string, 101)
	queue := func(address string) {
		before := w.Queued()
		others.Go(func() {
			left, err := w.Crowd(from(address), "acme", "x", 1)
			if err != nil {
				admitted <- err.Error()
				return
			}
			admitted <- address
			left()
		})
		for w.Queued() == before {
			runtime.Gosched()
		}
	}
	for range 100 {
		queue("192.0.2.1")
	}
	queue("192.0.2.2")
	last()
	first := []string{<-admitted, <-admitted}
	is.True(slices.Contains(first, "192.0.2.2"))
	leave()
	others.Wait()
	is.Equal(len(admitted), 99)
	is.Equal(w.Waiting(), 0)
}

// TestLockedAndAway: who is locked here is told the same as everybody else, after the same time,
// also when the directory is slow or away; it is not asked for them.
func TestLockedAndAway(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	try := func(password string) errs.Code {
		_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "books", Username: "user0001", Password: password,
		})
		return errs.CodeOf(err)
	}
	is.Equal(try("secret"), errs.Code(""))
	for range 10 {
		is.Equal(try("wrong"), errs.Unauthenticated)
	}
	w.paper.delay = 400 * time.Millisecond
	begun := time.Now()
	is.Equal(try("secret"), errs.Unauthenticated)
	is.True(time.Since(begun) >= w.paper.delay)
	is.True(w.paper.asked != "user0001")
	w.paper.delay, w.paper.err = 0, errs.New(errs.Upstream, "The directory is away.")
	is.Equal(try("secret"), errs.Upstream)
	is.True(w.paper.asked != "user0001")
}

// TestRefusalTime: no refusal tells by its time why it is one.
func TestRefusalTime(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "user0001", Password: "secret",
	})
	is.NoErr(err)
	refused := func(domain, name, password string) {
		t.Helper()
		begun := time.Now()
		_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: domain, Username: name, Password: password,
		})
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		is.True(time.Since(begun) >= 150*time.Millisecond)
	}
	refused("local", "root", "wrong")
	refused("local", "nobody", "wrong")
	refused("nowhere", "user0001", "secret")
	refused("books", "user0001", "")
	refused("books", "nobody", "secret")
	for range 10 {
		refused("books", "user0001", "wrong")
	}
	refused("books", "user0001", "secret") // locked
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = w.Unchecked().Authenticate(ctx, principals.Credentials{
		Tenant: "acme", Domain: "books", Username: "nobody", Password: "secret",
	})
	is.Equal(errs.CodeOf(err), errs.Unauthenticated) // who has hung up needs no wait, and the log has the reason
}
