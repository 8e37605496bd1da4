package pgsafe

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// socket is the connection under pgdriver (and under TLS). Deadlines do nothing: a statement ends with its context,
// which closes the socket, and never with an i/o timeout that leaves an answer to be read by the next caller.
type socket struct{ net.Conn }

func (socket) SetDeadline(time.Time) error      { return nil }
func (socket) SetReadDeadline(time.Time) error  { return nil }
func (socket) SetWriteDeadline(time.Time) error { return nil }

var errUnsolicited = errors.New("pgsafe: the server spoke while the connection was idle")

// quiet returns nil when the socket is open and has nothing to be read, as it must be between statements: a server
// that ends a connection says so, and an answer nobody waited for belongs to somebody else. It does not block.
func (s socket) quiet() error {
	sc, ok := s.Conn.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var peekErr error
	if err := raw.Read(func(fd uintptr) bool {
		peekErr = peek(fd)
		return true // never wait
	}); err != nil {
		return err
	}
	return peekErr
}
