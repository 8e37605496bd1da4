//go:build unix

package pgsafe

import (
	"io"
	"syscall"
)

// peek checks for a byte to read on a non-blocking socket, without reading it.
func peek(fd uintptr) error {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
	switch {
	case err == syscall.EAGAIN || err == syscall.EWOULDBLOCK || err == syscall.EINTR:
		return nil
	case err != nil:
		return err
	case n == 0:
		return io.EOF
	}
	return errUnsolicited
}
