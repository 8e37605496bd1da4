package quickjs

import (
	"unsafe"

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

func isTrue(v value) bool { return v == newBool(true) }

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
