package quickjs

import (
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// protocol is the version of the frames. Both ends are the same program, so it only notices
// mistakes.
const protocol = 1

// invocation is the body of kindRun.
type invocation struct {
	hash      string
	code      []byte // nil if the child has the program
	sourceMap []byte
	forget    []string
	function  string
	args      []byte // a JSON array
	functions []string
	limits    jsvm.Limits
}

func (i *invocation) encode() *encoder {
	e := newEncoder(256 + len(i.code) + len(i.sourceMap) + len(i.args))
	e.string(i.hash).optional(i.code).bytes(i.sourceMap).strings(i.forget)
	e.string(i.function).bytes(i.args).strings(i.functions)
	return encodeLimits(e, i.limits)
}

func (i *invocation) decode(b []byte) error {
	d := &decoder{b: b}
	i.hash, i.code, i.sourceMap, i.forget = d.string(), d.optional(), d.bytes(), d.strings()
	i.function, i.args, i.functions = d.string(), d.bytes(), d.strings()
	i.limits = decodeLimits(d)
	return d.done()
}

func encodeLimits(e *encoder, l jsvm.Limits) *encoder {
	e.uint(uint64(l.Time)).uint(uint64(l.Memory)).int(l.Output)
	return e.int(l.LogBytes).int(l.LogLines).int(l.Calls).int(l.CallBytes)
}

func decodeLimits(d *decoder) (l jsvm.Limits) {
	l.Time, l.Memory, l.Output = time.Duration(d.int64()), d.int64(), d.int()
	l.LogBytes, l.LogLines, l.Calls, l.CallBytes = d.int(), d.int(), d.int(), d.int()
	return l
}

// ending is the body of kindEnd.
type ending struct {
	outcome jsvm.Outcome
	value   []byte
	err     jsvm.Error
	peak    int64 // bytes of the engine
}

func (e *ending) encode() *encoder {
	w := newEncoder(256 + len(e.value))
	w.string(string(e.outcome)).optional(e.value)
	w.string(e.err.Name).string(e.err.Message).string(e.err.Stack)
	return w.uint(uint64(e.peak))
}

func (e *ending) decode(b []byte) error {
	d := &decoder{b: b}
	e.outcome, e.value = jsvm.Outcome(d.string()), d.optional()
	e.err = jsvm.Error{Name: d.string(), Message: d.string(), Stack: d.string()}
	e.peak = d.int64()
	return d.done()
}

// compiled is the body of kindCompiled.
type compiled struct {
	problems  []problem // none if it succeeded
	code      []byte
	sourceMap []byte
	exports   []string
	files     []string
}

// problem is an error in a source.
type problem struct {
	file         string // "" if it has no place
	line, column int    // from 1
	text         string
}

func (c *compiled) encode() *encoder {
	e := newEncoder(256 + len(c.code) + len(c.sourceMap))
	e.int(len(c.problems))
	for _, p := range c.problems {
		e.string(p.file).int(p.line).int(p.column).string(p.text)
	}
	return e.bytes(c.code).bytes(c.sourceMap).strings(c.exports).strings(c.files)
}

func (c *compiled) decode(b []byte) error {
	d := &decoder{b: b}
	n := d.int()
	for range min(n, maxProblems) {
		c.problems = append(c.problems, problem{d.string(), d.int(), d.int(), d.string()})
	}
	c.code, c.sourceMap, c.exports, c.files = d.bytes(), d.bytes(), d.strings(), d.strings()
	return d.done()
}

// maxProblems is how many errors of a source are reported.
const maxProblems = 10
