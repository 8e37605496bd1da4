// Package pgtest runs throwaway PostgreSQL servers, only for tests, internal/testkit/dbtest and
// internal/bench. It links no SQL driver: it only runs processes.
package pgtest

import "errors"

// ErrNoServer is the error on a machine without the programs of a PostgreSQL server.
var ErrNoServer = errors.New("pgtest: no PostgreSQL server binaries (initdb, postgres) found: " +
	"`make test` installs them, as does `apt-get install postgresql`; or name their folder in PG_BIN")
