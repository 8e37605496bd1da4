package quickjs

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/google/uuid"
	whatwg "github.com/nlnwa/whatwg-url/url"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// native is a function of Go that the prelude can call. Scripts cannot reach it.
type native struct {
	name string
	f    func(m *vm, args []value) value
}

// natives are the functions of the object "native" in the prelude.
var natives = []native{
	{"log", nativeLog}, {"call", nativeCall}, {"callSync", nativeCallSync}, {"respond", nativeRespond}, {"now", nativeNow},
	{"utf8", nativeUTF8}, {"text", nativeText}, {"encode", nativeEncode}, {"decode", nativeDecode}, {"atob", nativeAtob}, {"btoa", nativeBtoa},
	{"hash", nativeHash}, {"hmac", nativeHMAC}, {"verifyHmac", nativeVerifyHMAC}, {"equal", nativeEqual}, {"random", nativeRandom}, {"uuid", nativeUUID},
	{"verify", nativeVerify}, {"encrypt", nativeEncrypt}, {"decrypt", nativeDecrypt},
	{"url", nativeURL}, {"urlSet", nativeURLSet}, {"unescape", nativeUnescape},
	{"classOf", nativeClassOf}, {"trimEnd", nativeTrimEnd}, {"load", nativeLoad}, {"encodingName", nativeEncodingName}, {"compress", nativeCompress}, {"decompress", nativeDecompress},
	{"tag", nativeTag}, {"locale", nativeLocale}, {"localeData", nativeLocaleData}, {"zone", nativeZone}, {"offset", nativeOffset}, {"zoneAbbreviation", nativeZoneAbbreviation},
	{"compare", nativeCompare}, {"plural", nativePlural}, {"pluralCategories", nativePluralCategories}, {"fold", nativeFold},
	{"importKey", nativeImportKey}, {"exportKey", nativeExportKey}, {"generateKey", nativeGenerateKey}, {"sign", nativeSign}, {"verifyWith", nativeVerifyWith}, {"aes", nativeAES}, {"oaep", nativeOAEP}, {"derive", nativeDerive},
}

// engineCall is what the engine calls for each native function. Arguments that are missing are undefined.
func engineCall(_ *libc.TLS, _ uintptr, _ value, argc int32, argv uintptr, magic int32) value {
	args := make([]value, max(int(argc), 8))
	for i := range args {
		if i < int(argc) {
			args[i] = *(*value)(pointer(argv + uintptr(i)*unsafe.Sizeof(args[i])))
		} else {
			args[i] = undefined()
		}
	}
	return natives[magic].f(machine, args)
}

func undefined() value { return tagged(lib.EJS_TAG_UNDEFINED) }

func exception() value { return tagged(lib.EJS_TAG_EXCEPTION) }

// strings returns the arguments as strings; false if the conversion of one threw.
func (m *vm) strings(args ...value) ([]string, bool) {
	all := make([]string, len(args))
	for i, a := range args {
		var ok bool
		if all[i], ok = m.stringOf(a); !ok {
			return nil, false
		}
	}
	return all, true
}

// data returns the bytes of the arguments; false if one has none, with an exception.
func (m *vm) data(args ...value) ([][]byte, bool) {
	all := make([][]byte, len(args))
	for i, a := range args {
		var ok bool
		if all[i], ok = m.bytesOf(a); !ok {
			return nil, false
		}
	}
	return all, true
}

// Bytes and text.

func nativeUTF8(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	return m.newBuffer([]byte(s))
}

// nativeText decodes bytes: bytes, encoding, whether a fault is an exception, whether a byte order mark stays.
func nativeText(m *vm, args []value) value {
	b, ok := m.bytesOf(args[0])
	if !ok {
		return exception()
	}
	name, _ := m.stringOf(args[1])
	fatal, keepMark := isTrue(args[2]), isTrue(args[3])
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
func nativeEncodingName(m *vm, args []value) value {
	s, ok := m.strings(args[0])
	if !ok {
		return exception()
	}
	e, err := htmlindex.Get(s[0])
	if err != nil {
		return undefined()
	}
	name, err := htmlindex.Name(e)
	if err != nil || name == "replacement" || name == "x-user-defined" {
		return undefined()
	}
	return m.newString(name)
}

// Compression.

// nativeCompress compresses bytes: format, bytes.
func nativeCompress(m *vm, args []value) value {
	name, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	data, ok := m.data(args[1])
	if !ok {
		return exception()
	}
	var b bytes.Buffer
	var w io.WriteCloser
	switch name {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	default:
		w, _ = flate.NewWriter(&b, flate.DefaultCompression) // fails for an unknown level only
	}
	_, _ = w.Write(data[0]) // into memory
	_ = w.Close()
	return m.newBuffer(b.Bytes())
}

// nativeDecompress decompresses bytes: format, bytes. What the script's memory does not hold is an
// error.
func nativeDecompress(m *vm, args []value) value {
	name, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	data, ok := m.data(args[1])
	if !ok {
		return exception()
	}
	in := bytes.NewReader(data[0])
	var r io.Reader
	var err error
	switch name {
	case "gzip":
		r, err = gzip.NewReader(in)
	case "deflate":
		r, err = zlib.NewReader(in)
	default:
		r = flate.NewReader(in)
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

func isTrue(v value) bool { return v == newBool(true) }

// nativeEncode encodes bytes as text: bytes, encoding.
func nativeEncode(m *vm, args []value) value {
	b, ok := m.bytesOf(args[0])
	if !ok {
		return exception()
	}
	name, ok := m.stringOf(args[1])
	switch {
	case !ok:
		return exception()
	case name == "hex":
		return m.newString(hex.EncodeToString(b))
	case name == "base64":
		return m.newString(base64.StdEncoding.EncodeToString(b))
	case name == "base64url":
		return m.newString(base64.RawURLEncoding.EncodeToString(b))
	}
	return m.throw("the encoding %s is not supported: use hex, base64, base64url or bytes", name)
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

func nativeDecode(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	b, err := fromBase64(s)
	if err != nil {
		return m.throw("the text is not base64")
	}
	return m.newBuffer(b)
}

func nativeAtob(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
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

func nativeBtoa(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return m.throw("The string to be encoded contains characters outside of the Latin1 range")
		}
		b = append(b, byte(r))
	}
	return m.newString(base64.StdEncoding.EncodeToString(b))
}

func nativeTrimEnd(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	return m.newString(strings.TrimRight(s, "\n"))
}

// nativeUnescape replaces percent signs and the two digits after them by bytes; what is not UTF-8 then becomes U+FFFD.
func nativeUnescape(m *vm, args []value) value {
	s, ok := m.stringOf(args[0])
	if !ok {
		return exception()
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, c...)
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	b, _ = unicode.UTF8.NewDecoder().Bytes(b)
	return m.newString(string(b))
}

// Cryptography.

// algorithms are the digests by name.
var algorithms = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224, "sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New,
}

// algorithm returns the digest that a script names, such as "sha256" or "SHA-256", or an exception.
func (m *vm) algorithm(v value) (func() hash.Hash, value) {
	name, ok := m.stringOf(v)
	if !ok {
		return nil, exception()
	}
	if f := algorithms[strings.ReplaceAll(strings.ToLower(name), "-", "")]; f != nil {
		return f, undefined()
	}
	return nil, m.throw("the algorithm %s is not supported: use md5, sha1, sha224, sha256, sha384 or sha512", name)
}

func nativeHash(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	h := f()
	h.Write(data[0])
	return m.newBuffer(h.Sum(nil))
}

func nativeHMAC(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1], args[2])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	h := hmac.New(f, data[0])
	h.Write(data[1])
	return m.newBuffer(h.Sum(nil))
}

// nativeVerifyHMAC compares in constant time: algorithm, key, data, signature in hex or base64, also after "sha256=" and its like.
func nativeVerifyHMAC(m *vm, args []value) value {
	f, e := m.algorithm(args[0])
	data, ok := m.data(args[1], args[2])
	switch {
	case f == nil:
		return e
	case !ok:
		return exception()
	}
	name, _ := m.stringOf(args[0])
	signature, _ := m.stringOf(args[3])
	signature = strings.TrimSpace(signature)
	if prefix := strings.ToLower(name) + "="; len(signature) > len(prefix) && strings.EqualFold(signature[:len(prefix)], prefix) {
		signature = signature[len(prefix):]
	}
	h := hmac.New(f, data[0])
	h.Write(data[1])
	want := h.Sum(nil)
	got, err := hex.DecodeString(signature)
	if err != nil || len(got) != len(want) {
		got, _ = fromBase64(signature)
	}
	return newBool(hmac.Equal(got, want))
}

func nativeEqual(m *vm, args []value) value {
	data, ok := m.data(args[0], args[1])
	if !ok {
		return exception()
	}
	a, b := sha256.Sum256(data[0]), sha256.Sum256(data[1])
	return newBool(subtle.ConstantTimeCompare(a[:], b[:]) == 1)
}

func nativeRandom(m *vm, args []value) value {
	n, ok := m.number(args[0])
	if !ok {
		return exception()
	}
	if !(n >= 0 && n <= 65536) {
		return m.throw("random bytes are made 65536 at once at most")
	}
	b := make([]byte, int(n))
	rand.Read(b)
	return m.newBuffer(b)
}

func nativeUUID(m *vm, _ []value) value { return m.newString(uuid.NewString()) }

// URLs.

// nativeURL parses a URL, and a base if it is not undefined, and returns its parts as JSON, or undefined if it is none.
func nativeURL(m *vm, args []value) value {
	s, ok := m.strings(args[0])
	if !ok {
		return exception()
	}
	var u *whatwg.Url
	var err error
	if isUndefined(args[1]) {
		u, err = whatwg.Parse(s[0])
	} else {
		base, ok := m.stringOf(args[1])
		if !ok {
			return exception()
		}
		u, err = whatwg.ParseRef(base, s[0])
	}
	if err != nil {
		return undefined()
	}
	return m.urlParts(u)
}

// nativeURLSet changes a part: href, name, value. It returns the parts as JSON.
func nativeURLSet(m *vm, args []value) value {
	s, ok := m.strings(args[:3]...)
	if !ok {
		return exception()
	}
	u, err := whatwg.Parse(s[0])
	if err != nil {
		return undefined()
	}
	set := map[string]func(string){
		"protocol": u.SetProtocol, "username": u.SetUsername, "password": u.SetPassword, "host": u.SetHost, "hostname": u.SetHostname,
		"port": u.SetPort, "pathname": u.SetPathname, "search": u.SetSearch, "hash": u.SetHash,
	}
	set[s[1]](s[2])
	return m.urlParts(u)
}

func (m *vm) urlParts(u *whatwg.Url) value {
	origin := "null"
	switch u.Scheme() {
	case "http", "https", "ws", "wss", "ftp":
		origin = u.Protocol() + "//" + u.Host()
	case "blob":
		if inner, err := url.Parse(u.Pathname()); err == nil && (inner.Scheme == "http" || inner.Scheme == "https") {
			origin = inner.Scheme + "://" + inner.Host
		}
	}
	parts, _ := json.Marshal(map[string]string{ // strings can always be encoded
		"href": u.Href(false), "origin": origin, "protocol": u.Protocol(), "username": u.Username(), "password": u.Password(),
		"host": u.Host(), "hostname": u.Hostname(), "port": u.Port(), "pathname": u.Pathname(), "search": u.Search(), "hash": u.Hash(),
	})
	return m.newString(string(parts))
}

// Values.

// nativeClassOf returns the kind of an object, whatever its prototype is.
func nativeClassOf(m *vm, args []value) value {
	name := "Other"
	switch id := int(lib.XJS_GetClassID(m.tls, args[0])); id {
	case lib.EJS_CLASS_OBJECT, lib.EJS_CLASS_ARGUMENTS, lib.EJS_CLASS_MAPPED_ARGUMENTS, lib.EJS_CLASS_MODULE_NS:
		name = "Object"
	case lib.EJS_CLASS_ARRAY:
		name = "Array"
	case lib.EJS_CLASS_ERROR:
		name = "Error"
	case lib.EJS_CLASS_NUMBER:
		name = "Number"
	case lib.EJS_CLASS_STRING:
		name = "String"
	case lib.EJS_CLASS_BOOLEAN:
		name = "Boolean"
	case lib.EJS_CLASS_BIG_INT:
		name = "BigInt"
	case lib.EJS_CLASS_DATE:
		name = "Date"
	case lib.EJS_CLASS_REGEXP:
		name = "RegExp"
	case lib.EJS_CLASS_ARRAY_BUFFER:
		name = "ArrayBuffer"
	case lib.EJS_CLASS_MAP:
		name = "Map"
	case lib.EJS_CLASS_SET:
		name = "Set"
	case lib.EJS_CLASS_PROMISE:
		name = "Promise"
	case lib.EJS_CLASS_PROXY:
		name = "Proxy"
	default:
		if id >= lib.EJS_CLASS_UINT8C_ARRAY && id <= lib.EJS_CLASS_DATAVIEW {
			name = "View"
		}
	}
	return m.newString(name)
}

// The invocation.

func nativeNow(m *vm, _ []value) value {
	if m.run == nil {
		return m.newNumber(0)
	}
	return m.newNumber(float64(time.Since(m.run.started).Microseconds()) / 1000)
}

func nativeLog(m *vm, args []value) value {
	level, _ := m.number(args[0])
	text, ok := m.stringOf(args[1])
	if !ok {
		return exception()
	}
	if m.run != nil {
		m.run.logs.add(int(level), text)
	}
	return undefined()
}

// nativeCall calls a function of the host, name and arguments as JSON, and returns the number of the call.
func nativeCall(m *vm, args []value) value {
	id, e := m.sendCall(args)
	if id == 0 {
		return e
	}
	return m.newNumber(float64(id))
}

// sendCall sends a call and returns its number, or 0 and an exception.
func (m *vm) sendCall(args []value) (int, value) {
	s, ok := m.strings(args[:2]...)
	if !ok {
		return 0, exception()
	}
	r := m.run
	switch {
	case r == nil:
		return 0, m.throw("no function of the host can be called yet")
	case !slices.Contains(r.functions, s[0]):
		return 0, m.throw("there is no function %s", s[0])
	case r.calls >= r.limits.Calls:
		return 0, m.throw("more than %d calls of the host's functions", r.limits.Calls)
	case len(s[1]) > r.limits.CallBytes:
		return 0, m.throw("the arguments of %s have %d bytes of JSON, where %d are allowed", s[0], len(s[1]), r.limits.CallBytes)
	}
	r.calls++
	r.inflight++
	r.logs.flush()
	r.send(kindCall, newEncoder(32+len(s[1])).int(r.calls).string(s[0]).string(s[1]))
	return r.calls, undefined()
}

// nativeCallSync calls a function of the host and returns an array: whether it failed, JSON or message, code.
func nativeCallSync(m *vm, args []value) value {
	id, e := m.sendCall(args)
	if id == 0 {
		return e
	}
	a, ok := m.run.await(id)
	if !ok {
		return m.throw("interrupted") // the next instruction stops the script
	}
	m.run.inflight--
	list := lib.XJS_NewArray(m.tls, m.ctx)
	for i, v := range []value{newBool(a.failed), m.optional(a.value), m.newString(a.code)} {
		lib.XJS_SetPropertyUint32(m.tls, m.ctx, list, uint32(i), v)
	}
	return list
}

// optional returns b as a string, and undefined for nil.
func (m *vm) optional(b []byte) value {
	if b == nil {
		return undefined()
	}
	return m.newString(string(b))
}

// nativeRespond sends an early result: its JSON, or undefined. Only the first one counts.
func nativeRespond(m *vm, args []value) value {
	r := m.run
	if r == nil || r.responded {
		return undefined()
	}
	var b []byte
	if isString(args[0]) {
		s, ok := m.stringOf(args[0])
		if !ok {
			return exception()
		}
		if len(s) > r.limits.Output {
			return m.throw("the response has %d bytes of JSON, where %d are allowed", len(s), r.limits.Output)
		}
		b = []byte(s)
	}
	r.responded = true
	r.logs.flush()
	r.send(kindRespond, newEncoder(16+len(b)).optional(b))
	return undefined()
}
