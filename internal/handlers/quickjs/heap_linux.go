package quickjs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve returns memory at an address that does not change. It is taken from the system when it is
// first written to.
func reserve(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

// release clears memory and gives back to the system what it can of it.
func release(dirty []byte) {
	page := unix.Getpagesize()
	start := -int(uintptr(unsafe.Pointer(unsafe.SliceData(dirty)))) & (page - 1)
	pages := dirty[start : start+(len(dirty)-start)&^(page-1)]
	clear(dirty[:start])
	clear(dirty[start+len(pages):])
	if unix.Madvise(pages, unix.MADV_DONTNEED) != nil {
		clear(pages)
	}
}
