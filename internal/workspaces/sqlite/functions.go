package sqlite

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite looks at its watch between the instructions of a statement, and a call of a function is
// one instruction. Some of its own take time that grows with the product of the lengths of their
// arguments, which is hours for two of 4 MiB, and some collect more memory than the limit of the
// length of values allows. The functions of this file are the same without that; guard refuses
// those that have no replacement here.

type (
	scalarFunc = func(tls *libc.TLS, ctx uintptr, n int32, args uintptr)
	valueFunc  = func(tls *libc.TLS, ctx uintptr)
)

// replaceFunctions registers the functions of this file for a connection.
func replaceFunctions(tls *libc.TLS, handle uintptr) error {
	const flags = sqlite3.SQLITE_UTF8 | sqlite3.SQLITE_DETERMINISTIC | sqlite3.SQLITE_INNOCUOUS
	const jsonFlags = flags | sqlite3.SQLITE_SUBTYPE | sqlite3.SQLITE_RESULT_SUBTYPE
	for _, f := range []struct {
		name string
		args int32
		call uintptr
	}{
		{"instr", 2, pointer[scalarFunc](instr)},
		{"replace", 3, pointer[scalarFunc](replace)}, {"unhex", 2, pointer[scalarFunc](unhex)},
		{"trim", 2, pointer[scalarFunc](trim)},
		{"ltrim", 2, pointer[scalarFunc](ltrim)}, {"rtrim", 2, pointer[scalarFunc](rtrim)},
	} {
		if err := register(tls, f.name, func(name uintptr) int32 {
			return sqlite3.Xsqlite3_create_function_v2(tls, handle, name, f.args, flags, 0, f.call, 0, 0, 0)
		}); err != nil {
			return err
		}
	}
	for _, f := range []struct {
		name         string
		args         int32
		step         uintptr
		final, value uintptr
	}{
		{
			"json_group_array", 1, pointer[scalarFunc](arrayStep), pointer[valueFunc](arrayFinal),
			pointer[valueFunc](arrayValue),
		},
		{
			"json_group_object", 2, pointer[scalarFunc](objectStep), pointer[valueFunc](objectFinal),
			pointer[valueFunc](objectValue),
		},
	} {
		if err := register(tls, f.name, func(name uintptr) int32 {
			return sqlite3.Xsqlite3_create_window_function(
				tls, handle, name, f.args, jsonFlags, 0, f.step, f.final, f.value,
				pointer[scalarFunc](groupInverse), 0,
			)
		}); err != nil {
			return err
		}
	}
	return nil
}

func register(tls *libc.TLS, name string, create func(name uintptr) int32) error {
	text, err := libc.CString(name)
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, text)
	if create(text) != sqlite3.SQLITE_OK {
		return errors.New("sqlite: the function " + name + " cannot be registered")
	}
	return nil
}

// argument returns an argument of a call.
func argument(args uintptr, i int) uintptr {
	at := args + uintptr(i)*unsafe.Sizeof(args)
	return **(**uintptr)(unsafe.Pointer(&at))
}

// memoryAt returns bytes of SQLite's, which are its own again when the function returns.
func memoryAt(p uintptr, n int32) []byte {
	if p == 0 || n <= 0 {
		return nil
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), int(n))
}

// text returns the text of a value, false for NULL.
func text(tls *libc.TLS, value uintptr) ([]byte, bool) {
	p := sqlite3.Xsqlite3_value_text(tls, value)
	return memoryAt(p, sqlite3.Xsqlite3_value_bytes(tls, value)), p != 0
}

// untilNUL returns the beginning of a text before the first NUL, where some functions of SQLite
// end.
func untilNUL(b []byte) []byte {
	if at := bytes.IndexByte(b, 0); at >= 0 {
		return b[:at]
	}
	return b
}

// longest returns the limit of the length of values.
func longest(tls *libc.TLS, ctx uintptr) int {
	return int(sqlite3.Xsqlite3_limit(
		tls, sqlite3.Xsqlite3_context_db_handle(tls, ctx), sqlite3.SQLITE_LIMIT_LENGTH, -1,
	))
}

// copied makes SQLite copy a result.
const copied = ^uintptr(0)

// lend calls a function with bytes in memory that Go does not move.
func lend(tls *libc.TLS, ctx uintptr, b []byte, to func(p uintptr, n int32)) {
	p := libc.Xmalloc(tls, libc.Tsize_t(len(b)+1))
	if p == 0 {
		sqlite3.Xsqlite3_result_error_nomem(tls, ctx)
		return
	}
	defer libc.Xfree(tls, p)
	copy(memoryAt(p, int32(len(b))), b)
	to(p, int32(len(b)))
}

func resultText(tls *libc.TLS, ctx uintptr, b []byte) {
	lend(tls, ctx, b, func(p uintptr, n int32) { sqlite3.Xsqlite3_result_text(tls, ctx, p, n, copied) })
}

func resultBlob(tls *libc.TLS, ctx uintptr, b []byte) {
	lend(tls, ctx, b, func(p uintptr, n int32) { sqlite3.Xsqlite3_result_blob(tls, ctx, p, n, copied) })
}

func resultError(tls *libc.TLS, ctx uintptr, message string) {
	lend(tls, ctx, []byte(message), func(p uintptr, n int32) { sqlite3.Xsqlite3_result_error(tls, ctx, p, n) })
}

// instr is instr(X, Y): where Y is in X, in characters, or in bytes if both are blobs.
func instr(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	x, y := argument(args, 0), argument(args, 1)
	xType, yType := sqlite3.Xsqlite3_value_type(tls, x), sqlite3.Xsqlite3_value_type(tls, y)
	if xType == sqlite3.SQLITE_NULL || yType == sqlite3.SQLITE_NULL {
		return
	}
	blobs := xType == sqlite3.SQLITE_BLOB && yType == sqlite3.SQLITE_BLOB
	bytesOf := func(value uintptr, kind int32) []byte {
		if kind == sqlite3.SQLITE_BLOB { // also beside a text, which then has the same bytes
			return memoryAt(sqlite3.Xsqlite3_value_blob(tls, value), sqlite3.Xsqlite3_value_bytes(tls, value))
		}
		b, _ := text(tls, value)
		return b
	}
	sqlite3.Xsqlite3_result_int(tls, ctx, position(bytesOf(x, xType), bytesOf(y, yType), blobs))
}

// position returns where a needle begins, counted from 1, and 0 if it is not there.
func position(hay, needle []byte, blobs bool) int32 {
	at := 0
	switch {
	case len(needle) == 0:
		return 1
	case !blobs && !utf8.RuneStart(needle[0]): // characters do not begin with that, but for the first
		if !bytes.HasPrefix(hay, needle) {
			return 0
		}
	default:
		at = bytes.Index(hay, needle)
	}
	if at < 0 || blobs {
		return int32(at + 1)
	}
	n := int32(1)
	for i := 1; i <= at; i++ {
		if utf8.RuneStart(hay[i]) {
			n++
		}
	}
	return n
}

// replace is replace(X, Y, Z): X with Z in the places of Y.
func replace(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	in, ok := text(tls, argument(args, 0))
	if !ok {
		return
	}
	from, ok := text(tls, argument(args, 1))
	if !ok {
		return
	}
	if len(from) == 0 || from[0] == 0 {
		resultText(tls, ctx, in)
		return
	}
	to, ok := text(tls, argument(args, 2))
	if !ok {
		return
	}
	if int64(len(in))+int64(bytes.Count(in, from))*int64(len(to)-len(from)) > int64(longest(tls, ctx)) {
		sqlite3.Xsqlite3_result_error_toobig(tls, ctx)
		return
	}
	resultText(tls, ctx, bytes.ReplaceAll(in, from, to))
}

// characters is a set of characters.
type characters []uint64

func newCharacters(all []byte) characters {
	set := make(characters, utf8.MaxRune/64+1)
	for len(all) > 0 {
		c, size := utf8.DecodeRune(all)
		set[c/64] |= 1 << (c % 64)
		all = all[size:]
	}
	return set
}

func (s characters) has(c rune) bool { return s[c/64]&(1<<(c%64)) != 0 }

// fewCharacters is how many bytes of characters are looked through one by one.
const fewCharacters = 64

// among returns a function that reports whether a character is one of some.
func among(all []byte) func(c rune) bool {
	if len(all) <= fewCharacters {
		return func(c rune) bool { return bytes.ContainsRune(all, c) }
	}
	return newCharacters(all).has
}

// trimmed is trim(X, Y) and its like: X without the characters of Y at its ends.
func trimmed(tls *libc.TLS, ctx, args uintptr, trim func(s []byte, f func(c rune) bool) []byte) {
	in, ok := text(tls, argument(args, 0))
	if !ok {
		return
	}
	if set, ok := text(tls, argument(args, 1)); ok {
		resultText(tls, ctx, trim(in, among(untilNUL(set))))
	}
}

func trim(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) { trimmed(tls, ctx, args, bytes.TrimFunc) }
func ltrim(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	trimmed(tls, ctx, args, bytes.TrimLeftFunc)
}
func rtrim(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	trimmed(tls, ctx, args, bytes.TrimRightFunc)
}

// unhex is unhex(X, Y): the bytes that X has as pairs of hexadecimal digits, between which there
// may be characters of Y.
func unhex(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	passed, ok := text(tls, argument(args, 1))
	if !ok {
		return
	}
	in, ok := text(tls, argument(args, 0))
	if !ok {
		return
	}
	in = untilNUL(in)
	passes, out := among(passed), make([]byte, 0, len(in)/2)
	for len(in) > 0 {
		high, ok := digit(in[0])
		if !ok {
			c, size := utf8.DecodeRune(in)
			if !passes(c) {
				return
			}
			in = in[size:]
			continue
		}
		if len(in) < 2 {
			return
		}
		low, ok := digit(in[1])
		if !ok {
			return
		}
		out, in = append(out, high<<4|low), in[2:]
	}
	resultBlob(tls, ctx, out)
}

func digit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// group is the JSON of the rows of an aggregate function, without brackets.
type group struct {
	text  []byte // the elements, each with a comma behind it
	sizes []int  // of the elements
	long  bool   // there were more than the limit allows
}

// groups are those that are collected at the moment, by the numbers that SQLite keeps for them.
var (
	groups    sync.Map
	lastGroup atomic.Uint64
)

// groupOf returns the group of a call. If there were no rows it is made, or nil without make.
func groupOf(tls *libc.TLS, ctx uintptr, make bool) (g *group, number *uint64) {
	size := int32(0)
	if make {
		size = 8
	}
	p := sqlite3.Xsqlite3_aggregate_context(tls, ctx, size)
	if p == 0 {
		return nil, nil
	}
	number = *(**uint64)(unsafe.Pointer(&p))
	if *number == 0 {
		*number = lastGroup.Add(1)
		groups.Store(*number, &group{})
	}
	found, _ := groups.Load(*number)
	g, _ = found.(*group)
	return g, number
}

// add adds an element, which JSON appends to what it gets.
func (g *group) add(tls *libc.TLS, ctx uintptr, json func(to []byte) ([]byte, bool)) {
	before := len(g.text)
	to, ok := json(g.text)
	if !ok {
		resultError(tls, ctx, "JSON cannot hold BLOB values")
		return
	}
	g.text = append(to, ',')
	g.sizes = append(g.sizes, len(g.text)-before)
	if len(g.text) > longest(tls, ctx) {
		g.text, g.sizes, g.long = nil, nil, true
		sqlite3.Xsqlite3_result_error_toobig(tls, ctx)
	}
}

func arrayStep(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	if g, _ := groupOf(tls, ctx, true); g != nil && !g.long {
		g.add(tls, ctx, func(to []byte) ([]byte, bool) { return appendJSON(tls, to, argument(args, 0)) })
	}
}

func objectStep(tls *libc.TLS, ctx uintptr, _ int32, args uintptr) {
	g, _ := groupOf(tls, ctx, true)
	name, ok := text(tls, argument(args, 0))
	if g == nil || g.long || !ok {
		if g != nil && !g.long {
			g.sizes = append(g.sizes, 0)
		}
		return
	}
	g.add(tls, ctx, func(to []byte) ([]byte, bool) {
		return appendJSON(tls, append(appendString(to, untilNUL(name)), ':'), argument(args, 1))
	})
}

// groupInverse removes the first element, for a window that moves on.
func groupInverse(tls *libc.TLS, ctx uintptr, _ int32, _ uintptr) {
	if g, _ := groupOf(tls, ctx, true); g != nil && len(g.sizes) > 0 {
		g.text, g.sizes = append(g.text[:0], g.text[g.sizes[0]:]...), g.sizes[1:]
	}
}

// result sets the JSON of a group as the result. The last call of a group ends it.
func result(tls *libc.TLS, ctx uintptr, open, end byte, last bool) {
	g, number := groupOf(tls, ctx, false)
	if number != nil && last {
		groups.Delete(*number)
	}
	json := []byte{open}
	if g != nil {
		if g.long {
			sqlite3.Xsqlite3_result_error_toobig(tls, ctx)
			return
		}
		json = append(json, bytes.TrimSuffix(g.text, []byte{','})...)
	}
	resultText(tls, ctx, append(json, end))
	sqlite3.Xsqlite3_result_subtype(tls, ctx, jsonSubtype)
}

func arrayFinal(tls *libc.TLS, ctx uintptr)  { result(tls, ctx, '[', ']', true) }
func arrayValue(tls *libc.TLS, ctx uintptr)  { result(tls, ctx, '[', ']', false) }
func objectFinal(tls *libc.TLS, ctx uintptr) { result(tls, ctx, '{', '}', true) }
func objectValue(tls *libc.TLS, ctx uintptr) { result(tls, ctx, '{', '}', false) }

// jsonSubtype is the subtype of texts that are JSON.
const jsonSubtype = 'J'

// appendJSON appends the JSON of a value, false for a blob.
func appendJSON(tls *libc.TLS, to []byte, value uintptr) ([]byte, bool) {
	kind := sqlite3.Xsqlite3_value_type(tls, value)
	b, _ := text(tls, value)
	switch kind {
	case sqlite3.SQLITE_NULL:
		return append(to, "null"...), true
	case sqlite3.SQLITE_BLOB:
		return to, false
	case sqlite3.SQLITE_FLOAT:
		switch string(b) {
		case "Inf":
			return append(to, "9.0e+999"...), true
		case "-Inf":
			return append(to, "-9.0e+999"...), true
		}
		return append(to, b...), true
	case sqlite3.SQLITE_TEXT:
		if sqlite3.Xsqlite3_value_subtype(tls, value) != jsonSubtype {
			return appendString(to, b), true
		}
	}
	return append(to, b...), true
}

// appendString appends a text as a string of JSON.
func appendString(to, s []byte) []byte {
	to = append(to, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c == '\b':
			to = append(to, `\b`...)
		case c == '\f':
			to = append(to, `\f`...)
		case c == '\n':
			to = append(to, `\n`...)
		case c == '\r':
			to = append(to, `\r`...)
		case c == '\t':
			to = append(to, `\t`...)
		case c < ' ':
			const digits = "0123456789abcdef"
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
