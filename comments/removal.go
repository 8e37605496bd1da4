package comments

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/queue"
)

// JobRemove is the kind of the jobs that remove the rows of removed comments. Key of such a job is that of the entity.
const JobRemove = "remove-comments"

// Jobs accepts jobs. *queue.Service implements it.
type Jobs interface {
	Put(ctx context.Context, jobs ...queue.Job) error
}

// removal is the payload of a JobRemove.
type removal struct {
	Kind entity.Kind `json:"kind"`
	ID   string      `json:"id"`
}

// removeLater puts the job that removes what Store.Delete has left. Without it the sweep puts it: a delete does not fail because a tenant has
// too many jobs.
func (s *Service) removeLater(ctx context.Context, tenant string, of entity.Key) error {
	if s.jobs == nil {
		return nil
	}
	payload, _ := json.Marshal(removal{of.Kind, of.ID}) // texts always encode
	err := s.jobs.Put(ctx, queue.Job{Tenant: tenant, Kind: JobRemove, Key: string(of.Kind) + ":" + of.ID, Payload: payload})
	if errs.CodeOf(err) == errs.Busy {
		return nil
	}
	return err
}

// A job works for a while and then lets others do so. It is tried until it is done: what it removes, nobody sees any more.
const (
	removalTime  = time.Minute
	removalLease = 5 * time.Second
)

// errGoesOn ends a try that has not removed everything.
var errGoesOn = errors.New("there are more rows to remove")

// Workers returns what removes the rows of removed comments, in transactions of at most MaxRows rows.
func (u Unchecked) Workers() []queue.Worker {
	return []queue.Worker{{
		Kind: JobRemove, Tries: math.MaxInt32, Lease: removalLease, Timeout: 2 * removalTime, AtOnce: 2, PerTenant: 1,
		Do: func(ctx context.Context, j queue.Job) error {
			var r removal
			if err := json.Unmarshal(j.Payload, &r); err != nil {
				return queue.GiveUp(err)
			}
			return u.s.removeRest(ctx, j.Tenant, entity.Key{Kind: r.Kind, ID: r.ID})
		},
	}}
}

func (s *Service) removeRest(ctx context.Context, tenant string, of entity.Key) error {
	for begun := time.Now(); time.Since(begun) < removalTime; {
		more, err := s.store.RemoveRest(ctx, tenant, of, s.step)
		if err != nil || !more {
			return err
		}
	}
	return queue.Later(errGoesOn, 0)
}

// removalLate is the age of removed comments whose job may be missing: the queue was full.
const removalLate = time.Minute

// sweptRests is for how many entities of a tenant a sweep puts jobs.
const sweptRests = 100

// sweepRests puts the jobs that are missing: each has the key of its entity, so that there is one of them.
func (s *Service) sweepRests(ctx context.Context, tenant string) error {
	all, err := s.store.Rests(ctx, tenant, sweptRests)
	for _, of := range all {
		err = errors.Join(err, s.removeLater(ctx, tenant, of))
	}
	return err
}
