package quickjs

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
)

// A frame is a message between the server and a child: its length, its type, the number of the
// exchange that it belongs to, and a body of unsigned numbers and byte strings.
type frame struct {
	kind kind
	id   uint64
	body []byte
}

// kind is the type of a frame.
type kind byte

// From the server to a child.
const (
	kindRun     kind = 'r' // see invocation
	kindCompile kind = 'c' // the entry; the child reads files by calls of readFunction
	kindAnswer  kind = 'a' // number of the call, 1 if it failed, 1 if there is a value, JSON or message, code
	kindCancel  kind = 'x' // stop
	kindWake    kind = 'w' // the time of a kindWait has come
)

// From a child to the server.
const (
	// once at the start: protocol, engine, what confines it; from the server before that: the
	// host's prelude
	kindHello   kind = 'H'
	kindLogs    kind = 'L' // dropped lines, then for each line time, level and text
	kindCall    kind = 'C' // number of the call, name, JSON
	kindRespond kind = 'R' // 1 if there is a value, JSON
	// it waits: answers that it has got so far, and 0 or 1 and the microseconds after which it is
	// to be woken
	kindWait     kind = 'W'
	kindEnd      kind = 'E' // see ending
	kindCompiled kind = 'D' // see compiled
)

const (
	frameHeader = 4 + 1 + 8
	maxFrame    = 1 << 30 // the server never sends more
)

var errFrame = errors.New("jsvm: a process sent what no correct one sends")

// conn sends and receives frames.
type conn struct {
	r  *bufio.Reader
	mu sync.Mutex // serializes writes
	w  io.Writer
}

func newConn(r io.Reader, w io.Writer) *conn {
	return &conn{r: bufio.NewReaderSize(r, 16<<10), w: w}
}

// read returns the next frame. A frame whose body is longer than limit returns is an error, and is
// not read.
func (c *conn) read(limit func(kind) int) (frame, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(h[4]), id: binary.LittleEndian.Uint64(h[5:])}
	size := int64(binary.LittleEndian.Uint32(h[:]))
	if most := limit(f.kind); size > int64(most) {
		return frame{}, fmt.Errorf("%w: a frame %q of %d bytes, where %d are allowed", errFrame, f.kind, size, most)
	}
	f.body = make([]byte, size)
	_, err := io.ReadFull(c.r, f.body)
	return f, err
}

// write sends a frame.
func (c *conn) write(k kind, id uint64, body *encoder) error {
	b := body.finish(k, id)
	if len(b)-frameHeader > maxFrame {
		return fmt.Errorf("%w: a frame of %d bytes", errFrame, len(b))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.w.Write(b)
	return err
}

// encoder appends the body of a frame.
type encoder struct{ b []byte }

func newEncoder(size int) *encoder {
	return &encoder{b: make([]byte, frameHeader, frameHeader+size)}
}

func (e *encoder) finish(k kind, id uint64) []byte {
	binary.LittleEndian.PutUint32(e.b, uint32(len(e.b)-frameHeader))
	e.b[4] = byte(k)
	binary.LittleEndian.PutUint64(e.b[5:], id)
	return e.b
}

func (e *encoder) uint(n uint64) *encoder {
	e.b = binary.AppendUvarint(e.b, n)
	return e
}

func (e *encoder) int(n int) *encoder { return e.uint(uint64(max(n, 0))) }

func (e *encoder) bool(b bool) *encoder {
	if b {
		return e.uint(1)
	}
	return e.uint(0)
}

func (e *encoder) bytes(b []byte) *encoder {
	e.int(len(b))
	e.b = append(e.b, b...)
	return e
}

func (e *encoder) string(s string) *encoder {
	e.int(len(s))
	e.b = append(e.b, s...)
	return e
}

// optional appends a value that may be nil.
func (e *encoder) optional(b []byte) *encoder {
	return e.bool(b != nil).bytes(b)
}

func (e *encoder) strings(all []string) *encoder {
	e.int(len(all))
	for _, s := range all {
		e.string(s)
	}
	return e
}

// decoder reads the body of a frame. After the first error, all that it reads is empty.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: a malformed body", errFrame)
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) int() int {
	n := d.uint()
	if n > math.MaxInt32 {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) int64() int64 {
	n := d.uint()
	if n > math.MaxInt64 {
		d.fail()
		return 0
	}
	return int64(n)
}

func (d *decoder) bool() bool { return d.uint() == 1 }

// bytes returns a part of the body, not a copy.
func (d *decoder) bytes() []byte {
	n := d.int()
	if n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) optional() []byte {
	set, b := d.bool(), d.bytes()
	if !set {
		return nil
	}
	return b
}

func (d *decoder) strings() []string {
	n := d.int()
	if n > len(d.b) { // each takes at least a byte
		d.fail()
		return nil
	}
	all := make([]string, 0, n)
	for range n {
		all = append(all, d.string())
	}
	return all
}

// done returns the first error, also if something is left.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) > 0 {
		d.fail()
	}
	return d.err
}
