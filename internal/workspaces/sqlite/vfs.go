package sqlite

import (
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// vfsName is the VFS of workspaces: SQLite's own, whose temporary files count what is written to
// them.
const vfsName = "tenantcontent-workspaces"

type (
	openFunc  func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	writeFunc func(tls *libc.TLS, file, data uintptr, size int32, at int64) int32
)

// vfs is what the functions of the VFS need of SQLite's own.
var vfs struct {
	open openFunc

	mu      sync.Mutex
	methods map[uintptr]uintptr // of files: ours, by SQLite's
	write   sync.Map            // SQLite's xWrite, by our methods

	spills sync.Map // *spill, by the TLS of connections
}

// spill counts the bytes that a statement has written to temporary files.
type spill struct {
	bytes, limit int64 // only the goroutine of the statement uses them
	full         atomic.Bool
}

// registerVFS registers the VFS in SQLite, once.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS() // the VFS lasts as long as the program
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	name, err := libc.CString(vfsName)
	if base == 0 || err != nil {
		return errors.New("sqlite: there is no VFS")
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	if own == 0 {
		return errors.New("sqlite: no memory for a VFS")
	}
	*vfsAt(own) = *vfsAt(base)
	from := vfsAt(base).FxOpen
	vfs.open = *(*openFunc)(unsafe.Pointer(&struct{ uintptr }{from}))
	vfs.methods = map[uintptr]uintptr{}
	vfsAt(own).FpNext, vfsAt(own).FzName, vfsAt(own).FxOpen = 0, name, pointer[openFunc](openFile)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
		return errors.New("sqlite: the VFS cannot be registered")
	}
	return nil
})

// These read C structures.
func vfsAt(p uintptr) *sqlite3.Tsqlite3_vfs { return *(**sqlite3.Tsqlite3_vfs)(unsafe.Pointer(&p)) }
func fileAt(p uintptr) *sqlite3.Tsqlite3_file {
	return *(**sqlite3.Tsqlite3_file)(unsafe.Pointer(&p))
}
func methodsAt(p uintptr) *sqlite3.Tsqlite3_io_methods {
	return *(**sqlite3.Tsqlite3_io_methods)(unsafe.Pointer(&p))
}

// pointer returns a function that is declared by name as SQLite calls C's functions, as the driver
// does it.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

// openFile is the xOpen of the VFS.
func openFile(tls *libc.TLS, of, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := vfs.open(tls, of, name, file, flags, outFlags)
	if rc == sqlite3.SQLITE_OK && flags&sqlite3.SQLITE_OPEN_DELETEONCLOSE != 0 {
		if own := counting(tls, fileAt(file).FpMethods); own != 0 {
			fileAt(file).FpMethods = own
		}
	}
	return rc
}

// counting returns the methods of a file with our xWrite.
func counting(tls *libc.TLS, methods uintptr) uintptr {
	vfs.mu.Lock()
	defer vfs.mu.Unlock()
	if own, ok := vfs.methods[methods]; ok {
		return own
	}
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	if own == 0 {
		return 0
	}
	*methodsAt(own) = *methodsAt(methods)
	from := methodsAt(methods).FxWrite
	vfs.write.Store(own, *(*writeFunc)(unsafe.Pointer(&struct{ uintptr }{from})))
	methodsAt(own).FxWrite = pointer[writeFunc](writeFile)
	vfs.methods[methods] = own
	return own
}

// writeFile is the xWrite of temporary files. A statement that has written too much finds the disk
// full.
func writeFile(tls *libc.TLS, file, data uintptr, size int32, at int64) int32 {
	if found, ok := vfs.spills.Load(uintptr(unsafe.Pointer(tls))); ok {
		s := found.(*spill)
		if s.bytes += int64(size); s.bytes > s.limit {
			s.full.Store(true)
			return sqlite3.SQLITE_FULL
		}
	}
	write, ok := vfs.write.Load(fileAt(file).FpMethods)
	if !ok {
		return sqlite3.SQLITE_IOERR
	}
	return write.(writeFunc)(tls, file, data, size, at)
}
