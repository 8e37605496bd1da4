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

// What a directory may send on one connection. go-ldap takes everything, and needs about three times the size of a message,
// and 200 bytes more for each element: without bounds a bad directory of one tenant takes the memory of all. 100,000 people
// take about 30 MiB on the way, page by page.
const (
	maxMessage  = 16 << 20  // bytes of one message, such as a group of 100,000 members
	maxElements = 150_000   // values of one message, and what they are wrapped in
	maxMessages = 1_000_000 // an entry is a message; domains takes no more entries either
	maxBytes    = 256 << 20 // of all messages of a scan; domains keeps no more texts either

	maxLoginBytes = 64 << 10 // of all messages of a login, which asks for one entry
)

// heavy is a message that comes alone, as go-ldap reads ahead: bytes, with 64 for each element.
const (
	heavy        = 1 << 20
	elementBytes = 64
)

var (
	errTooMuch   = errors.New("more than this service takes from a directory")
	errMalformed = errors.New("not a message of LDAP")
)

// frames passes the messages of a directory to go-ldap, one at a time, and refuses those that are too large.
type frames struct {
	net.Conn
	in       *bufio.Reader // from Conn
	buffer   []byte
	rest     []byte // of the message in buffer
	most     int64  // bytes of all messages
	bytes    int64
	messages atomic.Int64 // handed out
	taken    atomic.Int64 // of these, by whoever reads a page
	exceeded atomic.Bool  // a bound
}

func newFrames(c net.Conn, most int64) *frames {
	return &frames{Conn: c, in: bufio.NewReader(c), most: most}
}

// settle says that all messages so far were taken.
func (f *frames) settle() { f.taken.Store(f.messages.Load()) }

// alone waits until the messages before this one were taken, or for a second: of those that are no part of a page nobody
// says so.
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

// next reads a message: a sequence, whose length says where it ends (RFC 4511, 5.1).
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
		return inMessage(err)
	}
	length, err := elementLength(head[:size])
	f.bytes += int64(length)
	switch {
	case err != nil:
		return err
	case length > maxMessage, f.messages.Add(1) > maxMessages, f.bytes > f.most:
		return errTooMuch
	}
	f.buffer = append(f.buffer[:0], head[:size]...)
	if f.buffer, err = readOn(f.in, f.buffer, length); err != nil {
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

// inMessage makes an end that comes within a message an error.
func inMessage(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readOn appends n bytes from r, and takes memory as they come.
func readOn(r io.Reader, b []byte, n int) ([]byte, error) {
	for n > 0 {
		step := min(n, 64<<10)
		at := len(b)
		b = append(b, make([]byte, step)...)
		if _, err := io.ReadFull(r, b[at:]); err != nil {
			return b, inMessage(err)
		}
		n -= step
	}
	return b, nil
}

// countElements walks over a message's elements, those within others too.
func countElements(b []byte) (count int, err error) {
	for ; len(b) > 0; count++ {
		if count == maxElements {
			return 0, errTooMuch
		}
		if len(b) < 2 || b[0]&0x1f == 0x1f || 2+lengthBytes(b[1]) > len(b) { // LDAP has no tags of several bytes
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

// lengthBytes is how many bytes more a length has that begins with b.
func lengthBytes(b byte) int {
	if b < 0x80 {
		return 0
	}
	return int(b & 0x7f)
}

// elementLength reads the length in an element's head. LDAP knows no indefinite one.
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
