package quickjs

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// forger is a child that was broken into: it sends what it likes.
type forger struct {
	net.Conn
	id uint64 // of the exchange
}

func (f *forger) send(k kind, e *encoder)              { f.sendAs(k, f.id, e) }
func (f *forger) sendAs(k kind, id uint64, e *encoder) { f.Write(e.finish(k, id)) }

// against runs an exchange with a child that does what attack says.
func against(t testing.TB, limits jsvm.Limits, attack func(f *forger)) jsvm.Result {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &process{Process: &subprocess.Process{Pid: -1}, conn: newConn(ours, ours), dead: make(chan struct{})}
	p.end = func() {
		ours.Close()
		theirs.Close()
		close(p.dead)
	}
	go func() {
		c := newConn(theirs, theirs)
		request, err := c.read(func(kind) int { return maxFrame })
		if err != nil {
			return
		}
		go io.Copy(io.Discard, theirs) // answers, unless the attack takes them
		attack(&forger{theirs, request.id})
	}()
	o := Options{Limits: limits, Grace: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	s, work := newScheduler(o.scheduling()), &task{}
	if err := s.begin(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	defer s.end(work)
	x := &exchange{rt: &Runtime{o: o, scheduler: s}, task: work,
		process: p, limits: limits.Within(o.Limits), respond: func(json.RawMessage) {},
		functions: map[string]jsvm.Function{"echo": func(
			_ context.Context, args json.RawMessage,
		) (json.RawMessage, error) {
			return args, nil
		}}}
	reusable := x.run(context.Background(), kindRun, newEncoder(0))
	if reusable != (x.result.Outcome == jsvm.OK) && x.result.Outcome != jsvm.Thrown {
		t.Errorf("reusable %t after %s", reusable, x.result.Outcome)
	}
	return x.result
}

func ok() *encoder { return (&ending{outcome: jsvm.OK, value: []byte("1")}).encode() }

func TestForgedFramesEndTheChild(t *testing.T) {
	limits := jsvm.Limits{Time: 5 * time.Second, Output: 1000, LogBytes: 1000, LogLines: 10, Calls: 5, CallBytes: 1000}
	call := func(n int, name, args string) *encoder { return newEncoder(0).int(n).string(name).string(args) }
	logs := func(level uint64, n int, text string) *encoder {
		e := newEncoder(0).int(0).int(n)
		for range n {
			e.uint(0).uint(level).string(text)
		}
		return e
	}
	header := func(size uint32, k kind, id uint64) []byte {
		b := make([]byte, frameHeader)
		binary.LittleEndian.PutUint32(b, size)
		b[4] = byte(k)
		binary.LittleEndian.PutUint64(b[5:], id)
		return b
	}
	for _, c := range []struct {
		name   string
		attack func(f *forger)
	}{
		{"another exchange", func(f *forger) { f.sendAs(kindEnd, f.id+1, ok()) }},
		{"the first exchange", func(f *forger) { f.sendAs(kindEnd, 0, ok()) }},
		{"unknown kind", func(f *forger) { f.send('?', newEncoder(0)) }},
		{"greeting", func(f *forger) { f.send(kindHello, newEncoder(0)) }},
		{"kinds of the server", func(f *forger) { f.send(kindAnswer, newEncoder(0)) }},
		{"compiled", func(f *forger) { f.send(kindCompiled, (&compiled{}).encode()) }},
		{"4 GiB", func(f *forger) { f.Write(header(1<<32-1, kindEnd, f.id)) }},
		{"long call", func(f *forger) { f.Write(header(1<<20, kindCall, f.id)) }},
		{"long log", func(f *forger) { f.Write(header(1<<20, kindLogs, f.id)) }},
		{"long response", func(f *forger) { f.Write(header(1<<20, kindRespond, f.id)) }},
		{"empty end", func(f *forger) { f.send(kindEnd, newEncoder(0)) }},
		{"outcome", func(f *forger) { f.send(kindEnd, (&ending{outcome: "canceled"}).encode()) }},
		{"no JSON", func(f *forger) { f.send(kindEnd, (&ending{outcome: jsvm.OK, value: []byte("{")}).encode()) }},
		{"no UTF-8", func(f *forger) {
			f.send(kindEnd, (&ending{outcome: jsvm.OK, value: []byte("\"\xff\"")}).encode())
		}},
		{"more in the end", func(f *forger) { f.send(kindEnd, ok().uint(1)) }},
		{"more after the end", func(f *forger) {
			f.Write(append(ok().finish(kindEnd, f.id), ok().finish(kindEnd, f.id)...))
		}},
		{"call out of order", func(f *forger) { f.send(kindCall, call(2, "echo", "[]")) }},
		{"call repeated", func(f *forger) {
			f.send(kindCall, call(1, "echo", "[]"))
			f.send(kindCall, call(1, "echo", "[]"))
		}},
		{"call of nothing", func(f *forger) { f.send(kindCall, call(1, "none", "[]")) }},
		{"call of read", func(f *forger) { f.send(kindCall, call(1, readFunction, "main.js")) }},
		{"call without JSON", func(f *forger) { f.send(kindCall, call(1, "echo", "[")) }},
		{"too many calls", func(f *forger) {
			for i := range 6 {
				f.send(kindCall, call(i+1, "echo", "[]"))
			}
		}},
		{"two responses", func(f *forger) {
			f.send(kindRespond, newEncoder(0).optional([]byte("1")))
			f.send(kindRespond, newEncoder(0).optional([]byte("2")))
		}},
		{"response that is no JSON", func(f *forger) { f.send(kindRespond, newEncoder(0).optional([]byte("}"))) }},
		{"log of an unknown level", func(f *forger) { f.send(kindLogs, logs(4, 1, "x")) }},
		{"too many lines", func(f *forger) { f.send(kindLogs, logs(1, 11, "")) }},
		{"too many bytes", func(f *forger) { f.send(kindLogs, logs(1, 5, strings.Repeat("x", 300))) }},
		{"claimed lines", func(f *forger) { f.send(kindLogs, newEncoder(0).int(0).int(1<<30)) }},
		{"claimed length", func(f *forger) {
			f.send(kindLogs, newEncoder(0).int(0).int(1).uint(0).uint(1).uint(1<<62))
		}},
		{"endless number", func(f *forger) {
			e := newEncoder(0)
			e.b = append(e.b, strings.Repeat("\xff", 20)...)
			f.send(kindEnd, e)
		}},
		{"wait for answers that were not sent", func(f *forger) {
			f.send(kindWait, newEncoder(0).int(1).bool(false).uint(0))
		}},
		{"wait while it waits", func(f *forger) {
			f.send(kindWait, newEncoder(0).int(0).bool(false).uint(0))
			f.send(kindWait, newEncoder(0).int(0).bool(false).uint(0))
		}},
		{"long wait", func(f *forger) { f.Write(header(33, kindWait, f.id)) }},
		{"end of the connection", func(f *forger) { f.Close() }},
		{"end within a frame", func(f *forger) { f.Write(header(100, kindEnd, f.id)[:7]); f.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			r := against(t, limits, c.attack)
			is.Equal(r.Outcome, jsvm.Killed)
			is.True(r.Error != nil && r.Value == nil)
		})
	}
	is.New(t).Equal(against(t, limits, func(f *forger) { f.send(kindEnd, ok()) }).Outcome, jsvm.OK)
}

// TestDeafChildEndsInTime: a child that answers nothing, or reads nothing, holds up its caller no
// longer than its time and grace.
func TestDeafChildEndsInTime(t *testing.T) {
	is := is.New(t)
	limits := jsvm.Limits{Time: 50 * time.Millisecond, CallBytes: 1 << 20, Calls: 100}
	start := time.Now()
	r := against(t, limits, func(*forger) {})
	is.Equal(r.Outcome, jsvm.Timeout)
	is.True(r.Killed)
	r = against(t, limits, func(f *forger) { // nobody stops it from ending with calls in flight
		f.send(kindCall, newEncoder(0).int(1).string("echo").string("[]"))
		f.send(kindEnd, ok())
	})
	is.Equal(r.Outcome, jsvm.OK)
	is.True(time.Since(start) < 5*time.Second)
}

// FuzzChild sends arbitrary bytes as a child: the server neither panics nor waits beyond the
// limits.
func FuzzChild(f *testing.F) {
	f.Add(byte(kindEnd), ok().b[frameHeader:])
	f.Add(byte(kindLogs), []byte{0, 1, 0, 1, 1, 'x'})
	f.Add(byte(kindCall), []byte{1, 4, 'e', 'c', 'h', 'o', 2, '[', ']'})
	f.Add(byte(kindRespond), []byte{1, 1, '1'})
	f.Add(byte(kindWait), []byte{0, 1, 5})
	f.Fuzz(func(t *testing.T, k byte, body []byte) {
		limits := jsvm.Limits{
			Time:      5 * time.Second,
			Output:    1000,
			LogBytes:  1000,
			LogLines:  10,
			Calls:     5,
			CallBytes: 1000,
		}
		r := against(t, limits, func(f *forger) {
			e := newEncoder(len(body))
			e.b = append(e.b, body...)
			f.send(kind(k), e)
			f.Close()
		})
		if r.Outcome != jsvm.OK && r.Error == nil {
			t.Errorf("%s without an error", r.Outcome)
		}
	})
}

func TestHeapGivesBackWhatItTakes(t *testing.T) {
	is := is.New(t)
	m, err := newVM(8<<20, "")
	is.NoErr(err)
	h := m.heap
	h.restore(m.base)
	random := rand.New(rand.NewPCG(1, 2))
	live := map[uintptr]byte{}
	for range 20_000 {
		size := uintptr(1) << random.IntN(20)
		size += uintptr(random.IntN(int(size)))
		switch p := h.alloc(size); {
		case p == 0:
			for q := range live {
				h.release(q)
				delete(live, q)
			}
		case random.IntN(3) == 0:
			h.release(p)
		default:
			is.Equal(p%16, uintptr(0))
			c := byte(random.IntN(256))
			b := view(p, int(size))
			b[0], b[size-1] = c, c
			if random.IntN(4) == 0 {
				p = h.realloc(p, 2*size)
				if p == 0 {
					continue
				}
				is.True(view(p, int(size))[0] == c && view(p, int(size))[size-1] == c)
			}
			live[p] = c
		}
	}
	for p, c := range live {
		is.Equal(view(p, 1)[0], c) // no block lies in another one
	}
	is.True(h.peak <= h.limit)
	h.restore(m.base)
	is.Equal(h.used, m.base.used)
	is.Equal(h.large, uintptr(0))
	for _, b := range h.memory[len(m.base.bytes):] {
		if b != 0 {
			t.Fatal("something of an invocation is left")
		}
	}
}

func TestClasses(t *testing.T) {
	is := is.New(t)
	last := -1
	for size := uintptr(1); size <= maxClass; size++ {
		index, full := class(size)
		if full < size || full%64 != 0 || full > size+max(size/4, 63) || index >= classes {
			t.Fatal(size, index, full)
		}
		is.True(index == last || index == last+1 || last < 0)
		again, same := class(full)
		is.True(again == index && same == full)
		last = index
	}
}
