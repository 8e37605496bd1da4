package sqlitesafe

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"time"
)

// CheckHeader returns an error if a file is not a SQLite database, or is shorter than its header
// says. It returns nil for a missing or empty file.
func CheckHeader(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	header := make([]byte, 100)
	n, err := io.ReadFull(f, header)
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case err != nil || !bytes.HasPrefix(header, []byte("SQLite format 3\x00")):
		return notDatabase{}
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil // pages at the end may be only in the log
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint32(header[at:])) }
	page := int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 {
		page = 1 << 16
	}
	if says := number(28) * page; number(24) == number(92) && says > info.Size() {
		return fault(fmt.Sprintf("it has %d bytes, and its header says %d", info.Size(), says))
	}
	return nil
}

// notDatabase is like SQLite's error for a file that is not a database.
type notDatabase struct{}

func (notDatabase) Error() string { return "it does not begin as a SQLite database does" }
func (notDatabase) Code() int     { return 26 }

// fault is like SQLite's error for a damaged file.
type fault string

func (e fault) Error() string { return string(e) }
func (fault) Code() int       { return 11 }

// sampleTime bounds how long Sample reads.
const sampleTime = 250 * time.Millisecond

// Sample checks tables of a database, which may be in use, in random order for at most sampleTime.
// A small database is checked completely. It returns an error, for which Damaged is true, that
// describes what is damaged.
func Sample(ctx context.Context, db *sql.DB) error {
	tables, err := scanAll[string](db.QueryContext(
		ctx, `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`,
	))
	if err != nil {
		return err
	}
	brief, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	rand.Shuffle(len(tables), func(i, j int) { tables[i], tables[j] = tables[j], tables[i] })
	for _, name := range tables {
		rows, err := db.QueryContext(brief, `SELECT quick_check FROM pragma_quick_check(?)`, name)
		if err == nil {
			err = faults(rows)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case brief.Err() != nil:
			return nil
		case err != nil:
			return fault(err.Error())
		}
	}
	return nil
}
