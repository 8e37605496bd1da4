// Package removal removes the rows that a delete leaves because they are too many for its
// transaction. It does so in the background, in steps between which others can write. The owners of
// such rows must hide them from readers. A note records each deleted entity that has such rows, so
// that they are removed even if a process is killed or the queue is full.
//
// The root imports it. Nouns declare the methods of a Remover that they use as an interface.
package removal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// Job is the kind of the jobs that remove rows. The key of such a job is the kind and the id of the
// deleted entity.
const Job = "remove-rows"

// Remover removes rows.
type Remover struct {
	o     Options
	clock clock.Clock
}

// Options configure a Remover. DB, Jobs and Entities are required.
type Options struct {
	DB       *bun.DB
	Jobs     *queue.Service
	Entities *entity.Registry // its Hooks.RemoveRest remove the rows
	Step     int              // the most rows that one transaction removes; default 1,000
	Now      func() time.Time // default time.Now
}

// New returns a Remover.
func New(o Options) *Remover {
	o.Step = cmp.Or(o.Step, 1000)
	return &Remover{o, clock.New(o.Now, nil)}
}

const (
	// few is the most rows that one hook removes in the transaction of the delete. The first hook
	// with more rows leaves them, and those of later hooks, to a job.
	few = 250
	// fewThings is the most deleted entities whose rows are removed in one transaction. The rows of
	// more are left to jobs.
	fewThings = 20
	// batch is the number of notes and jobs that one statement adds.
	batch = 500
)

// Remove removes the rows of entities that are deleted in the transaction in ctx, if they are few,
// and otherwise leaves them to jobs.
func (r *Remover) Remove(ctx context.Context, tenant string, gone ...entity.Key) error {
	if len(gone) > fewThings {
		return r.Later(ctx, tenant, gone...)
	}
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

// Later leaves the rows of entities that are deleted in the transaction in ctx to jobs. If the
// tenant has too many jobs, the sweep adds them later.
func (r *Remover) Later(ctx context.Context, tenant string, gone ...entity.Key) error {
	return bunx.Write(ctx, r.o.DB, tenant, func(ctx context.Context, c bunx.Conn) error {
		for some := range slices.Chunk(gone, batch) {
			var args []any
			for _, of := range some {
				args = append(args, tenant, of.Kind, of.ID, 1, bunx.At(r.clock.Now()))
			}
			_, err := c.Exec(ctx, `INSERT INTO tc_removals (tenant_id, kind, id, times, deleted_at) VALUES `+
				bunx.Values(len(some), 5)+`
				ON CONFLICT (tenant_id, kind, id) DO UPDATE SET times = tc_removals.times + 1, deleted_at = excluded.deleted_at`,
				args...)
			if err != nil {
				return bunx.Err(err, "Row")
			}
			if err := r.put(ctx, tenant, some...); err != nil {
				return err
			}
		}
		return nil
	})
}

// payload is the payload of a Job.
type payload struct {
	Kind entity.Kind `json:"kind"`
	ID   string      `json:"id"`
}

func (r *Remover) put(ctx context.Context, tenant string, gone ...entity.Key) error {
	jobs := make([]queue.Job, len(gone))
	for i, of := range gone {
		raw, _ := json.Marshal(payload{of.Kind, of.ID}) // texts can always be encoded
		jobs[i] = queue.Job{Tenant: tenant, Kind: Job, Key: key(of), Payload: raw}
	}
	err := r.o.Jobs.Put(ctx, jobs...)
	if errs.CodeOf(err) == errs.Busy {
		return nil
	}
	return err
}

// key returns the key of the job of an entity. A long id is hashed.
func key(of entity.Key) string {
	if k := string(of.Kind) + ":" + of.ID; len(k) <= queue.MaxKey {
		return k
	}
	return fmt.Sprintf("%s:%x", of.Kind, sha256.Sum256([]byte(of.ID)))
}

// A job works for a while and then pauses for others. It is tried until it is done, because the
// rows are not visible any more.
const (
	jobTime = time.Minute
	lease   = 5 * time.Second
)

// errGoesOn ends a try that has not removed everything.
var errGoesOn = errors.New("there are more rows to remove")

// Worker returns the Worker of the jobs.
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

// removeAll removes all rows of a deleted entity, and then the note.
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

// times returns how often an entity was deleted whose rows are left, or 0 if it has no note.
func (r *Remover) times(ctx context.Context, tenant string, of entity.Key) (times int, err error) {
	ctx, c := bunx.For(ctx, r.o.DB, tenant)
	err = c.Row(
		ctx, `SELECT times FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3`, tenant, of.Kind,
		of.ID,
	).Scan(&times)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return times, bunx.Err(err, "Row")
}

// settle removes the note of an entity that has no rows any more, unless it was deleted again
// since, and reports whether it was.
func (r *Remover) settle(ctx context.Context, tenant string, of entity.Key, times int) (again bool, err error) {
	err = bunx.Write(ctx, r.o.DB, tenant, func(ctx context.Context, c bunx.Conn) error {
		if _, err := c.Exec(
			ctx, `DELETE FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3 AND times = $4`,
			tenant, of.Kind, of.ID, times,
		); err != nil {
			return bunx.Err(err, "Row")
		}
		return c.One(
			ctx, "Row", `SELECT count(*) > 0 FROM tc_removals WHERE tenant_id = $1 AND kind = $2 AND id = $3`,
			[]any{tenant, of.Kind, of.ID}, &again,
		)
	})
	return again, err
}

// A sweep adds jobs that are missing because the queue was full or a process was killed.
const (
	missingAfter = time.Minute // the age of a note whose job may be missing
	maxPut       = 100         // most jobs that one sweep adds for a tenant
)

// Hooks returns the sweep that adds missing jobs.
func (r *Remover) Hooks() entity.Hooks {
	return entity.Hooks{
		Due:   []entity.Due{{Table: "tc_removals", Column: "deleted_at", Age: missingAfter}},
		Sweep: r.sweep,
	}
}

func (r *Remover) sweep(ctx context.Context, tenant string) (int, error) {
	reading, c := bunx.For(ctx, r.o.DB, tenant)
	rows, err := c.Rows(
		reading,
		`SELECT kind, id FROM tc_removals WHERE tenant_id = $1 AND deleted_at < $2 ORDER BY deleted_at LIMIT $3`,
		tenant, bunx.At(r.clock.Now().Add(-missingAfter)), maxPut,
	)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (of entity.Key, err error) {
		err = rows.Scan(&of.Kind, &of.ID)
		return of, err
	})
	err = bunx.Err(err, "Row")
	if err != nil {
		return 0, err
	}
	return 0, r.put(ctx, tenant, all...)
}
