package domains_test

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// TestLoginsWaitForNoWriter: people whom a directory or a provider lets in need no place in the
// queue for SQLite's writer if nothing about them has changed, and a login at a provider ends once
// all the same.
func TestLoginsWaitForNoWriter(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.add(t, "Gate", "gate", `{}`)
	w.add(t, "Paper", "paper", `{"url": "x", "password": "pw"}`)
	w.stock(2)
	begin := func() domains.Started {
		b, err := w.Unchecked().Begin(t.Context(), "acme", "gate", at("gate"), domains.Return{})
		is.NoErr(err)
		return b
	}
	finish := func(b domains.Started) error {
		_, err := w.Unchecked().Finish(
			t.Context(), "acme", "gate", at("gate"), b.State, b.Browser, url.Values{"code": {"jo"}},
		)
		return err
	}
	directory := func(password string) error {
		_, err := w.Unchecked().Authenticate(t.Context(), principals.Credentials{
			Tenant: "acme", Domain: "paper", Username: w.paper.all[0].Person.Username, Password: password,
		})
		return err
	}
	is.NoErr(finish(begin())) // the first ones make the users
	is.NoErr(directory("pw"))

	var b domains.Started
	is.NoErr(bunx.InTx(t.Context(), w.db, func(context.Context) error {
		b = begin()
		var once atomic.Int64
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := finish(b); err == nil {
					once.Add(1)
				} else if errs.CodeOf(err) != errs.Unauthenticated {
					t.Error(err)
				}
			})
		}
		all.Wait()
		is.Equal(once.Load(), int64(1))
		is.Equal(errs.CodeOf(finish(b)), errs.Unauthenticated)
		is.NoErr(directory("pw"))
		for range 10 {
			is.Equal(errs.CodeOf(directory("wrong")), errs.Unauthenticated)
		}
		is.Equal(errs.CodeOf(directory("pw")), errs.Unauthenticated) // locked
		return nil
	}))
	is.NoErr(bunx.WriteDeferred(t.Context(), w.db))
	is.Equal(errs.CodeOf(finish(b)), errs.Unauthenticated)
	is.Equal(errs.CodeOf(directory("pw")), errs.Unauthenticated)
	is.NoErr(finish(begin()))
}
