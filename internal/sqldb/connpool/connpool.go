// Package connpool keeps idle connections to many databases, each with few callers. It bounds the
// number of open connections, shares them fairly between tenants, and closes those that are not
// used.
//
// The drivers of workspaces import it.
package connpool

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// Conn is a connection.
type Conn interface {
	// Usable reports whether another caller can use the connection. It is called when the
	// connection becomes idle, and before an idle connection is returned by Get.
	Usable() bool
	Close()
}

// Options configure a Pool.
type Options struct {
	Open        int           // connections at once
	PerTenant   int           // of them for one tenant
	PerDatabase int           // of them to one database
	Idle        time.Duration // after which an idle connection is closed
	Wait        time.Duration // for a connection
}

// Pool keeps idle connections.
type Pool[C Conn] struct {
	o     Options
	limit *limiter.Limiter

	mu     sync.Mutex
	idle   []entry[C] // most recently used last
	closed bool
	timer  *time.Timer // closes idle connections; nil without any
}

type entry[C Conn] struct {
	database string
	conn     C
	since    time.Time
}

// New returns a Pool.
func New[C Conn](o Options) *Pool[C] {
	return &Pool[C]{o: o, limit: limiter.New(limiter.Options{
		Capacity: int64(o.Open), PerKey: int64(o.PerTenant),
		PerSubkey: int64(o.PerDatabase), FairSubkeys: true, Timeout: o.Wait,
	})}
}

// Get returns an idle connection to a database of a tenant, or a new one from open. The caller must
// call release once. keep is false for a connection that must be closed.
// Errors: errs.Unavailable when too many connections are in use; those of open.
func (p *Pool[C]) Get(
	ctx context.Context, tenant, database string, open func(ctx context.Context) (C, error),
) (conn C, release func(keep bool), err error) {
	end, err := p.limit.Acquire(ctx, 1, tenant, database)
	if err != nil {
		return conn, nil, limiter.Unavailable(err, "Too many callers use workspaces at once: try again later.")
	}
	conn, found, err := p.take(database)
	if err == nil && !found {
		conn, err = open(ctx)
	}
	if err != nil {
		end()
		return conn, nil, err
	}
	return conn, func(keep bool) {
		p.put(database, conn, keep)
		end()
	}, nil
}

// most returns the most idle connections that are kept.
func (p *Pool[C]) most() int { return max(1, p.o.Open/2) }

// take takes an idle connection to a database, if there is one. If it finds none and the pool of
// idle connections is full, it closes the least recently used one.
func (p *Pool[C]) take(database string) (conn C, found bool, err error) {
	var old []C
	p.mu.Lock()
	if p.closed {
		err = errs.New(errs.Unavailable, "The server is stopping: try again later.")
	}
	for i := len(p.idle) - 1; err == nil && i >= 0 && !found; i-- {
		if p.idle[i].database != database {
			continue
		}
		c := p.idle[i].conn
		p.idle = append(p.idle[:i], p.idle[i+1:]...)
		if found = c.Usable(); found {
			conn = c
		} else {
			old = append(old, c)
		}
	}
	if !found && len(p.idle) >= p.most() {
		old = append(old, p.idle[0].conn)
		p.idle = p.idle[1:]
	}
	p.mu.Unlock()
	closeAll(old)
	return conn, found, err
}

// put keeps a connection for the next caller.
func (p *Pool[C]) put(database string, c C, keep bool) {
	p.mu.Lock()
	keep = keep && !p.closed && len(p.idle) < p.most() && c.Usable()
	if keep {
		p.idle = append(p.idle, entry[C]{database, c, time.Now()})
		if p.timer == nil {
			p.timer = time.AfterFunc(p.o.Idle, p.closeIdle)
		}
	}
	p.mu.Unlock()
	if !keep {
		c.Close()
	}
}

// closeIdle closes the connections that have been idle for the time Idle.
func (p *Pool[C]) closeIdle() {
	var old []C
	p.mu.Lock()
	for len(p.idle) > 0 && time.Since(p.idle[0].since) >= p.o.Idle {
		old = append(old, p.idle[0].conn)
		p.idle = p.idle[1:]
	}
	p.timer = nil
	if len(p.idle) > 0 && !p.closed {
		p.timer = time.AfterFunc(max(time.Millisecond, p.o.Idle-time.Since(p.idle[0].since)), p.closeIdle)
	}
	p.mu.Unlock()
	closeAll(old)
}

// Evict closes the idle connections to the databases for which gone reports true.
func (p *Pool[C]) Evict(gone func(database string) bool) {
	var old []C
	var rest []entry[C]
	p.mu.Lock()
	for _, e := range p.idle {
		if gone(e.database) {
			old = append(old, e.conn)
		} else {
			rest = append(rest, e)
		}
	}
	p.idle = rest
	p.mu.Unlock()
	closeAll(old)
}

// Idle returns the number of idle connections.
func (p *Pool[C]) Idle() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}

// Close closes the idle connections. Connections in use are closed when their callers release them.
func (p *Pool[C]) Close() {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.Evict(func(string) bool { return true })
}

func closeAll[C Conn](all []C) {
	for _, c := range all {
		c.Close()
	}
}
