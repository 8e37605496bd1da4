package domains_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/dbtest"
)

// silentServer gives the address of a server that takes connections and never says anything.
func silentServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	is.New(t).NoErr(err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
		}
	})
	t.Cleanup(func() {
		l.Close()
		accepting.Wait()
	})
	return l.Addr().String()
}

// TestHangingDirectory: many logins at a directory that does not answer hold up nobody else, and none of them waits for
// long, whatever the configuration says.
func TestHangingDirectory(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.Hurry(time.Second, 3*time.Second, time.Minute, time.Minute)
	w.add(t, "Hangs", "LDAP", fmt.Sprintf(`{"url": "ldap://%s", "baseDN": "dc=x", "timeoutMs": 300000}`, silentServer(t)))
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	var logins sync.WaitGroup
	answers := make(chan errs.Code, 70)
	begun := time.Now()
	for i := range cap(answers) {
		logins.Go(func() {
			_, err := w.Authenticate(t.Context(), "acme", "hangs", fmt.Sprint("user", i), "secret")
			answers <- errs.CodeOf(err)
		})
	}
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		_, err := w.Authenticate(t.Context(), "acme", "books", "user0001", "secret")
		is.NoErr(err) // for want of a place it would be errs.Unavailable
	}
	logins.Wait()
	is.True(time.Since(begun) < 20*time.Second)
	close(answers)
	got := map[errs.Code]int{}
	for code := range answers {
		got[code]++
	}
	is.Equal(got, map[errs.Code]int{errs.Upstream: 8, errs.Unavailable: 62})
	is.Equal(w.Waiting(), 0) // nothing is kept of domains at which nobody logs in

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := w.Authenticate(ctx, "acme", "hangs", "jo", "secret")
	is.True(err != nil && time.Since(begun) < 20*time.Second) // who hangs up does not wait
}

// TestRefusalTime: no refusal tells by its time why it is one.
func TestRefusalTime(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Books", "paper", `{"url": "x", "password": "secret"}`)
	w.paper.all = []domains.Entry{person(1)}
	_, err := w.Authenticate(t.Context(), "acme", "books", "user0001", "secret")
	is.NoErr(err)
	refused := func(domain, name, password string) {
		t.Helper()
		begun := time.Now()
		_, err := w.Authenticate(t.Context(), "acme", domain, name, password)
		is.Equal(errs.CodeOf(err), errs.Unauthenticated)
		is.True(time.Since(begun) >= 150*time.Millisecond)
	}
	refused("nowhere", "user0001", "secret")
	refused("books", "user0001", "")
	refused("books", "nobody", "secret")
	for range 10 {
		refused("books", "user0001", "wrong")
	}
	refused("books", "user0001", "secret") // locked
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = w.Authenticate(ctx, "acme", "books", "nobody", "secret")
	is.Equal(err, context.DeadlineExceeded)
}
