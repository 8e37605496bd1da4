package pgsafe

import (
	"errors"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// socket is the connection that pgdriver uses, over TLS if required. Deadlines that pgdriver sets
// have no effect. A statement ends with its context, or when the server was silent for the
// statement's timeout; both close the socket. So the next caller cannot read an answer that was
// left after an i/o timeout.
type socket struct {
	net.Conn
	raw      net.Conn      // the same without TLS
	startup  *keyReader    // until the server is ready
	timeout  time.Duration // of each read and write; 0: unlimited. Only the user of the connection sets it
	killed   atomic.Bool
	timedOut atomic.Bool // killed because of a timeout
	next     []byte      // sent with the next write
	drop     bool        // the next write was sent as next
}

func (*socket) SetDeadline(time.Time) error      { return nil }
func (*socket) SetReadDeadline(time.Time) error  { return nil }
func (*socket) SetWriteDeadline(time.Time) error { return nil }

// kill closes the socket at once: pending reads and writes fail. Any goroutine may call it, any
// number of times.
func (s *socket) kill() {
	s.killed.Store(true)
	_ = s.raw.Close()
}

// Read waits for the server at most for the timeout.
func (s *socket) Read(b []byte) (int, error) {
	_ = s.Conn.SetReadDeadline(s.deadline()) // fails only on a closed socket, and then the read fails, too
	n, err := s.Conn.Read(b)
	if s.startup != nil && !s.startup.found {
		s.startup.found = !s.startup.note(b[:n])
	}
	s.check(err)
	return n, err
}

// Write waits for the server at most for the timeout. After kill it drops the data without an
// error, because pgdriver would write a line to stderr. The next read fails.
func (s *socket) Write(b []byte) (int, error) {
	if s.drop {
		s.drop = false
		return len(b), nil
	}
	whole := len(b)
	if s.next != nil {
		b, s.next = slices.Concat(b, s.next), nil
	}
	_ = s.Conn.SetWriteDeadline(s.deadline())
	n, err := s.Conn.Write(b)
	s.check(err)
	if err != nil && s.killed.Load() {
		return whole, nil
	}
	return min(n, whole), err
}

func (s *socket) deadline() time.Time {
	if s.timeout <= 0 {
		return time.Time{}
	}
	return time.Now().Add(s.timeout)
}

// check kills the connection if err is a timeout.
func (s *socket) check(err error) {
	if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		s.timedOut.Store(true)
		s.kill()
	}
}

var errUnsolicited = errors.New("pgsafe: the server spoke while the connection was idle")

// quiet returns nil if the socket is open and has nothing to read, as it must be between
// statements. A server sends a message before it ends a connection, and an unexpected answer
// belongs to another caller. It does not block.
func (s *socket) quiet() error {
	sc, ok := s.raw.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	_ = s.Conn.SetReadDeadline(time.Time{}) // the deadline of the last statement has passed
	var peekErr error
	if err := raw.Read(func(fd uintptr) bool {
		peekErr = peek(fd)
		return true // never wait
	}); err != nil {
		return err
	}
	return peekErr
}
