package connpool_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/connpool"
)

type conn struct {
	database string
	broken   bool
	closed   atomic.Bool
}

func (c *conn) Usable() bool { return !c.broken }
func (c *conn) Close()       { c.closed.Store(true) }

func TestPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is, ctx, opened := is.New(t), t.Context(), 0
		p := connpool.New[*conn](connpool.Options{
			Open:        4,
			PerTenant:   3,
			PerDatabase: 2,
			Idle:        time.Minute,
			Wait:        time.Second,
		})
		get := func(tenant, database string) (*conn, func(bool)) {
			c, release, err := p.Get(ctx, tenant, database, func(context.Context) (*conn, error) {
				opened++
				return &conn{database: database}, nil
			})
			is.NoErr(err)
			return c, release
		}
		full := func(tenant, database string) {
			_, _, err := p.Get(ctx, tenant, database, nil)
			is.Equal(errs.CodeOf(err), errs.Unavailable)
		}
		a, releaseA := get("acme", "a")
		_, releaseB := get("acme", "a")
		full("acme", "a") // two of a database
		_, releaseC := get("acme", "b")
		full("acme", "c") // three of a tenant
		_, releaseD := get("evil", "a2")
		full("evil", "a2") // four in all
		releaseA(true)
		again, releaseA := get("acme", "a")
		is.True(again == a && opened == 4)
		releaseA(true)
		releaseB(true)
		releaseC(true) // two are idle already
		releaseD(false)
		is.Equal(p.Idle(), 2)
		a.broken = true
		other, release := get("acme", "a")
		is.True(other != a && opened == 4)
		release(true)
		again, release = get("acme", "a")
		is.True(again == other)
		time.Sleep(time.Hour)
		release(true)
		time.Sleep(59 * time.Second)
		is.True(!other.closed.Load())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		is.True(other.closed.Load())
		is.Equal(p.Idle(), 0)

		c, release := get("acme", "a")
		release(true)
		p.Evict(func(database string) bool { return database == "a" })
		is.True(c.closed.Load())
		failed := errors.New("no")
		for range 5 { // an error of open frees the place
			_, _, err := p.Get(ctx, "acme", "a", func(context.Context) (*conn, error) { return nil, failed })
			is.Equal(err, failed)
		}
		c, release = get("acme", "a")
		p.Close()
		release(true)
		is.True(c.closed.Load())
		full("acme", "a")
	})
}
