package ldap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// What a directory may send on one connection. go-ldap takes everything, and needs many times the size of a message for
// one of tiny elements: without bounds a bad directory of one tenant takes the memory of all.
const (
	maxMessage  = 16 << 20  // bytes of one message, such as a group of 100,000 members
	maxElements = 400_000   // values of one message, and what they are wrapped in
	maxMessages = 1_000_000 // an entry is a message
	maxBytes    = 512 << 20 // of all messages
)

var (
	errTooMuch   = errors.New("more than this service takes from a directory")
	errMalformed = errors.New("not a message of LDAP")
)

// frames gives go-ldap the messages of a directory that are not too large, one at a time.
type frames struct {
	net.Conn
	in       *bufio.Reader // from Conn
	buffer   []byte
	rest     []byte // of the message in buffer
	messages int
	bytes    int64
	exceeded atomic.Bool // a bound
}

func newFrames(c net.Conn) *frames { return &frames{Conn: c, in: bufio.NewReader(c)} }

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
	f.messages, f.bytes = f.messages+1, f.bytes+int64(length)
	switch {
	case err != nil:
		return err
	case length > maxMessage, f.messages > maxMessages, f.bytes > maxBytes:
		return errTooMuch
	}
	f.buffer = append(f.buffer[:0], head[:size]...)
	if f.buffer, err = readOn(f.in, f.buffer, length); err != nil {
		return err
	}
	f.rest = f.buffer
	return checkElements(f.buffer)
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

// checkElements walks over a message's elements, those within others too, and counts them.
func checkElements(b []byte) error {
	for count := 1; len(b) > 0; count++ {
		if count > maxElements {
			return errTooMuch
		}
		if len(b) < 2 || b[0]&0x1f == 0x1f || 2+lengthBytes(b[1]) > len(b) { // LDAP has no tags of several bytes
			return errMalformed
		}
		head := 2 + lengthBytes(b[1])
		length, err := elementLength(b[:head])
		if err != nil || length > len(b)-head {
			return errMalformed
		}
		if constructed := b[0]&0x20 != 0; !constructed {
			head += length
		}
		b = b[head:]
	}
	return nil
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
