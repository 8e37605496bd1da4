// Package removal removes the rows that a delete has left because they are too many for its transaction: in the background, in steps between which
// others write. Nobody sees such rows: those who have them see to that. A note tells what has any, so they are removed also when a process is killed
// or the queue is full.
//
// The root imports it. Nouns declare what they need of a Remover as an interface.
package removal

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/bunx"
	"github.com/tenantcontent/tenantcontent/queue"
)

// Job is the kind of the jobs that remove rows. The key of such a job is the kind and the id of what has them.
const Job = "remove-rows"

// Remover removes rows.
type Remover struct{ o Options }

// Options configure a Remover. DB, Jobs and Entities are required.
type Options struct {
	DB       *bun.DB
	Jobs     *queue.Service
	Entities *entity.Registry // whose Hooks.RemoveRest do it
	Step     int              // the most rows that one transaction removes; default 1,000
	Now      func() time.Time // default time.Now
}

// New returns a Remover.
func New(o Options) *Remover {
	o.Step = cmp.Or(o.Step, 1000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Remover{o}
}

// few is how many rows of each package are removed in the transaction of the delete.
const few = 250

// Remove removes the rows of what is deleted in the transaction in ctx, if they are few, and leaves them to jobs if they are more.
func (r *Remover) Remove(ctx context.Context, tenant string, gone ...entity.Key) error {
	for _, of := range gone {
		more, err := r.o.Entities.RemoveRest(ctx, tenant, of, min(few, r.o.Step))
		if err == nil && more {
			err = r.Later(ctx, tenant, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Later leaves the rows of what is deleted in the transaction in ctx to a job. If the tenant has too many jobs, the sweep puts it.
func (r *Remover) Later(ctx context.Context, tenant string, of entity.Key) error {
	return bunx.Write(ctx, r.o.DB, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_removals (tenant_id, kind, id, times, deleted_at) VALUES ($1, $2, $3, 1, $4)
			ON CONFLICT (tenant_id, kind, id) DO UPDATE SET times = tc_removals.times + 1, deleted_at = excluded.deleted_at`,
			tenant, of.Kind, of.ID, bunx.At(r.o.Now()))
		if err != nil {
			return bunx.Err(err, "Row")
		}
		return r.put(ctx, tenant, of)
	})
}

// payload is that of a Job.
type payload struct {
	Kind entity.Kind `json:"kind"`
	ID   string      `json:"id"`
}

func (r *Remover) put(ctx context.Context, tenant string, of entity.Key) error {
	raw, _ := json.Marshal(payload{of.Kind, of.ID}) // texts always encode
	err := r.o.Jobs.Put(ctx, queue.Job{Tenant: tenant, Kind: Job, Key: key(of), Payload: raw})
	if errs.CodeOf(err) == errs.Busy {
		return nil
	}
	return err
}

// key returns the key of a job, without which there could be two.
func key(of entity.Key) string {
	if k := string(of.Kind) + ":" + of.ID; len(k) <= queue.MaxKey {
		return k
	}
	return ""
}

// A job works for a while and then lets others do so. It is tried until it is done: what it removes, nobody sees any more.
const (
	jobTime = time.Minute
	lease   = 5 * time.Second
)

// errGoesOn ends a try that has not removed everything.
var errGoesOn = errors.New("there are more rows to remove")

// Worker returns what does the jobs.
func (r *Remover) Worker() queue.Worker {
	return queue.Worker{
		Kind: Job, Tries: math.MaxInt32, Lease: lease, Timeout: 2 * jobTime, AtOnce: 2, PerTenant: 1,
		Do: func(ctx context.Context, j queue.Job) error {
			var p payload
			if err := json.Unmarshal(j.Payload, &p); err != nil {
				return queue.GiveUp(err)
			}
			return r.removeAll(ctx, j.Tenant, entity.Key{Kind: p.Kind, ID: p.ID})
		},
	}
}

// removeAll removes all rows of what was deleted, and then the note.
func (r *Remover) removeAll(ctx context.Context, tenant string, of entity.Key) error {
	for begun := time.Now(); time.Since(begun) < jobTime; {
		times, err := r.times(ctx, tenant, of)
		if err != nil {
			return err
		}
		more, err := r.o.Entities.RemoveRest(ctx, tenant, of, r.o.Step)
		if err == nil && !more {
			more, err = r.settle(ctx, tenant, of, times)
		}
		if err != nil || !more {
			return err
		}
	}
	return queue.Later(errGoesOn, 0)
}

// times returns how often something was deleted whose rows are left, 0 if there is no note.
func (r *Remover) times(ctx context.Context, tenant string, of entity.Key) (times int, err error) {
	ctx, c := bunx.For(ctx, r.o.DB, tenant)
	err = c.Row(ctx, `SELECT times FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3`, tenant, of.Kind, of.ID).Scan(&times)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return times, bunx.Err(err, "Row")
}

// settle removes the note of what has no rows any more, and reports whether it was deleted again meanwhile.
func (r *Remover) settle(ctx context.Context, tenant string, of entity.Key, times int) (again bool, err error) {
	err = bunx.Write(ctx, r.o.DB, tenant, func(ctx context.Context, c bunx.Conn) error {
		if _, err := c.Exec(ctx, `DELETE FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3 AND times = $4`, tenant, of.Kind, of.ID, times); err != nil {
			return bunx.Err(err, "Row")
		}
		return c.One(ctx, "Row", `SELECT count(*) > 0 FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3`, []any{tenant, of.Kind, of.ID}, &again)
	})
	return again, err
}

// A sweep puts the jobs that are missing because the queue was full. A note is this old then.
const (
	late  = time.Minute
	swept = 100 // how many jobs for a tenant
)

// Hooks returns the sweep that puts the jobs that are missing.
func (r *Remover) Hooks() entity.Hooks {
	return entity.Hooks{Due: []entity.Due{{Table: "tc_removals", Column: "deleted_at", Age: late}}, Sweep: r.sweep}
}

func (r *Remover) sweep(ctx context.Context, tenant string) (int, error) {
	reading, c := bunx.For(ctx, r.o.DB, tenant)
	rows, err := c.Rows(reading, `SELECT kind, id FROM tc_removals WHERE tenant_id = $1 AND deleted_at < $2 ORDER BY deleted_at LIMIT $3`, tenant, bunx.At(r.o.Now().Add(-late)), swept)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (of entity.Key, err error) {
		err = rows.Scan(&of.Kind, &of.ID)
		return of, err
	})
	err = bunx.Err(err, "Row")
	for _, of := range all {
		err = errors.Join(err, r.put(ctx, tenant, of))
	}
	return 0, err
}
