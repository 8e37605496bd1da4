package quickjs

import (
	"slices"
	"time"

	lib "modernc.org/libquickjs"
)

func nativeNow(m *vm, _ arguments) value {
	if m.run == nil {
		return m.newNumber(0)
	}
	return m.newNumber(float64(time.Since(m.run.started).Microseconds()) / 1000)
}

func nativeLog(m *vm, in arguments) value {
	level, _ := m.number(in.all[0])
	text, ok := m.stringOf(in.all[1])
	if !ok {
		return exception()
	}
	if m.run != nil {
		m.run.logs.add(int(level), text)
	}
	return undefined()
}

// nativeCall calls a function of the host, name and arguments as JSON, and returns the number of
// the call.
func nativeCall(m *vm, in arguments) value {
	id, e := m.sendCall(in.all)
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
		return 0, m.throw(
			"the arguments of %s have %d bytes of JSON, where %d are allowed", s[0], len(s[1]),
			r.limits.CallBytes,
		)
	}
	r.calls++
	r.inflight++
	r.logs.flush()
	r.send(kindCall, newEncoder(32+len(s[1])).int(r.calls).string(s[0]).string(s[1]))
	return r.calls, undefined()
}

// nativeCallSync calls a function of the host and returns an array: whether it failed, JSON or
// message, code.
func nativeCallSync(m *vm, in arguments) value {
	id, e := m.sendCall(in.all)
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
func nativeRespond(m *vm, in arguments) value {
	r := m.run
	if r == nil || r.responded {
		return undefined()
	}
	var b []byte
	if isString(in.all[0]) {
		s, ok := m.stringOf(in.all[0])
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
