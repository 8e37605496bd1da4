package archive

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// packer is a gzip writer that never packs so tightly that a Reader would take the archive for a bomb: content that says
// the same over and over is partly stored as it is.
type packer struct {
	out    *counting
	flate  *flate.Writer
	stored bool // as it is
	crc    uint32
	size   int64
	next   int64 // size at which the ratio is looked at again
}

// level 2 packs JSON at several hundred MB/s; level 6 would make it a tenth smaller.
const level = 2

const (
	look     = 64 << 10 // bytes between two looks at the ratio
	tightest = 100      // times: half of what a Reader takes
)

func newPacker(w io.Writer) (*packer, error) {
	p := &packer{out: &counting{w: w}, next: free / 2}
	// No name and no time; the system is unknown.
	if _, err := p.out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}); err != nil {
		return nil, err
	}
	var err error
	p.flate, err = flate.NewWriter(p.out, level)
	return p, err
}

// Write implements io.Writer.
func (p *packer) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some := b[n:min(len(b), n+look)]
		if _, err := p.flate.Write(some); err != nil {
			return n, err
		}
		n += len(some)
		p.crc = crc32.Update(p.crc, crc32.IEEETable, some)
		if p.size += int64(len(some)); p.size >= p.next {
			if err := p.turn(); err != nil {
				return n, err
			}
			p.next = p.size + look
		}
	}
	return n, nil
}

// turn stores what comes as it is while the ratio is too high, and packs it while it is not. Blocks of both kinds follow
// each other in one stream.
func (p *packer) turn() error {
	tight := p.size > tightest*p.out.n
	if tight && !p.stored { // much of it may not be written yet
		if err := p.flate.Flush(); err != nil {
			return err
		}
		tight = p.size > tightest*p.out.n
	}
	if tight == p.stored {
		return nil
	}
	if err := p.flate.Flush(); err != nil {
		return err
	}
	p.stored = tight
	to := level
	if tight {
		to = flate.NoCompression
	}
	var err error
	p.flate, err = flate.NewWriter(p.out, to) // it refers to nothing before it
	return err
}

// Close ends the stream. It does not close the writer below.
func (p *packer) Close() error {
	if err := p.flate.Close(); err != nil {
		return err
	}
	end := binary.LittleEndian.AppendUint32(nil, p.crc)
	_, err := p.out.Write(binary.LittleEndian.AppendUint32(end, uint32(p.size)))
	return err
}

// counting counts the packed bytes.
type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
