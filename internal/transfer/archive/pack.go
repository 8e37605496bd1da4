package archive

import (
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"

	"github.com/tenantcontent/tenantcontent/errs"
)

// packer is a gzip writer that meets Limits.Ratio, so that a Reader does not take the archive for a
// decompression bomb: it stores a part of highly repetitive content uncompressed. It also meets
// Limits.Bytes.
type packer struct {
	out    *counting
	flate  *flate.Writer
	stored bool // blocks are uncompressed
	crc    uint32
	size   int64
	most   int64 // limit of size
	times  int64 // the highest ratio: half of what a Reader accepts
	next   int64 // size at which the ratio is checked again
}

// Level 2 packs JSON at several hundred MB/s. The result of level 6 would be a tenth smaller.
const level = 2

// window is the number of bytes between two checks of the ratio.
const window = 64 << 10

func newPacker(w io.Writer, l Limits) (*packer, error) {
	p := &packer{out: &counting{w: w}, most: l.Bytes, times: l.Ratio / 2, next: free / 2}
	// Without a name and a time; the system is unknown.
	if _, err := p.out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}); err != nil {
		return nil, err
	}
	return p, p.begin(p.times == 0)
}

// Write implements io.Writer.
func (p *packer) Write(b []byte) (n int, err error) {
	for n < len(b) {
		some := b[n:min(len(b), n+window)]
		if _, err := p.flate.Write(some); err != nil {
			return n, err
		}
		n += len(some)
		p.crc = crc32.Update(p.crc, crc32.IEEETable, some)
		if p.size += int64(len(some)); p.size > p.most {
			return n, errs.New(errs.Invalid, "An archive must have at most %d bytes when it is unpacked.", p.most)
		}
		if p.size >= p.next {
			if err := p.adjust(); err != nil {
				return n, err
			}
			p.next = p.size + window
		}
	}
	return n, nil
}

// adjust switches to stored blocks while the ratio is too high, and back to compressed ones. A
// stream may have blocks of both kinds.
func (p *packer) adjust() error {
	if p.tight() == p.stored {
		return nil
	}
	if err := p.flate.Flush(); err != nil { // flate may hold back many bytes
		return err
	}
	if p.tight() == p.stored {
		return nil
	}
	return p.begin(!p.stored)
}

func (p *packer) tight() bool { return p.times == 0 || p.size/p.times > p.out.n }

// begin starts stored or compressed blocks. They do not refer to bytes before them.
func (p *packer) begin(stored bool) (err error) {
	to := level
	if stored {
		to = flate.NoCompression
	}
	p.stored = stored
	p.flate, err = flate.NewWriter(p.out, to)
	return err
}

// Close ends the stream. It does not close the underlying writer.
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
