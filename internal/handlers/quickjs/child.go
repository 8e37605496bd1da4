package quickjs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// marker is the variable of the environment by which a process recognizes that it is a child. Its
// value is the size of the heap in bytes; a child has no other variable but TZ.
const marker = "TENANTCONTENT_JSVM_CHILD"

// called is whether the program has called Child.
var called atomic.Bool

// Ready reports whether the program has called Child, so that New can return a Runtime.
func Ready() bool { return called.Load() }

// Child must be the first call of the main function of every program that runs scripts, and of
// TestMain. A Runtime starts the same program again for its processes, and there Child runs scripts
// and does not return. In the program itself it returns at once; New fails without it.
func Child() {
	heap := os.Getenv(marker)
	if heap == "" {
		called.Store(true)
		return
	}
	end := subprocess.Inherited()
	c := &child{conn: newConn(end.R, end.W), frames: make(chan frame, 2*parallelCalls), programs: map[string]*program{}}
	if err := c.serve(heap); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// parallelCalls is how many calls of the host's functions an invocation has at once; the prelude
// queues the others.
const parallelCalls = 16

// child is the process that runs scripts, one at a time.
type child struct {
	*conn
	frames   chan frame
	vm       *vm
	programs map[string]*program
	current  atomic.Pointer[run]
	canceled atomic.Uint64 // id of the last exchange that the server canceled
	calls    int           // of the compilation that is under way
	waits    waits         // of it
}

// maxStack is the stack that ends the process: the engine stays below a quarter of it, and a source
// that is nested too deeply does not.
const maxStack = 256 << 20

// gcPercent keeps the Go heap of an idle process small.
const gcPercent = 30

// serve runs what the server sends until it goes away.
func (c *child) serve(heap string) error {
	var size int64
	if _, err := fmt.Sscan(heap, &size); err != nil {
		return fmt.Errorf("jsvm: %s=%q is set by mistake: only a Runtime sets it", marker, heap)
	}
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	debug.SetGCPercent(gcPercent)
	go c.receive()
	first := <-c.frames // the host's prelude comes first
	if first.kind != kindHello {
		return fmt.Errorf("%w: %q in place of a greeting", errFrame, first.kind)
	}
	d := &decoder{b: first.body}
	hostPrelude := d.string()
	if err := d.done(); err != nil {
		return err
	}
	var err error
	if c.vm, err = newVM(size, hostPrelude); err != nil {
		return err
	}
	runtime.GC() // before the sandbox, so that what it starts is there
	confined := subprocess.Confine(2*size + 128<<20)
	c.send(kindHello, 0, newEncoder(64).int(protocol).string(engineName()).string(confined))
	for f := range c.frames {
		if err := c.handle(f); err != nil {
			return err
		}
	}
	return io.EOF
}

// receive passes frames on, and ends the process when the server is gone.
func (c *child) receive() {
	for {
		f, err := c.read(func(kind) int { return maxFrame })
		if err != nil {
			os.Exit(0)
		}
		if f.kind == kindCancel {
			c.canceled.Store(f.id)
			if r := c.current.Load(); r != nil && r.id == f.id {
				r.stop.Store(true)
			}
		}
		c.frames <- f
	}
}

// send sends a frame. The process ends when the server is gone.
func (c *child) send(k kind, id uint64, e *encoder) {
	if err := c.write(k, id, e); err != nil {
		os.Exit(0)
	}
}

func (c *child) handle(f frame) error {
	switch f.kind {
	case kindRun:
		inv := &invocation{}
		if err := inv.decode(f.body); err != nil {
			return err
		}
		end := c.run(f.id, inv)
		c.send(kindEnd, f.id, end.encode())
		next := c.vm.base
		if p := c.programs[inv.hash]; p != nil {
			next = p.snapshot
		}
		c.tidy(next, end.peak) // while the server answers its caller
	case kindCompile:
		d := &decoder{b: f.body}
		entry := d.string()
		if err := d.done(); err != nil {
			return err
		}
		done := c.compile(f.id, entry)
		c.send(kindCompiled, f.id, done.encode())
		c.tidy(c.vm.base, largePeak)
	}
	return nil // answers to calls that nobody waits for any more
}

// largePeak is the memory of an invocation after which the process gives back what it can.
const largePeak = 32 << 20

// tidy leaves nothing of an invocation in the heap, and prepares it for what probably comes next.
func (c *child) tidy(next *snapshot, peak int64) {
	c.vm.prepared(next)
	c.vm.shrink()
	if peak >= largePeak {
		debug.FreeOSMemory()
	}
}

// run runs an invocation. It loads its program first if the server has sent it along.
func (c *child) run(id uint64, inv *invocation) *ending {
	for _, hash := range inv.forget {
		delete(c.programs, hash)
	}
	r := newRun(c, id, inv)
	p := c.programs[inv.hash]
	if inv.code != nil {
		if inv.hash != programHash(inv.code) {
			return &ending{outcome: notLoaded}
		}
		var err error
		if p, err = c.vm.load(inv.code, inv.sourceMap); err != nil {
			return &ending{outcome: notLoaded}
		}
		c.programs[inv.hash] = p
	}
	if p == nil {
		return &ending{outcome: notLoaded}
	}
	c.current.Store(r)
	defer c.current.Store(nil)
	if c.canceled.Load() == id { // before current was there
		r.stop.Store(true)
	}
	return c.vm.invoke(r, p)
}

// programHash returns the Hash of a Program.
func programHash(code []byte) string {
	h := sha256.New()
	io.WriteString(h, engineName())
	h.Write(code)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// compile bundles and compiles the entry.
func (c *child) compile(id uint64, entry string) *compiled {
	c.calls, c.waits = 0, waits{}
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	done := bundle(entry, func(name string) (string, error) { return c.readSource(id, name) })
	if len(done.problems) > 0 {
		return done
	}
	code, err := c.vm.compile(string(done.code))
	done.code = code
	if err == nil {
		return done
	}
	e, ok := err.(*jsvm.Error)
	if !ok {
		e = &jsvm.Error{Message: err.Error()}
	}
	p := problem{text: e.Message}
	if at := strings.Index(e.Stack, bundleName+":"); at >= 0 {
		line, column := 0, 0
		fmt.Sscanf(e.Stack[at+len(bundleName):], ":%d:%d", &line, &column)
		if file, l, c, ok := (&positions{sourceMap: done.sourceMap}).source(line, column); ok {
			p.file, p.line, p.column = file, l, c
		}
	}
	if c.vm.heap.refused {
		p = problem{text: "the script is too large to be compiled"}
	}
	done.problems = []problem{p}
	return done
}

// errNoFile is returned by readSource for a file that is not there.
var errNoFile = errors.New("no such file")

// readSource asks the server for a file.
func (c *child) readSource(id uint64, name string) (string, error) {
	c.calls++
	c.send(kindCall, id, newEncoder(64).int(c.calls).string(readFunction).string(name))
	for {
		f, ok := c.waits.next(c, id, -1, math.MaxInt64) // the server ends it in time
		var a answer
		switch {
		case !ok:
			return "", io.EOF
		case f.kind == kindCancel && f.id == id:
			os.Exit(0) // nobody wants the program
		case f.kind != kindAnswer || f.id != id || a.decode(f.body) != nil || a.call != c.calls:
		case a.failed:
			return "", errors.New(string(a.value))
		case a.value == nil:
			return "", errNoFile
		default:
			return string(a.value), nil
		}
	}
}

// readFunction is the name by which a child asks for a file.
const readFunction = "read"
