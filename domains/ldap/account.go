package ldap

import (
	"context"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// account is what is known of binds as the service. Directories lock accounts after a few wrong
// passwords, and each log-in of anybody binds as the service first. So one bind at a time is made,
// and after a refusal none for a pause, which doubles with each further refusal. A changed
// configuration has an account of its own.
type account struct {
	now func() time.Time

	mu    sync.Mutex
	run   *run      // the bind that others wait for, nil for none
	why   error     // the last refusal, nil if the last bind was accepted
	until time.Time // when the pause ends
	pause time.Duration
	warn  string // the warning that was logged last
}

// The pauses. The first one is longer than the time in which most directories count wrong
// passwords.
const (
	firstPause = 20 * time.Minute
	maxPause   = 4 * time.Hour
)

// run is a bind that others wait for.
type run struct {
	done     chan struct{}
	accepted bool
}

func newAccount() *account { return &account{now: time.Now} }

// paused returns the last refusal while the pause lasts, else nil.
func (a *account) paused() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil || !a.now().Before(a.until) {
		return nil
	}
	return errs.Wrap(errs.Upstream, a.why,
		"%s It is not asked again before %s, as directories lock accounts: send the right bindPassword, or the "+
			"same one "+
			"once the account is right there.", errs.MessageOf(a.why), a.until.UTC().Format("2006-01-02 15:04 UTC"))
}

// turn waits for the bind that runs, however long the directory takes to answer it: so many wrong
// passwords at once would lock the account. If it is accepted, those who have waited bind at once;
// if it is not answered, one of them is the next. Errors: as paused; that of ctx.
func (a *account) turn(ctx context.Context) (leave func(), err error) {
	for accepted := false; ; {
		if err := a.paused(); err != nil {
			return nil, err
		}
		if accepted {
			return func() {}, nil
		}
		other, own := a.begin()
		if own != nil {
			return func() { a.end(own) }, nil
		}
		select {
		case <-other.done:
			accepted = other.accepted
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin returns the bind that runs, or one of the caller's own if there is none.
func (a *account) begin() (other, own *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		return a.run, nil
	}
	a.run = &run{done: make(chan struct{})}
	return nil, a.run
}

// end ends a bind that others wait for.
func (a *account) end(own *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.run = nil
	close(own.done)
}

// refused records a refusal and returns when the pause ends.
func (a *account) refused(why error) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.why == nil {
		a.pause = firstPause
	} else if !a.now().Before(a.until) { // else it is the answer to a bind that ran when the pause began
		a.pause = min(2*a.pause, maxPause)
	}
	a.why, a.until = why, a.now().Add(a.pause)
	return a.until
}

// accepted records that the directory has accepted a bind, with a warning or "". It reports whether
// it was refused before, and whether the warning is another one than the last time.
func (a *account) accepted(warning string) (back, news bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.run != nil {
		a.run.accepted = true
	}
	back, news = a.why != nil, warning != "" && a.warn != warning
	a.why, a.warn = nil, warning
	return back, news
}

// Paused implements domains.Pausing.
func (r *realm) Paused() error { return r.account.paused() }
