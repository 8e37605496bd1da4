// Package health checks whether a database accepts writes, and logs changes of that.
//
// The root imports it.
package health

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

const (
	// fresh is how long the result of a probe is reused.
	fresh = time.Second
	// timeout is the most time of a probe.
	timeout = 5 * time.Second
	// damagedFor is how long the database is reported as damaged after a statement has found
	// damage.
	damagedFor = 10 * time.Minute
	// roomy is the number of bytes that a probe writes after a write failed for lack of space. A
	// few bytes may still find space.
	roomy = 256 << 10
)

// Monitor checks whether a database accepts writes.
type Monitor struct {
	db  *bun.DB
	log *slog.Logger
	now func() time.Time

	probing sync.Mutex // one at a time

	mu      sync.Mutex
	at      time.Time // of the last probe
	known   error     // why writes fail, or nil
	since   time.Time // when known became an error
	full    bool      // a write failed for lack of space since the last successful probe
	suspect bool      // a statement has failed since the last probe
	damaged time.Time // when a statement last found damage
}

// New returns a Monitor. now is time.Now if it is nil.
func New(db *bun.DB, log *slog.Logger, now func() time.Time) *Monitor {
	if now == nil {
		now = time.Now
	}
	return &Monitor{db: db, log: log, now: now}
}

// Writable returns an error that describes why the database does not accept writes, or nil. The
// error is that of a probe, which is at most a second old and was not made before a failed
// statement. A probe writes a row without a tenant. If another transaction holds the database for
// long, the probe succeeds.
func (m *Monitor) Writable(ctx context.Context) error {
	m.probing.Lock()
	defer m.probing.Unlock()
	m.mu.Lock()
	if age := m.now().Sub(m.at); !m.at.IsZero() && age >= 0 && age < fresh {
		defer m.mu.Unlock()
		return m.known
	}
	bytes, damaged := 0, m.isDamaged()
	if m.full {
		bytes = roomy
	}
	m.suspect = false
	m.mu.Unlock()
	err := m.probe(ctx, bytes)
	if ctx.Err() != nil { // the caller has disconnected
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch f := bunx.FaultOf(err); {
	case err == nil:
		m.full = false
	case f == bunx.DiskFull:
		m.full = true
	}
	if err == nil && damaged {
		err = errDamaged
	}
	m.at = m.now()
	m.change(err)
	return err
}

var errDamaged = errs.New(
	errs.Unavailable,
	"The database is damaged: a statement has met a part of it that cannot be read. Restore the last good backup.",
)

func (m *Monitor) isDamaged() bool { return !m.damaged.IsZero() && m.now().Sub(m.damaged) < damagedFor }

// probe writes a row.
func (m *Monitor) probe(ctx context.Context, bytes int) error {
	ctx, cancel := context.WithTimeout(bunx.Brief(ctx), timeout)
	defer cancel()
	err := bunx.WriteOne(ctx, m.db, "", func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO tc_leases (name, holder, ends_at) VALUES ('write probe', $1, $2)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at`,
			incompressible(bytes), bunx.At(m.now()))
		return err
	})
	if err = bunx.Err(err, "The probe"); errors.Is(err, errs.ErrDatabaseBusy) { // another transaction is writing
		return nil
	}
	return err
}

// incompressible returns a text of some bytes that PostgreSQL cannot compress.
func incompressible(bytes int) string {
	random := make([]byte, bytes/2)
	_, _ = rand.Read(random) // never fails
	return hex.EncodeToString(random)
}

// change stores the result of a probe, and logs it if it differs from the previous one.
func (m *Monitor) change(err error) {
	was := m.known
	m.known = err
	switch {
	case err != nil && was == nil:
		m.since = m.now().UTC()
		m.log.Error("the database takes no writes", "reason", errs.MessageOf(err), "since", m.since, "err", err)
	case err != nil && errs.MessageOf(err) != errs.MessageOf(was):
		m.log.Error(
			"the database takes no writes, for another reason", "reason", errs.MessageOf(err), "since", m.since,
			"err", err,
		)
	case err == nil && was != nil:
		m.log.Info("the database takes writes again", "since", m.since, "for", m.now().Sub(m.since).Round(time.Second))
	}
}

// Saw must be called with errors of statements. It reports whether the error reveals a fault that
// is already in the log.
func (m *Monitor) Saw(err error) bool {
	f := bunx.TranslatedFault(err)
	if f == bunx.NoFault {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspect = true
	if m.known == nil {
		m.at = time.Time{} // the next call of Writable must probe
	}
	switch {
	case f == bunx.DiskFull:
		m.full = true
	case bunx.Corrupt(err):
		if !m.isDamaged() {
			m.log.Error("a statement has met a damaged part of the database", "since", m.now().UTC(), "err", err)
		}
		m.damaged = m.now()
		return true
	}
	return m.known != nil
}

// Check must be called often. It probes while writes fail, and after a statement has failed.
func (m *Monitor) Check(ctx context.Context) {
	m.mu.Lock()
	look := m.known != nil || m.suspect
	m.mu.Unlock()
	if look {
		_ = m.Writable(ctx)
	}
}
