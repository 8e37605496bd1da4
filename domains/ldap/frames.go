package ldap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// Bounds of what a directory may send on one connection. go-ldap has none, and needs about three
// times the size of a message and 200 bytes more for each element, so that a bad directory of one
// tenant could use up the memory of all. 100,000 users are about 30 MiB.
const (
	maxMessage  = 16 << 20  // bytes of one message, such as a group of 100,000 members
	maxElements = 150_000   // BER elements of one message
	maxMessages = 1_000_000 // each entry is a message; domains reads no more entries either
	maxBytes    = 256 << 20 // of all messages of a scan; domains keeps no more either

	maxLoginBytes = 64 << 10 // of all messages of a login, which reads one entry
)

// A message of more than heavy bytes, with elementBytes for each of its elements, is passed on
// alone, as go-ldap reads ahead.
const (
	heavy        = 1 << 20
	elementBytes = 64
)

var (
	errTooMuch   = errors.New("more than this service reads from a directory")
	errMalformed = errors.New("not an LDAP message")
)

// frames passes the messages of a directory to go-ldap, one at a time, and refuses those that are
// too large.
type frames struct {
	net.Conn
	in       *bufio.Reader // from Conn
	buffer   []byte
	rest     []byte // of the message in buffer
	budget   *budget
	messages atomic.Int64 // passed on
	taken    atomic.Int64 // of these, those that the reader of a page has taken
	exceeded atomic.Bool  // a bound was exceeded
}

func newFrames(c net.Conn, b *budget) *frames {
	return &frames{Conn: c, in: bufio.NewReader(c), budget: b}
}

// budget is what may still be read for one call, over all of its connections.
type budget struct{ messages, bytes atomic.Int64 }

func newBudget(bytes int64) *budget {
	b := &budget{}
	b.messages.Store(maxMessages)
	b.bytes.Store(bytes)
	return b
}

// take reports whether one more message may be read.
func (b *budget) take(length int) bool {
	return b.messages.Add(-1) >= 0 && b.bytes.Add(-int64(length)) >= 0
}

// settle marks all messages so far as taken.
func (f *frames) settle() { f.taken.Store(f.messages.Load()) }

// alone waits until the messages before this one were taken, at most a second: messages that are
// not part of a page are never marked as taken.
func (f *frames) alone() {
	for range 100 {
		if f.taken.Load() >= f.messages.Load()-1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Read implements net.Conn.
func (f *frames) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		if err := f.next(); err != nil {
			f.exceeded.CompareAndSwap(false, errors.Is(err, errTooMuch))
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads a message, which is a BER sequence (RFC 4511, section 5.1).
func (f *frames) next() error {
	var head [10]byte
	if _, err := io.ReadFull(f.in, head[:2]); err != nil {
		return err
	}
	size := 2 + lengthBytes(head[1])
	if size > len(head) || head[0] != 0x30 {
		return errMalformed
	}
	if _, err := io.ReadFull(f.in, head[2:size]); err != nil {
		return noEOF(err)
	}
	length, err := elementLength(head[:size])
	switch {
	case err != nil:
		return err
	case length > maxMessage, !f.budget.take(length):
		return errTooMuch
	}
	f.messages.Add(1)
	f.buffer = append(f.buffer[:0], head[:size]...)
	if f.buffer, err = appendBytes(f.in, f.buffer, length); err != nil {
		return err
	}
	elements, err := countElements(f.buffer)
	if err != nil {
		return err
	}
	if length+elementBytes*elements > heavy {
		f.alone()
	}
	f.rest = f.buffer
	return nil
}

// noEOF returns io.ErrUnexpectedEOF for io.EOF, and other errors as they are.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendBytes appends n bytes from r to b, which grows as they arrive.
func appendBytes(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 64<<10)
		at := len(b)
		b = append(b, make([]byte, step)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, noEOF(err)
		}
		n -= step
	}
	return b, nil
}

// countElements returns the number of elements of a message, at all levels.
func countElements(b []byte) (count int, err error) {
	for ; len(b) > 0; count++ {
		if count == maxElements {
			return 0, errTooMuch
		}
		if len(b) < 2 || b[0]&0x1f == 0x1f || 2+lengthBytes(b[1]) > len(b) { // LDAP does not use long tags
			return 0, errMalformed
		}
		head := 2 + lengthBytes(b[1])
		length, err := elementLength(b[:head])
		if err != nil || length > len(b)-head {
			return 0, errMalformed
		}
		if constructed := b[0]&0x20 != 0; !constructed {
			head += length
		}
		b = b[head:]
	}
	return count, nil
}

// lengthBytes returns how many bytes follow the first byte b of a length.
func lengthBytes(b byte) int {
	if b < 0x80 {
		return 0
	}
	return int(b & 0x7f)
}

// elementLength returns the length in an element's head. LDAP does not use the indefinite form.
func elementLength(head []byte) (int, error) {
	if head[1] < 0x80 {
		return int(head[1]), nil
	}
	if head[1] == 0x80 || len(head) > 10 {
		return 0, errMalformed
	}
	var b [8]byte
	copy(b[8-(len(head)-2):], head[2:])
	length := binary.BigEndian.Uint64(b[:])
	if length > maxBytes {
		return 0, errTooMuch
	}
	return int(length), nil
}
