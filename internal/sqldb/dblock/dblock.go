// Package dblock implements a lock over the secrets of a database. Programs that use the secrets
// share it. A program that changes their keys takes it exclusively. Another lock limits a SQLite
// file to one server (Serve).
//
// On PostgreSQL it is an advisory lock of a session on a separate connection, which no request
// waits for, and ends with that connection. On SQLite it is a lock on a file beside the database.
// Both end with the process, even if it is killed. Nothing else depends on them for correctness.
//
// The root imports it.
package dblock

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Lock is held until Release or the end of the process. The zero value is the lock of a database in
// memory, which needs none.
type Lock struct {
	session *session // PostgreSQL
	file    *file    // SQLite
}

// Share takes the shared lock of a database. purpose, such as an address, describes the holder to
// people. It returns errs.Conflict, naming the other program, while the keys are being changed.
func Share(ctx context.Context, db *bun.DB, purpose string) (*Lock, error) {
	return take(ctx, db, purpose, true)
}

// Alone takes the exclusive lock of a database. It returns errs.Conflict, naming the programs that
// hold the lock, if there are any.
func Alone(ctx context.Context, db *bun.DB, purpose string) (*Lock, error) {
	return take(ctx, db, purpose, false)
}

// Serve takes the lock for the only server of a SQLite database. It returns errs.Conflict, naming
// the other server, if one runs. On PostgreSQL, which any number of servers may use, it does
// nothing.
func Serve(ctx context.Context, db *bun.DB, purpose string) (*Lock, error) {
	if db.Dialect().Name() == dialect.PG {
		return new(Lock), nil
	}
	f, err := newFile(ctx, db, "-serving", describe(purpose))
	if err != nil || f == nil {
		return new(Lock), err
	}
	got, err := f.take(false)
	if err != nil {
		return nil, err
	}
	if !got {
		return nil, errs.New(errs.Conflict,
			"The database file %s is served by %s already: stop that server first, or name another data folder. "+
				"On PostgreSQL several servers share a database.",
			f.database, others(names(f.living())))
	}
	return &Lock{file: f}, nil
}

func take(ctx context.Context, db *bun.DB, purpose string, shared bool) (*Lock, error) {
	var l Lock
	var err error
	if holder := describe(purpose); db.Dialect().Name() == dialect.PG {
		l.session, err = openSession(ctx, db, holder, shared)
	} else {
		l.file, err = lockFile(ctx, db, holder, shared)
	}
	if err != nil {
		return nil, err
	}
	return &l, nil
}

// Check returns an error if the lock was lost with its connection. The caller must then release it
// and take it again.
func (l *Lock) Check(ctx context.Context) error {
	if l.session == nil {
		return nil
	}
	return l.session.check(ctx)
}

// Release releases the lock.
func (l *Lock) Release() error {
	switch {
	case l.session != nil:
		return l.session.close()
	case l.file != nil:
		return l.file.unlock()
	}
	return nil
}

// describe names this process for people. The most important words are first, because PostgreSQL
// keeps 63 bytes.
func describe(purpose string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	if purpose == "" {
		purpose = "a program"
	}
	return fmt.Sprintf("%s (process %d on %s)", purpose, os.Getpid(), host)
}

// taken returns the error for a lock that other programs hold.
func taken(shared bool, holders []string) error {
	who := others(holders)
	if shared {
		return errs.New(
			errs.Conflict, "The secret key of this database is being changed by %s: wait until it has ended.",
			who,
		)
	}
	return errs.New(
		errs.Conflict,
		"The secrets of this database are in use by %s: stop it first, or what it encrypts from now on is lost.",
		who,
	)
}

// others returns the names of the holders of a lock.
func others(holders []string) string {
	if len(holders) == 0 {
		return "another program"
	}
	return strings.Join(holders, ", ")
}
