package pgsafe

import (
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is the connection under pgdriver (and under TLS). Deadlines do nothing: a statement ends with its context,
// which closes the socket, and never with an i/o timeout that leaves an answer to be read by the next caller.
type socket struct {
	net.Conn
	killed atomic.Bool
}

func (*socket) SetDeadline(time.Time) error      { return nil }
func (*socket) SetReadDeadline(time.Time) error  { return nil }
func (*socket) SetWriteDeadline(time.Time) error { return nil }

// kill closes the socket at once: whoever reads or writes fails. Any goroutine may call it, any number of times.
func (s *socket) kill() {
	s.killed.Store(true)
	_ = s.Conn.Close()
}

// Write swallows what is written after kill, of which pgdriver would make a line on stderr. Its next read fails.
func (s *socket) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if err != nil && s.killed.Load() {
		return len(b), nil
	}
	return n, err
}

var errUnsolicited = errors.New("pgsafe: the server spoke while the connection was idle")

// quiet returns nil when the socket is open and has nothing to be read, as it must be between statements: a server
// that ends a connection says so, and an answer nobody waited for belongs to somebody else. It does not block.
func (s *socket) quiet() error {
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
