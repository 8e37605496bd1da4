// Package guard passes the condition of a conditional write to the store, and computes the versions
// of rows in such conditions.
//
// httpapi makes a guard from the headers If-Match and If-None-Match. A store checks it after it has
// locked the row, so that of several writers with the same version one succeeds. Nouns compute
// versions.
package guard

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
)

// Guard is the condition of one write.
type Guard struct {
	Row     string // name of the noun whose row is written, such as "color"
	Fits    func(version string, exists bool) bool
	checked bool // a row has met the condition
}

type key struct{}

// With returns a context that carries g.
func With(ctx context.Context, g *Guard) context.Context { return context.WithValue(ctx, key{}, g) }

// Of returns the guard of a write to a row of a noun, or nil.
func Of(ctx context.Context, row string) *Guard {
	g, _ := ctx.Value(key{}).(*Guard)
	if g == nil || g.checked || g.Row != row {
		return nil
	}
	return g
}

// Versioned is a row with a version.
type Versioned interface{ Version() string }

// Check checks the guard in ctx against the row before the write. The caller must have locked the
// row. Without a guard for rows of this noun Check returns nil. It returns errs.Stale if the
// condition is not met.
func Check(ctx context.Context, row string, v Versioned) error {
	g := Of(ctx, row)
	if g == nil {
		return nil
	}
	return g.check(v.Version(), true)
}

// Missing checks the guard against a row that does not exist. It returns nil if a row has already
// met the condition.
func (g *Guard) Missing() error {
	if g == nil || g.checked {
		return nil
	}
	return g.check("", false)
}

func (g *Guard) check(version string, exists bool) error {
	if !g.Fits(version, exists) {
		return Stale()
	}
	g.checked = true
	return nil
}

// Stale returns the error of a write whose condition is not met.
func Stale() error {
	return errs.New(errs.Stale, "The resource is not as the headers If-Match and If-None-Match demand: read it again.")
}

// long is the number of bytes from which a part of a version is hashed separately, so that it is
// not copied.
const long = 1 << 10

// Version returns the version of a row with the given fields: strings, bools, ints, times, JSON,
// pointers to strings and to times, and lists of strings. Rows that differ in a field have
// different versions.
func Version(fields ...any) string {
	var scratch [512]byte
	b := scratch[:0]
	for _, f := range fields {
		switch f := f.(type) {
		case string:
			b = appendString(b, f)
		case *string:
			if f == nil {
				b = append(b, 0)
			} else {
				b = appendString(append(b, 1), *f)
			}
		case bool:
			if f {
				b = append(b, 1)
			} else {
				b = append(b, 0)
			}
		case int:
			b = binary.AppendVarint(b, int64(f))
		case int64:
			b = binary.AppendVarint(b, f)
		case time.Time:
			b = binary.AppendVarint(b, f.UnixMicro())
		case *time.Time:
			if f == nil {
				b = append(b, 0)
			} else {
				b = binary.AppendVarint(append(b, 1), f.UnixMicro())
			}
		case json.RawMessage:
			if len(f) <= long {
				b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
			} else {
				sum := sha256.Sum256(f)
				b = append(binary.AppendUvarint(b, uint64(len(f))), sum[:]...)
			}
		case []string:
			b = binary.AppendUvarint(b, uint64(len(f)))
			for _, s := range f {
				b = appendString(b, s)
			}
		default:
			panic("guard: a field of a type that has no version")
		}
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
