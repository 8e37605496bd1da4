package sqlite

import (
	"reflect"
	"sync"
	"sync/atomic"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// watch ends the statement of a connection with its context, while SQLite runs it, and counts what
// it writes to temporary files. The driver itself interrupts a statement only up to its first row.
type watch struct {
	handle uintptr // of SQLite
	owner  uintptr // the TLS that the connection calls SQLite with
	tls    *libc.TLS
	ended  atomic.Bool
	spill  spill
}

// steps is how many instructions of a statement run between two looks at its watch.
const steps = 1000

// watches are the watches of open connections, by SQLite's handles.
var watches sync.Map

// newWatch returns the watch of a connection of the driver, nil if the driver has changed: then no
// statement could be ended. limit is how many bytes a statement may write to temporary files.
func newWatch(raw any, limit int64) *watch {
	w := &watch{handle: field(raw, "db"), owner: field(raw, "tls"), spill: spill{limit: limit}}
	if w.handle == 0 || w.owner == 0 {
		return nil
	}
	w.tls = libc.NewTLS()
	watches.Store(w.handle, w)
	vfs.spills.Store(w.owner, &w.spill)
	sqlite3.Xsqlite3_progress_handler(w.tls, w.handle, steps, pointer(progress), w.handle)
	return w
}

// close ends a watch, before its connection is closed.
func (w *watch) close() {
	sqlite3.Xsqlite3_progress_handler(w.tls, w.handle, 0, 0, 0)
	watches.Delete(w.handle)
	vfs.spills.Delete(w.owner)
	w.tls.Close()
}

// begin begins to watch a statement.
func (w *watch) begin() {
	w.ended.Store(false)
	w.spill.full.Store(false)
	w.spill.bytes = 0
}

// end ends the statement soon. Others than the caller of the statement may call it.
func (w *watch) end() {
	w.ended.Store(true)
	tls := libc.NewTLS()
	defer tls.Close()
	sqlite3.Xsqlite3_interrupt(tls, w.handle)
}

// autocommit reports whether no transaction is open, after SQLite may have ended one by itself.
func (w *watch) autocommit() bool { return sqlite3.Xsqlite3_get_autocommit(w.tls, w.handle) != 0 }

// progress is called by SQLite. A result other than 0 interrupts the statement.
func progress(_ *libc.TLS, handle uintptr) int32 {
	if found, ok := watches.Load(handle); !ok || found.(*watch).ended.Load() {
		return 1
	}
	return 0
}

// field returns a number or pointer that a connection of the driver keeps to itself, 0 if the
// driver has changed.
func field(raw any, name string) uintptr {
	v := reflect.ValueOf(raw)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	switch f := v.Elem().FieldByName(name); f.Kind() {
	case reflect.Uintptr:
		return uintptr(f.Uint())
	case reflect.Pointer:
		return f.Pointer()
	}
	return 0
}
