package sqlitesafe

import (
	"errors"
	"io"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// vfsName is the VFS of private copies. Its databases are those in privates, by name; their
// journals are temporary files of SQLite's default VFS.
const vfsName = "tenantcontent-private"

var (
	privates  sync.Map // *private, by name
	openFiles sync.Map // *private, by the pointer to its file

	openBase openFunc // xOpen of SQLite's default VFS
	methods  uintptr  // of the files of private copies
)

type (
	openFunc     func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	deleteFunc   func(tls *libc.TLS, vfs, name uintptr, sync int32) int32
	accessFunc   func(tls *libc.TLS, vfs, name uintptr, flags int32, out uintptr) int32
	pathFunc     func(tls *libc.TLS, vfs, name uintptr, size int32, out uintptr) int32
	fileFunc     func(tls *libc.TLS, file uintptr) int32
	flagFunc     func(tls *libc.TLS, file uintptr, flag int32) int32
	bytesFunc    func(tls *libc.TLS, file, data uintptr, size int32, at int64) int32
	truncateFunc func(tls *libc.TLS, file uintptr, size int64) int32
	resultFunc   func(tls *libc.TLS, file, out uintptr) int32
	controlFunc  func(tls *libc.TLS, file uintptr, op int32, arg uintptr) int32
)

// registerVFS registers the VFS in SQLite, once.
var registerVFS = sync.OnceValue(func() error {
	tls := libc.NewTLS() // the VFS is never unregistered
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	name, err := libc.CString(vfsName)
	own := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	methods = libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	if base == 0 || err != nil || own == 0 || methods == 0 {
		return errors.New("sqlitesafe: the VFS cannot be made")
	}
	*at[sqlite3.Tsqlite3_vfs](own) = *at[sqlite3.Tsqlite3_vfs](base)
	v, m := at[sqlite3.Tsqlite3_vfs](own), at[sqlite3.Tsqlite3_io_methods](methods)
	openBase = *(*openFunc)(unsafe.Pointer(&struct{ uintptr }{v.FxOpen}))
	v.FpNext, v.FzName = 0, name
	v.FxOpen, v.FxDelete, v.FxAccess, v.FxFullPathname =
		pointer[openFunc](openFile), pointer[deleteFunc](deleteFile), pointer[accessFunc](access),
		pointer[pathFunc](fullPath)
	m.FiVersion = 1 // no shared memory
	m.FxClose, m.FxRead, m.FxWrite, m.FxTruncate =
		pointer[fileFunc](closeFile), pointer[bytesFunc](readFile), pointer[bytesFunc](writeFile),
		pointer[truncateFunc](truncateFile)
	m.FxSync, m.FxLock, m.FxUnlock = pointer[flagFunc](ignore), pointer[flagFunc](ignore), pointer[flagFunc](ignore)
	m.FxFileSize, m.FxCheckReservedLock, m.FxFileControl =
		pointer[resultFunc](fileSize), pointer[resultFunc](notReserved), pointer[controlFunc](control)
	m.FxSectorSize, m.FxDeviceCharacteristics = pointer[fileFunc](sectorSize), pointer[fileFunc](characteristics)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, own, 0); rc != sqlite3.SQLITE_OK {
		return errors.New("sqlitesafe: the VFS cannot be registered")
	}
	return nil
})

// at returns the value at a pointer of SQLite.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// bytesAt returns the bytes at a pointer of SQLite.
func bytesAt(p uintptr, size int32) []byte { return unsafe.Slice(at[byte](p), size) }

// pointer returns a declared function in the form in which SQLite calls C functions, as the driver
// does it.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f})) }

func openFile(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	if flags&sqlite3.SQLITE_OPEN_MAIN_DB == 0 {
		const temporary = sqlite3.SQLITE_OPEN_TEMP_JOURNAL | sqlite3.SQLITE_OPEN_READWRITE |
			sqlite3.SQLITE_OPEN_CREATE |
			sqlite3.SQLITE_OPEN_EXCLUSIVE | sqlite3.SQLITE_OPEN_DELETEONCLOSE
		return openBase(tls, vfs, 0, file, temporary, outFlags)
	}
	*at[sqlite3.Tsqlite3_file](file) = sqlite3.Tsqlite3_file{}
	p, ok := privates.Load(libc.GoString(name))
	if !ok {
		return sqlite3.SQLITE_CANTOPEN
	}
	openFiles.Store(file, p)
	at[sqlite3.Tsqlite3_file](file).FpMethods = methods
	if outFlags != 0 {
		*at[int32](outFlags) = flags
	}
	return sqlite3.SQLITE_OK
}

// deleteFile does nothing: journals are deleted when they are closed.
func deleteFile(*libc.TLS, uintptr, uintptr, int32) int32 { return sqlite3.SQLITE_OK }

// access reports that a file, such as a journal to roll back, does not exist.
func access(_ *libc.TLS, _, _ uintptr, _ int32, out uintptr) int32 {
	*at[int32](out) = 0
	return sqlite3.SQLITE_OK
}

func fullPath(_ *libc.TLS, _, name uintptr, size int32, out uintptr) int32 {
	text := libc.GoString(name)
	if len(text)+1 > int(size) {
		return sqlite3.SQLITE_CANTOPEN
	}
	to := bytesAt(out, size)
	to[copy(to, text)] = 0
	return sqlite3.SQLITE_OK
}

func closeFile(_ *libc.TLS, file uintptr) int32 {
	openFiles.Delete(file)
	return sqlite3.SQLITE_OK
}

// privateOf returns the private copy of a file.
func privateOf(file uintptr) *private {
	p, _ := openFiles.Load(file)
	return p.(*private)
}

func readFile(_ *libc.TLS, file, data uintptr, size int32, at int64) int32 {
	to := bytesAt(data, size)
	clear(to)
	switch err := privateOf(file).readAt(to, at); {
	case err == nil:
		return sqlite3.SQLITE_OK
	case errors.Is(err, io.EOF):
		return sqlite3.SQLITE_IOERR_SHORT_READ
	}
	return sqlite3.SQLITE_IOERR_READ
}

func writeFile(_ *libc.TLS, file, data uintptr, size int32, at int64) int32 {
	switch err := privateOf(file).writeAt(bytesAt(data, size), at); {
	case err == nil:
		return sqlite3.SQLITE_OK
	case errors.Is(err, errEnded):
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return sqlite3.SQLITE_FULL // no space in the directory of temporary files
}

func truncateFile(_ *libc.TLS, file uintptr, size int64) int32 {
	privateOf(file).truncate(size)
	return sqlite3.SQLITE_OK
}

func fileSize(_ *libc.TLS, file, out uintptr) int32 {
	*at[int64](out) = privateOf(file).size()
	return sqlite3.SQLITE_OK
}

// ignore implements locks, as the file has one user, and syncs, as the file is temporary.
func ignore(*libc.TLS, uintptr, int32) int32 { return sqlite3.SQLITE_OK }

func notReserved(_ *libc.TLS, _, out uintptr) int32 {
	*at[int32](out) = 0
	return sqlite3.SQLITE_OK
}

func control(*libc.TLS, uintptr, int32, uintptr) int32 { return sqlite3.SQLITE_NOTFOUND }

func sectorSize(*libc.TLS, uintptr) int32 { return 4096 }

func characteristics(*libc.TLS, uintptr) int32 { return 0 }
