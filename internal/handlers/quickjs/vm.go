package quickjs

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

//go:embed prelude.js
var prelude string

// A vm is the engine of a child, with the state of the one invocation that it runs. It uses the
// engine's own functions and not those of modernc.org/quickjs, which hide the allocator: with an
// own one (see heap), a fresh global state is a copy of some hundred kilobytes in place of the work
// of making it, and memory is counted exactly.
//
// No reference to a value needs to be freed: the next restore does it.
type vm struct {
	tls     *libc.TLS
	heap    *heap
	rt, ctx uintptr
	scratch uintptr // a string for the engine, see text
	size    int     // of scratch
	out     uintptr // where the engine's functions put numbers and arguments

	lazy map[string]*bytecode // parts of the prelude that scripts have used, by name
	intl international

	base                               *snapshot
	start, settle, next, fire, explain value // functions of the prelude, in all snapshots

	run     *run      // what runs, nil for nothing
	current *snapshot // what the heap is a copy of, nil once something has run
}

// prepared makes the heap a copy of s unless it is one.
func (m *vm) prepared(s *snapshot) {
	if m.current != s {
		m.heap.restore(s)
		m.current = s
	}
}

// machine is the vm of this process, for the functions that the engine calls. Only children have
// one.
var machine *vm

// outSize is the size of vm.out: three numbers, eight arguments from 64 on, and at the end zeros
// for an empty string.
const outSize = 256

// function returns the address of f as the engine calls it. f must be a function of the top level.
func function(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }

// newVM makes the engine and evaluates the prelude and that of the host. Its heap has size bytes.
func newVM(size int64, hostPrelude string) (*vm, error) {
	m := &vm{tls: libc.NewTLS()}
	machine = m
	var err error
	if m.heap, err = newHeap(m.tls, size); err != nil {
		return nil, err
	}
	m.out = libc.Xcalloc(m.tls, 1, outSize)
	mf := libc.Xcalloc(m.tls, 1, libc.Tsize_t(unsafe.Sizeof(lib.TJSMallocFunctions{})))
	if m.out == 0 || mf == 0 {
		return nil, errors.New("jsvm: no memory for the engine")
	}
	*(*lib.TJSMallocFunctions)(pointer(mf)) = lib.TJSMallocFunctions{
		Fjs_malloc: function(engineAlloc), Fjs_free: function(engineFree),
		Fjs_realloc: function(engineRealloc), Fjs_malloc_usable_size: function(engineUsable),
	}
	m.rt = lib.XJS_NewRuntime2(m.tls, mf, 0)
	if m.rt == 0 {
		return nil, errors.New("jsvm: the engine has no memory for a runtime")
	}
	lib.XJS_SetInterruptHandler(m.tls, m.rt, function(engineInterrupt), 0)
	lib.XJS_SetHostPromiseRejectionTracker(m.tls, m.rt, function(engineRejection), 0)
	lib.XJS_SetStripInfo(m.tls, m.rt, lib.MJS_STRIP_SOURCE)
	if m.ctx = lib.XJS_NewContext(m.tls, m.rt); m.ctx == 0 {
		return nil, errors.New("jsvm: the engine has no memory for a context")
	}
	if err := m.prepare(hostPrelude); err != nil {
		return nil, fmt.Errorf("jsvm: evaluating the prelude: %w", err)
	}
	lib.XJS_RunGC(m.tls, m.rt)
	lib.XJS_SetGCThreshold(m.tls, m.rt, gcThreshold)
	m.base = m.heap.save()
	m.heap.sealed = true
	return m, nil
}

// gcThreshold is the memory in use at which cycles of garbage are looked for first. Most
// invocations end before.
const gcThreshold = 8 << 20

func (m *vm) prepare(hostPrelude string) error {
	// Both are compiled before the heap is what it was: what the compiler has needed is not to be
	// in each copy.
	empty := m.heap.save()
	own, err := m.compileScript(prelude, preludeName)
	if err != nil {
		return err
	}
	var hosts *bytecode
	if hostPrelude != "" {
		if hosts, err = m.compileScript("("+hostPrelude+"\n)", "prelude"); err != nil {
			return err
		}
	}
	m.heap.restore(empty)
	host := undefined()
	if hosts != nil {
		if host = m.evaluate(hosts); isException(host) {
			return m.thrown()
		}
	}
	f := m.evaluate(own)
	if isException(f) {
		return m.thrown()
	}
	functions := lib.XJS_NewObject(m.tls, m.ctx)
	for i, n := range natives {
		f := lib.XJS_NewCFunction2(
			m.tls, m.ctx, function(engineCall), m.text(n.name), 0, lib.EJS_CFUNC_generic_magic, int32(i),
		)
		lib.XJS_SetPropertyStr(m.tls, m.ctx, functions, m.text(n.name), f)
	}
	made, err := m.call(f, functions, host)
	if err != nil {
		return err
	}
	for i, to := range []*value{&m.start, &m.settle, &m.next, &m.fire, &m.explain} {
		*to = lib.XJS_GetPropertyUint32(m.tls, m.ctx, made, uint32(i))
	}
	return nil
}

// text puts s, with a NUL after it, where the engine can read it until the next call of text.
func (m *vm) text(s string) uintptr {
	if len(s) >= m.size {
		size := max(2*len(s), 4<<10)
		if m.scratch != 0 {
			libc.Xfree(m.tls, m.scratch)
		}
		if m.scratch = libc.Xmalloc(m.tls, libc.Tsize_t(size)); m.scratch == 0 {
			panic("jsvm: out of memory for a string") // ends the process
		}
		m.size = size
	}
	b := view(m.scratch, len(s)+1)
	copy(b, s)
	b[len(s)] = 0
	return m.scratch
}

// shrink frees a large scratch.
func (m *vm) shrink() {
	if m.size > 256<<10 {
		libc.Xfree(m.tls, m.scratch)
		m.scratch, m.size = 0, 0
	}
}

// isException reports whether v stands for an exception that is to be taken with thrown.
func isException(v value) bool { return tagOf(v) == lib.EJS_TAG_EXCEPTION }

func isUndefined(v value) bool { return tagOf(v) == lib.EJS_TAG_UNDEFINED }

func isString(v value) bool {
	return tagOf(v) == lib.EJS_TAG_STRING || tagOf(v) == lib.EJS_TAG_STRING_ROPE
}

// bytecode is a compiled script, outside of the heap and of the memory of Go.
type bytecode struct {
	address uintptr
	size    int
}

// compileScript compiles a script whose last expression is its value.
func (m *vm) compileScript(source, name string) (*bytecode, error) {
	file, err := libc.CString(name)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(m.tls, file)
	f := lib.XJS_Eval(
		m.tls, m.ctx, m.text(source), lib.Tsize_t(len(source)), file,
		lib.MJS_EVAL_TYPE_GLOBAL|lib.MJS_EVAL_FLAG_COMPILE_ONLY,
	)
	if isException(f) {
		return nil, m.thrown()
	}
	written := lib.XJS_WriteObject(m.tls, m.ctx, m.out, f, lib.MJS_WRITE_OBJ_BYTECODE)
	lib.XFreeValue(m.tls, m.ctx, f)
	if written == 0 {
		return nil, m.thrown()
	}
	defer lib.Xjs_free(m.tls, m.ctx, written)
	b := &bytecode{size: int(*(*lib.Tsize_t)(pointer(m.out)))}
	if b.address = libc.Xmalloc(m.tls, libc.Tsize_t(b.size)); b.address == 0 {
		return nil, errors.New("jsvm: no memory for a script")
	}
	copy(view(b.address, b.size), view(written, b.size))
	return b, nil
}

// evaluate returns the value of a script, or an exception.
func (m *vm) evaluate(b *bytecode) value {
	f := lib.XJS_ReadObject(m.tls, m.ctx, b.address, lib.Tsize_t(b.size), lib.MJS_READ_OBJ_BYTECODE)
	if isException(f) {
		return f
	}
	return lib.XJS_EvalFunction(m.tls, m.ctx, f)
}

// call calls f with at most eight arguments.
func (m *vm) call(f value, args ...value) (value, error) {
	argv := m.out + 64
	for i, a := range args {
		*(*value)(pointer(argv + uintptr(i)*unsafe.Sizeof(a))) = a
	}
	v := lib.XJS_Call(m.tls, m.ctx, f, tagged(lib.EJS_TAG_UNDEFINED), int32(len(args)), argv)
	if isException(v) {
		return v, m.thrown()
	}
	return v, nil
}

// newString returns s as a value; what is not UTF-8 becomes U+FFFD.
func (m *vm) newString(s string) value {
	s = strings.ToValidUTF8(s, "\ufffd")
	return lib.XJS_NewStringLen(m.tls, m.ctx, m.text(s), lib.Tsize_t(len(s)))
}

func (m *vm) newBuffer(b []byte) value {
	return lib.XJS_NewArrayBufferCopy(m.tls, m.ctx, m.text(string(b)), lib.Tsize_t(len(b)))
}

// stringOf returns v as a string. An object is converted by the script's own code. It returns false
// if that throws.
func (m *vm) stringOf(v value) (string, bool) {
	p := lib.XJS_ToCStringLen2(m.tls, m.ctx, m.out, v, 0)
	if p == 0 {
		return "", false
	}
	s := string(view(p, int(*(*lib.Tsize_t)(pointer(m.out)))))
	lib.XJS_FreeCString(m.tls, m.ctx, p)
	return strings.ToValidUTF8(s, "\ufffd"), true
}

// bytesOf returns a copy of the bytes of a string, an ArrayBuffer or a typed array.
func (m *vm) bytesOf(v value) ([]byte, bool) {
	if isString(v) {
		s, ok := m.stringOf(v)
		return []byte(s), ok
	}
	buffer := lib.XJS_GetTypedArrayBuffer(m.tls, m.ctx, v, m.out+8, m.out+16, 0)
	if isException(buffer) {
		return nil, false
	}
	offset, length := *(*lib.Tsize_t)(pointer(m.out + 8)), *(*lib.Tsize_t)(pointer(m.out + 16))
	p := lib.XJS_GetArrayBuffer(m.tls, m.ctx, m.out, buffer)
	size := *(*lib.Tsize_t)(pointer(m.out))
	lib.XFreeValue(m.tls, m.ctx, buffer)
	if p == 0 || offset > size || length > size-offset {
		return nil, p != 0 && length == 0
	}
	return append([]byte(nil), view(p+uintptr(offset), int(length))...), true
}

func (m *vm) number(v value) (float64, bool) {
	if lib.XJS_ToFloat64(m.tls, m.ctx, m.out, v) != 0 {
		return 0, false
	}
	return *(*float64)(pointer(m.out)), true
}

// newNumber returns f as a value.
func (m *vm) newNumber(f float64) value {
	if i := int32(f); float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return lib.XNewInt32(m.tls, m.ctx, i)
	}
	s := fmt.Sprintf("%g", f) // rare: times
	return lib.XJS_ParseJSON(m.tls, m.ctx, m.text(s), lib.Tsize_t(len(s)), m.out+outSize-8)
}

// throw makes an exception and returns the value that stands for it.
func (m *vm) throw(format string, args ...any) value {
	message := strings.ReplaceAll(fmt.Sprintf(format, args...), "%", "%%")
	return lib.XJS_ThrowTypeError(m.tls, m.ctx, m.text(message), 0)
}

// thrown takes the pending exception and returns it as a *jsvm.Error.
func (m *vm) thrown() error {
	e := m.describe(lib.XJS_GetException(m.tls, m.ctx))
	return &e
}

// maxErrorText is how many bytes of an error's message and stack are kept.
const maxErrorText = 8 << 10

// describe returns what is known of a thrown value.
func (m *vm) describe(v value) jsvm.Error {
	if tagOf(m.explain) != lib.EJS_TAG_OBJECT { // the prelude itself failed
		s, _ := m.stringOf(v)
		return jsvm.Error{Message: cut(s)}
	}
	*(*value)(pointer(m.out + 64)) = v
	all := lib.XJS_Call(m.tls, m.ctx, m.explain, tagged(lib.EJS_TAG_UNDEFINED), 1, m.out+64)
	if isException(all) {
		lib.XFreeValue(m.tls, m.ctx, lib.XJS_GetException(m.tls, m.ctx))
		if m.heap.refused {
			return outOfMemory()
		}
		return jsvm.Error{Name: "Error", Message: "an error that cannot be shown"}
	}
	var parts [3]string
	for i := range parts {
		parts[i], _ = m.stringOf(lib.XJS_GetPropertyUint32(m.tls, m.ctx, all, uint32(i)))
	}
	return jsvm.Error{Name: cut(parts[0]), Message: cut(parts[1]), Stack: cut(parts[2])}
}

func outOfMemory() jsvm.Error { return jsvm.Error{Name: "InternalError", Message: "out of memory"} }

// cut shortens an error's text.
func cut(s string) string {
	if len(s) <= maxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:maxErrorText], "") + "…"
}

// compile compiles the source of a module to bytecode.
func (m *vm) compile(source string) ([]byte, error) {
	m.prepared(m.base)
	m.heap.limit = int64(len(m.heap.memory))
	m.current = nil
	file, err := libc.CString(bundleName)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(m.tls, file)
	module := lib.XJS_Eval(m.tls, m.ctx, m.text(source), lib.Tsize_t(len(source)), file,
		lib.MJS_EVAL_TYPE_MODULE|lib.MJS_EVAL_FLAG_COMPILE_ONLY)
	if isException(module) {
		return nil, m.thrown()
	}
	p := lib.XJS_WriteObject(m.tls, m.ctx, m.out, module, lib.MJS_WRITE_OBJ_BYTECODE)
	if p == 0 {
		return nil, m.thrown()
	}
	return append([]byte(nil), view(p, int(*(*lib.Tsize_t)(pointer(m.out))))...), nil
}

// bundleName is the name of the bundle in positions of errors.
const bundleName = "<bundle>"

// preludeName is the name of the prelude in them.
const preludeName = "<jsvm>"

// program is a Program that is loaded: the state in which its module has been read and not yet been
// evaluated.
type program struct {
	*snapshot
	module    value
	sourceMap []byte
}

// load reads bytecode.
func (m *vm) load(code, sourceMap []byte) (*program, error) {
	m.prepared(m.base)
	m.heap.limit = int64(len(m.heap.memory))
	m.current = nil
	m.heap.sealed = false
	defer func() { m.heap.sealed = true }()
	p := libc.Xmalloc(m.tls, libc.Tsize_t(len(code)+1))
	if p == 0 {
		return nil, errors.New("jsvm: no memory for a program")
	}
	defer libc.Xfree(m.tls, p)
	copy(view(p, len(code)), code)
	module := lib.XJS_ReadObject(m.tls, m.ctx, p, lib.Tsize_t(len(code)), lib.MJS_READ_OBJ_BYTECODE)
	if isException(module) {
		return nil, m.thrown()
	}
	if tagOf(module) != lib.EJS_TAG_MODULE {
		return nil, errors.New("jsvm: the program is no module")
	}
	if lib.XJS_ResolveModule(m.tls, m.ctx, module) < 0 {
		return nil, m.thrown()
	}
	return &program{m.heap.save(), module, sourceMap}, nil
}

// reseed gives Math.random a new start: its state is part of the snapshots.
func (m *vm) reseed() {
	(*lib.TJSContext)(pointer(m.ctx)).Frandom_state = lib.Tuint64_t(rand.Uint64() | 1)
}
