//go:build !(386 || arm)

package quickjs

import (
	"unsafe"

	lib "modernc.org/libquickjs"
)

// value is a value of the engine: a tag and a payload.
type value = lib.TJSValue

func tagged(tag int32) value { return value{Ftag: int64(tag)} }

func tagOf(v value) int32 { return int32(v.Ftag) }

func newBool(b bool) value {
	v := tagged(lib.EJS_TAG_BOOL)
	if b {
		*(*uint64)(unsafe.Pointer(&v)) = 1
	}
	return v
}

// object returns the address of what v refers to.
func object(v value) uintptr { return *(*uintptr)(unsafe.Pointer(&v)) }
