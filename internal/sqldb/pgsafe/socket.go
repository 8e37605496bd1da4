package pgsafe

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is the connection under pgdriver, over TLS where there is some. Deadlines that pgdriver
// sets do nothing: a statement ends with its context, or when the server has not been heard of for
// the statement's timeout, and both close the socket. So no i/o timeout leaves an answer to be read
// by the next caller.
type socket struct {
	net.Conn
	raw      net.Conn      // the same without TLS
	startup  *keyReader    // until the server is ready
	timeout  time.Duration // of each read and write; 0: none. Only whoever uses the connection sets it.
	killed   atomic.Bool
	timedOut atomic.Bool // and killed for it
}

func (*socket) SetDeadline(time.Time) error      { return nil }
func (*socket) SetReadDeadline(time.Time) error  { return nil }
func (*socket) SetWriteDeadline(time.Time) error { return nil }

// kill closes the socket at once: whoever reads or writes fails. Any goroutine may call it, any
// number of times.
func (s *socket) kill() {
	s.killed.Store(true)
	_ = s.raw.Close()
}

// Read waits for the server no longer than the timeout.
func (s *socket) Read(b []byte) (int, error) {
	_ = s.Conn.SetReadDeadline(s.deadline()) // fails on a closed socket alone, and so does the read
	n, err := s.Conn.Read(b)
	if s.startup != nil && !s.startup.found {
		s.startup.found = !s.startup.note(b[:n])
	}
	s.check(err)
	return n, err
}

// Write waits for the server no longer than the timeout. It swallows what is written after kill, of
// which pgdriver would make a line on stderr. Its next read fails.
func (s *socket) Write(b []byte) (int, error) {
	_ = s.Conn.SetWriteDeadline(s.deadline())
	n, err := s.Conn.Write(b)
	s.check(err)
	if err != nil && s.killed.Load() {
		return len(b), nil
	}
	return n, err
}

func (s *socket) deadline() time.Time {
	if s.timeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(s.timeout)
}

// check kills the connection when err is a timeout.
func (s *socket) check(err error) {
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		s.timedOut.Store(true)
		s.kill()
	}
}

var errUnsolicited = errors.New("pgsafe: the server spoke while the connection was idle")

// quiet returns nil when the socket is open and has nothing to be read, as it must be between
// statements: a server that ends a connection says so, and an answer nobody waited for belongs to
// somebody else. It does not block.
func (s *socket) quiet() error {
	sc, ok := s.raw.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	_ = s.Conn.SetReadDeadline(time.Time{}) // that of the last statement has passed
	var peekErr error
	if err := raw.Read(func(fd uintptr) bool {
		peekErr = peek(fd)
		return true // never wait
	}); err != nil {
		return err
	}
	return peekErr
}
