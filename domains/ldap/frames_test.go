package ldap

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"

	ber "github.com/go-asn1-ber/asn1-ber"
	"github.com/matryer/is"
)

// reading is a connection from which one can only read.
type reading struct {
	net.Conn
	io.Reader
}

func (r reading) Read(p []byte) (int, error) { return r.Reader.Read(p) }

func framesOf(b []byte) *frames {
	return newFrames(reading{Reader: bytes.NewReader(b)}, newBudget(maxBytes))
}

// message is an answer with values of so many bytes.
func message(values ...int) []byte {
	p := ber.NewSequence("LDAPMessage")
	p.AppendChild(ber.NewInteger(ber.ClassUniversal, ber.TypePrimitive, ber.TagInteger, 7, ""))
	for _, n := range values {
		p.AppendChild(ber.NewString(
			ber.ClassUniversal, ber.TypePrimitive, ber.TagOctetString, string(make([]byte, n)), "",
		))
	}
	return p.Bytes()
}

func TestFramesPassOn(t *testing.T) {
	is := is.New(t)
	three := bytes.Repeat(message(300), 3)
	got, err := io.ReadAll(framesOf(three))
	is.NoErr(err)
	is.Equal(got, three)
	_, err = io.ReadAll(framesOf(three[:len(three)-1]))
	is.True(errors.Is(err, io.ErrUnexpectedEOF))
}

func TestFramesBounds(t *testing.T) {
	is := is.New(t)
	for _, full := range []func(f *frames){
		func(f *frames) {
			f.budget.messages.Store(0)
		}, func(f *frames) { f.budget.bytes.Store(0) }, func(f *frames) { f.budget = newBudget(100) },
	} {
		f := framesOf(message(300))
		full(f)
		_, err := io.ReadAll(f)
		is.True(errors.Is(err, errTooMuch))
		is.True(f.exceeded.Load())
	}
	for name, b := range map[string][]byte{
		"indefinite length": {0x30, 0x80, 0, 0},
		"no sequence":       {0x31, 0x00},
		"nine length bytes": {0x30, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1},
		"127 length bytes":  append([]byte{0x30, 0xff}, make([]byte, 127)...),
		"longer than it is": {0x30, 0x02, 0x04, 0x05},
		"half a head":       {0x30, 0x01, 0x04},
		"a long tag":        {0x30, 0x03, 0x1f, 0x81, 0x00},
		"a length of more":  {0x30, 0x03, 0x04, 0x84, 0x00},
	} {
		_, err := io.ReadAll(framesOf(b))
		if !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzFrames: what passes has as many elements as are allowed, and no more bytes are taken than
// came.
func FuzzFrames(f *testing.F) {
	f.Add(message(300))
	f.Add([]byte{0x30, 0x84, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x30, 0x06, 0x30, 0x02, 0x04, 0x00, 0x05, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := io.ReadAll(framesOf(b))
		if !bytes.HasPrefix(b, got) || err == nil && len(got) != len(b) {
			t.Errorf("%x gave %x, %v", b, got, err)
		}
		_, _ = ber.ReadPacket(framesOf(b)) // nor does it panic
	})
}
