package quickjs

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

func nativeUTF8(m *vm, in arguments) value {
	return m.newBuffer([]byte(in.s[0]))
}

// nativeText decodes bytes: bytes, encoding, whether a fault is an exception, whether a byte order
// mark stays.
func nativeText(m *vm, in arguments) value {
	b, name := in.b[0], in.s[0]
	fatal, keepMark := isTrue(in.all[2]), isTrue(in.all[3])
	if fatal && name == "utf-8" && !utf8.Valid(b) {
		return m.throw("The encoded data was not valid")
	}
	e := encodingOf(name)
	if !utf8.Valid(b) || name != "utf-8" {
		var err error
		if b, err = e.NewDecoder().Bytes(b); err != nil || fatal && strings.ContainsRune(string(b), utf8.RuneError) {
			return m.throw("The encoded data was not valid")
		}
	}
	s := string(b)
	if !keepMark && strings.HasPrefix(name, "utf-") {
		s = strings.TrimPrefix(s, "\ufeff")
	}
	return m.newString(s)
}

// encodingOf returns a character encoding by its canonical name.
func encodingOf(name string) encoding.Encoding {
	switch name {
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	}
	if e, err := htmlindex.Get(name); err == nil && name != "utf-8" {
		return e
	}
	return unicode.UTF8
}

// nativeEncodingName returns the canonical name of a character encoding, undefined for one that is
// not known.
func nativeEncodingName(m *vm, in arguments) value {
	e, err := htmlindex.Get(in.s[0])
	if err != nil {
		return undefined()
	}
	name, err := htmlindex.Name(e)
	if err != nil || name == "replacement" || name == "x-user-defined" {
		return undefined()
	}
	return m.newString(name)
}

// nativeEncode encodes bytes as text: bytes, encoding.
func nativeEncode(m *vm, in arguments) value {
	switch name, b := in.s[0], in.b[0]; name {
	case "hex":
		return m.newString(hex.EncodeToString(b))
	case "base64":
		return m.newString(base64.StdEncoding.EncodeToString(b))
	case "base64url":
		return m.newString(base64.RawURLEncoding.EncodeToString(b))
	default:
		return m.throw("the encoding %s is not supported: use hex, base64, base64url or bytes", name)
	}
}

// fromBase64 decodes either alphabet, with or without padding, and ignores white space.
func fromBase64(s string) ([]byte, error) {
	s = strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\n', '\f', '\r':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, s)
	if len(s)%4 == 0 {
		s = strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	}
	return base64.RawStdEncoding.DecodeString(s)
}

func nativeDecode(m *vm, in arguments) value {
	b, err := fromBase64(in.s[0])
	if err != nil {
		return m.throw("the text is not base64")
	}
	return m.newBuffer(b)
}

func nativeAtob(m *vm, in arguments) value {
	s := in.s[0]
	b, err := fromBase64(s)
	if err != nil || strings.ContainsAny(s, "-_") {
		return m.throw("The string to be decoded is not correctly encoded")
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return m.newString(string(runes))
}

func nativeBtoa(m *vm, in arguments) value {
	s := in.s[0]
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return m.throw("The string to be encoded contains characters outside of the Latin1 range")
		}
		b = append(b, byte(r))
	}
	return m.newString(base64.StdEncoding.EncodeToString(b))
}

func nativeTrimEnd(m *vm, in arguments) value {
	return m.newString(strings.TrimRight(in.s[0], "\n"))
}

// nativeCompress compresses bytes: format, bytes.
func nativeCompress(m *vm, in arguments) value {
	var b bytes.Buffer
	var w io.WriteCloser
	switch in.s[0] {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	default:
		w, _ = flate.NewWriter(&b, flate.DefaultCompression) // fails for an unknown level only
	}
	_, _ = w.Write(in.b[0]) // into memory
	_ = w.Close()
	return m.newBuffer(b.Bytes())
}

// nativeDecompress decompresses bytes: format, bytes. What the script's memory does not hold is an
// error.
func nativeDecompress(m *vm, in arguments) value {
	name := in.s[0]
	packed := bytes.NewReader(in.b[0])
	var r io.Reader
	var err error
	switch name {
	case "gzip":
		r, err = gzip.NewReader(packed)
	case "deflate":
		r, err = zlib.NewReader(packed)
	default:
		r = flate.NewReader(packed)
	}
	most := max(m.heap.limit-m.heap.used, 0)
	var plain []byte
	if err == nil {
		plain, err = io.ReadAll(io.LimitReader(r, most+1))
	}
	switch {
	case err != nil:
		return m.throw("the data are not %s, or they are damaged", name)
	case int64(len(plain)) > most:
		return m.throw("the decompressed data need more memory than the script has")
	}
	return m.newBuffer(plain)
}
