package quickjs

import (
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// native is a function of Go that the prelude can call. Scripts cannot reach it.
type native struct {
	name string
	// for each argument that is converted before the call: s to a string, b to bytes; - for one
	// that is not
	takes string
	f     func(m *vm, in arguments) value
}

// arguments are what a native is called with. Those that are missing are undefined.
type arguments struct {
	all []value
	s   []string // those that the native takes as strings, in their order
	b   [][]byte // and as bytes
}

// natives are the functions of the object "native" in the prelude.
var natives = []native{
	{"log", "", nativeLog},
	{"call", "", nativeCall},
	{"callSync", "", nativeCallSync},
	{"respond", "", nativeRespond},
	{"now", "", nativeNow},
	{"utf8", "s", nativeUTF8},
	{"text", "bs", nativeText},
	{"encode", "bs", nativeEncode},
	{"decode", "s", nativeDecode},
	{"atob", "s", nativeAtob},
	{"btoa", "s", nativeBtoa},
	{"hash", "sb", nativeHash},
	{"hmac", "sbb", nativeHMAC},
	{"verifyHmac", "sbbs", nativeVerifyHMAC},
	{"equal", "bb", nativeEqual},
	{"random", "", nativeRandom},
	{"uuid", "", nativeUUID},
	{"verify", "sbbb", nativeVerify},
	{"encrypt", "bb", nativeEncrypt},
	{"decrypt", "bs", nativeDecrypt},
	{"url", "s", nativeURL},
	{"urlSet", "sss", nativeURLSet},
	{"unescape", "s", nativeUnescape},
	{"classOf", "", nativeClassOf},
	{"trimEnd", "s", nativeTrimEnd},
	{"load", "s", nativeLoad},
	{"encodingName", "s", nativeEncodingName},
	{"compress", "sb", nativeCompress},
	{"decompress", "sb", nativeDecompress},
	{"tag", "s", nativeTag},
	{"locale", "s", nativeLocale},
	{"localeData", "s", nativeLocaleData},
	{"zone", "s", nativeZone},
	{"offset", "", nativeOffset},
	{"zoneAbbreviation", "", nativeZoneAbbreviation},
	{"compare", "ssss", nativeCompare},
	{"plural", "s-ss", nativePlural},
	{"pluralCategories", "s", nativePluralCategories},
	{"fold", "ss", nativeFold},
	{"importKey", "sbss", nativeImportKey},
	{"exportKey", "ssb", nativeExportKey},
	{"generateKey", "ss", nativeGenerateKey},
	{"sign", "ssbb", nativeSign},
	{"verifyWith", "ssbbb", nativeVerifyWith},
	{"aes", "s-bbbb", nativeAES},
	{"oaep", "-sbbb", nativeOAEP},
	{"derive", "ssbbb", nativeDerive},
}

// engineCall is what the engine calls for each native function.
func engineCall(_ *libc.TLS, _ uintptr, _ value, argc int32, argv uintptr, magic int32) value {
	in := arguments{all: make([]value, max(int(argc), 8))}
	for i := range in.all {
		if i < int(argc) {
			in.all[i] = *(*value)(pointer(argv + uintptr(i)*unsafe.Sizeof(in.all[i])))
		} else {
			in.all[i] = undefined()
		}
	}
	n := natives[magic]
	if !machine.convert(&in, n.takes) {
		return exception()
	}
	return n.f(machine, in)
}

// convert converts the arguments that a native takes as strings and as bytes, the strings first, as
// their conversion may run code of the script. It reports false if one threw.
func (m *vm) convert(in *arguments, takes string) bool {
	for i, how := range takes {
		if how == 's' {
			s, ok := m.stringOf(in.all[i])
			if !ok {
				return false
			}
			in.s = append(in.s, s)
		}
	}
	for i, how := range takes {
		if how == 'b' {
			b, ok := m.bytesOf(in.all[i])
			if !ok {
				return false
			}
			in.b = append(in.b, b)
		}
	}
	return true
}

func undefined() value { return tagged(lib.EJS_TAG_UNDEFINED) }

func exception() value { return tagged(lib.EJS_TAG_EXCEPTION) }

// orThrow returns bytes as a value, or throws an error.
func (m *vm) orThrow(b []byte, err error) value {
	if err != nil {
		return m.throw("%s", err)
	}
	return m.newBuffer(b)
}

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

func isTrue(v value) bool { return v == newBool(true) }

// nativeClassOf returns the kind of an object, whatever its prototype is.
func nativeClassOf(m *vm, in arguments) value {
	name := "Other"
	switch id := int(lib.XJS_GetClassID(m.tls, in.all[0])); id {
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
