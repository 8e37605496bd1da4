package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/text/escapes"
)

// begin does jobs of one tenant, in a place of their pool.
func (s *Service) begin(working context.Context, work *sync.WaitGroup, p *pool, jobs []Job) {
	ctx, cancel := context.WithCancelCause(working)
	tenant := jobs[0].Tenant
	s.mu.Lock()
	p.busy++
	p.tenants[tenant]++
	for _, j := range jobs {
		key := claimKey{tenant, j.ID}
		if before := s.claimed[key]; before != nil { // the lease of this node expired, and it has claimed the job again
			before.cancel(errLost)
		}
		s.claimed[key] = &claimed{j, p, *j.Wake, cancel}
	}
	s.mu.Unlock()
	work.Go(func() {
		if p.InTx {
			s.workInTx(ctx, p, jobs)
		} else {
			s.work(ctx, p, jobs[0])
		}
		cancel(nil)
		s.mu.Lock()
		p.busy--
		if p.tenants[tenant]--; p.tenants[tenant] == 0 {
			delete(p.tenants, tenant)
		}
		s.mu.Unlock()
		signal(s.news)
	})
}

// leave stops extending the leases of jobs.
func (s *Service) leave(jobs ...Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		key := claimKey{j.Tenant, j.ID}
		if c := s.claimed[key]; c != nil && c.job.Lease == j.Lease {
			delete(s.claimed, key)
		}
	}
	if len(s.claimed) == 0 {
		s.idle.Broadcast()
	}
}

// work does a job outside of transactions.
func (s *Service) work(ctx context.Context, p *pool, j Job) {
	defer s.leave(j)
	err := s.exhausted(p, j)
	if err == nil {
		_, err = s.try(ctx, p, []Job{j})
	}
	switch {
	case err == nil:
		s.finish(j)
	case ctx.Err() != nil:
		s.release(context.Cause(ctx), j)
	default:
		s.fail(p, j, err)
	}
}

// batchTime is the time after which the transaction of a batch is committed with the jobs that are
// done.
const batchTime = 100 * time.Millisecond

// workInTx does jobs of a tenant, each in one transaction with its removal, and several in the same
// transaction if none fails.
func (s *Service) workInTx(ctx context.Context, p *pool, jobs []Job) {
	defer s.leave(jobs...)
	for rest := jobs; len(rest) > 0; {
		if ctx.Err() != nil || s.ended() && len(rest) < len(jobs) {
			s.release(context.Cause(ctx), rest...)
			return
		}
		n, err := s.transact(ctx, p, rest)
		if err != nil {
			if n == 0 { // a transaction could not be begun
				s.o.Log.Warn("queue: jobs wait for the database", "kind", p.Kind, "jobs", len(rest), "err", err)
				pause(ctx, errorPause)
			}
			for _, j := range rest[:n] {
				s.alone(ctx, p, j, err, n == 1)
			}
		}
		s.leave(rest[:n]...)
		rest = rest[n:]
	}
}

// alone runs a job of a failed batch separately, unless the batch had only that job.
func (s *Service) alone(ctx context.Context, p *pool, j Job, err error, only bool) {
	if !only && ctx.Err() == nil {
		_, err = s.transact(ctx, p, []Job{j})
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		s.release(context.Cause(ctx), j)
	case errors.Is(err, errLost):
		s.o.Log.Debug("queue: the lease of a job was lost", "tenant", j.Tenant, "kind", j.Kind, "job", j.ID)
	default:
		s.fail(p, j, err)
	}
}

// transact does the first jobs, and removes them, in one transaction. It returns their number.
func (s *Service) transact(ctx context.Context, p *pool, jobs []Job) (n int, err error) {
	begun := time.Now()
	err = s.store.InTx(ctx, func(ctx context.Context) error {
		for n < len(jobs) && (n == 0 || time.Since(begun) < batchTime) {
			if err := s.exhausted(p, jobs[n]); err != nil {
				n++
				return err
			}
			some := jobs[n:]
			if at := slices.IndexFunc(some, func(j Job) bool { return s.exhausted(p, j) != nil }); at > 0 {
				some = some[:at]
			}
			done, err := s.try(ctx, p, some)
			n += done
			if err != nil {
				return err
			}
		}
		removed, err := s.store.Remove(ctx, jobs[0].Tenant, jobs[:n])
		if err == nil && removed < n {
			err = errLost
		}
		return err
	})
	return n, err
}

// exhausted returns an error for a job whose last try did not end because its node was killed.
func (s *Service) exhausted(p *pool, j Job) error {
	if j.Tries <= p.Tries {
		return nil
	}
	if j.Error != nil {
		return errs.New(errs.Internal, "%s", *j.Error)
	}
	return errs.New(errs.Internal, "The node that worked on it has ended, %d times.", j.Tries-1)
}

// try calls the worker with the first of some jobs, and returns their number.
func (s *Service) try(ctx context.Context, p *pool, jobs []Job) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	n = 1
	if p.DoBatch != nil {
		n = len(jobs) // it is not known which job has panicked
	}
	start := time.Now()
	ctx = entity.Begin(ctx, s.o.Observer, entity.JobWork, p.Kind)
	defer func() {
		if r := recover(); r != nil {
			j := jobs[0]
			s.o.Log.Error(
				"queue: a worker has panicked", "tenant", j.Tenant, "kind", j.Kind, "job", j.ID, "panic", r,
				"stack", string(debug.Stack()),
			)
			err = fmt.Errorf("panic: %v", r)
		}
		entity.Observe(ctx, s.o.Observer, entity.Observation{
			Work: entity.JobWork, Tenant: jobs[0].Tenant, Kind: p.Kind, Outcome: entity.Outcome(err), Start: start,
		})
	}()
	if p.DoBatch == nil {
		return n, p.Do(ctx, jobs[0])
	}
	done, err := p.DoBatch(ctx, jobs)
	return max(min(done, len(jobs)), 1), err
}

// settleTime is the most time for a statement about a job that has been done, even when the node
// stops.
const settleTime = 10 * time.Second

// maxCause is the most bytes of an error that are stored.
const maxCause = 2 << 10

// fail makes a job wait for another try, or makes it dead.
func (s *Service) fail(p *pool, j Job, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	log := s.o.Log.With("tenant", j.Tenant, "kind", j.Kind, "job", j.ID, "try", j.Tries)
	now, text := s.stamp(), causeText(cause)
	if early, ok := errors.AsType[later](cause); ok {
		j.Tries--
		s.retry(ctx, j, text, now.Add(early.pause), log)
		log.Debug("queue: a try was too early", "err", cause)
		return
	}
	if errors.Is(cause, errs.ErrDatabaseBusy) && now.Before(j.Due.Add(maxBusy)) {
		s.retryBusy(j, text, log)
		return
	}
	if givesUp(cause) || j.Tries >= p.Tries {
		err := s.store.InTx(ctx, func(ctx context.Context) error {
			held, err := s.store.Bury(ctx, j, text, now)
			if err != nil || !held || p.Dead == nil {
				return err
			}
			return p.Dead(ctx, j, cause)
		})
		if err == nil {
			log.Warn("queue: a job is dead", "err", cause)
			return
		}
		log.Error("queue: a job cannot be made dead", "err", err)
	}
	log.Info("queue: a try has failed", "err", cause)
	s.retry(ctx, j, text, now.Add(p.Backoff(j.Tries)), log)
}

const (
	// maxBusy is how long after a job was due tries do not count if the database was too busy.
	maxBusy   = time.Hour
	busyPause = time.Second
)

// retryBusy makes a job wait for another try without counting the one for which the database was
// too busy. If the database is still too busy to store that, the try counts.
func (s *Service) retryBusy(j Job, why string, log *slog.Logger) {
	j.Tries--
	for range removeTries {
		ctx, cancel := context.WithTimeout(context.Background(), settleTime)
		at := s.stamp().Add(busyPause)
		_, err := s.store.Retry(ctx, j, why, at)
		cancel()
		if err == nil {
			log.Debug("queue: the database was too busy for a try", "cause", why)
			s.hint(at)
			return
		}
		if s.ended() {
			break
		}
	}
	log.Warn("queue: a job goes on when its lease has ended", "cause", why)
}

// retry makes a job wait for another try.
func (s *Service) retry(ctx context.Context, j Job, why string, at time.Time, log *slog.Logger) {
	at = at.Truncate(time.Microsecond)
	if _, err := s.store.Retry(ctx, j, why, at); err != nil {
		log.Warn("queue: a job goes on when its lease has ended", "err", err)
		return
	}
	s.hint(at)
}

// causeText returns the text of an error that is stored.
func causeText(err error) string {
	text := errs.MessageOf(err)
	if text == "" {
		text = err.Error()
	}
	return escapes.Cut(text, maxCause)
}

// release releases jobs whose work was interrupted.
func (s *Service) release(cause error, jobs ...Job) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	if err := s.store.Release(ctx, jobs[0].Tenant, jobs); err != nil {
		s.o.Log.Warn(
			"queue: jobs go on when their leases have ended", "kind", jobs[0].Kind, "jobs", len(jobs), "cause",
			cause, "err", err,
		)
		return
	}
	signal(s.bell)
}

// finished is a job that is done and must be removed.
type finished struct {
	job     Job
	removed chan<- error
}

// finish removes a job that is done, together with others that are done at the same time.
func (s *Service) finish(j Job) {
	removed := make(chan error, 1)
	for attempt := range removeTries {
		if attempt > 0 {
			// it is done: losing the row's removal is worse than waiting
			time.Sleep(time.Duration(attempt) * 200 * time.Millisecond)
		}
		s.finished <- finished{j, removed}
		err := <-removed
		if err == nil {
			return
		}
		s.o.Log.Warn(
			"queue: a job that is done cannot be removed", "tenant", j.Tenant, "kind", j.Kind, "job", j.ID,
			"err", err,
		)
	}
}

// removeTries is the number of tries to remove a job, each of settleTime. Together they take longer
// than an import or a restore may have SQLite's writer, because a job that is not removed is done
// again.
const removeTries = 20

// manyFinished is the most jobs that are removed together.
const manyFinished = 500

// finishAll removes jobs that are done, until ctx ends.
func (s *Service) finishAll(ctx context.Context) {
	for {
		var some []finished
		select {
		case <-ctx.Done():
			return
		case f := <-s.finished:
			some = append(some, f)
		}
		for more := true; more && len(some) < manyFinished; {
			select {
			case f := <-s.finished:
				some = append(some, f)
			default:
				more = false
			}
		}
		byTenant := map[string][]finished{}
		for _, f := range some {
			byTenant[f.job.Tenant] = append(byTenant[f.job.Tenant], f)
		}
		for tenant, some := range byTenant {
			jobs := make([]Job, len(some))
			for i, f := range some {
				jobs[i] = f.job
			}
			within, cancel := context.WithTimeout(ctx, settleTime)
			_, err := s.store.Remove(within, tenant, jobs)
			cancel()
			for _, f := range some {
				f.removed <- err
			}
		}
	}
}

// extendEach extends the leases of running jobs, until ctx ends.
func (s *Service) extendEach(ctx context.Context) {
	every := time.Hour
	for _, p := range s.pools {
		every = min(every, p.Lease/3)
	}
	for range clock.Each(ctx, every) {
		_ = s.extend(ctx, s.stamp().Add(24*time.Hour))
	}
}

// extend extends the leases that expire before a time, and ends the work on jobs whose leases were
// lost.
func (s *Service) extend(ctx context.Context, before time.Time) (failed error) {
	type group struct {
		pool   *pool
		tenant string
	}
	groups := map[group][]Job{}
	s.mu.Lock()
	for _, c := range s.claimed {
		if c.until.After(before) {
			continue
		}
		g := group{c.pool, c.job.Tenant}
		groups[g] = append(groups[g], c.job)
	}
	s.mu.Unlock()
	for g, jobs := range groups {
		until := s.stamp().Add(g.pool.Lease)
		held, err := s.store.Extend(ctx, g.tenant, jobs, until)
		if err != nil {
			s.o.Log.Warn("queue: leases cannot be extended", "kind", g.pool.Kind, "jobs", len(jobs), "err", err)
			failed = errors.Join(failed, err)
			continue
		}
		s.mu.Lock()
		for _, j := range jobs {
			c := s.claimed[claimKey{j.Tenant, j.ID}]
			switch {
			case c == nil || c.job.Lease != j.Lease:
			case held[j.ID]:
				c.until = until
			default:
				c.cancel(errLost)
			}
		}
		s.mu.Unlock()
	}
	return failed
}
