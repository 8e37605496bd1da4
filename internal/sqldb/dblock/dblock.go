// Package dblock is a lock over the secrets of a database. Programs that use the secrets share it;
// a program that changes their keys takes it alone. Another lock keeps a SQLite file to one server
// (Serve).
//
// On PostgreSQL it is an advisory lock of a session, whose connection is the lock's own: no request
// waits for it. It ends with that connection. On SQLite it is a lock on a file beside the database.
// Both end with the process, however that ends, and neither is on the path of correctness of
// anything else.
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

// Lock is held until Release or the end of the process. The zero value is that of a database in
// memory, which needs no lock.
type Lock struct {
	session *session // PostgreSQL
	file    *file    // SQLite
}

// Share takes the shared lock of a database. purpose, such as an address, describes the holder to
// people. It returns errs.Conflict, naming the program, while the keys are being changed.
func Share(ctx context.Context, db *bun.DB, purpose string) (*Lock, error) {
	return take(ctx, db, purpose, true)
}

// Alone takes the exclusive lock of a database. It returns errs.Conflict, naming the programs that
// hold the lock.
func Alone(ctx context.Context, db *bun.DB, purpose string) (*Lock, error) {
	return take(ctx, db, purpose, false)
}

// Serve takes the lock of the one server of a SQLite database. It returns errs.Conflict, naming the
// other server, while there is one. Any number of servers use a PostgreSQL: it has no such lock.
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

// Check returns an error if the lock was lost with its connection. Release it then, and take
// another.
func (l *Lock) Check(ctx context.Context) error {
	if l.session == nil {
		return nil
	}
	return l.session.check(ctx)
}

// Release frees the lock.
func (l *Lock) Release() error {
	switch {
	case l.session != nil:
		return l.session.close()
	case l.file != nil:
		return l.file.unlock()
	}
	return nil
}

// describe names this process for people, shortest first: PostgreSQL keeps 63 bytes.
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

// taken returns the error for a lock that others hold.
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

// others names the holders of a lock.
func others(holders []string) string {
	if len(holders) == 0 {
		return "another program"
	}
	return strings.Join(holders, ", ")
}
