//go:build unix

package pgsafe

import (
	"io"
	"syscall"
)

// peek looks for a byte to read on a non-blocking socket and leaves it there.
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
