//go:build 386 || arm

package quickjs

import lib "modernc.org/libquickjs"

// value is a value of the engine: a tag above a payload.
type value = lib.TJSValue

func tagged(tag int32) value { return value(uint32(tag)) << 32 }

func tagOf(v value) int32 { return int32(v >> 32) }

func newBool(b bool) value {
	v := tagged(lib.EJS_TAG_BOOL)
	if b {
		v |= 1
	}
	return v
}

// object returns the address of what v refers to.
func object(v value) uintptr { return uintptr(uint32(v)) }
