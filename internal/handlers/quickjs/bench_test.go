package quickjs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
)

// largeHandler is a script of 20 KB whose handler does little.
func largeHandler() string {
	var b strings.Builder
	for i := 0; b.Len() < 19_500; i++ {
		fmt.Fprintf(
			&b,
			"function helper%d(a, b) { const o = {x: a, y: [b, %d, 'text %d']}; if (a > b) return o.x + o.y[0]; "+
				"return Object.keys(o).map(k => k + b).join(',') }\nhelpers.push(helper%d);\n",
			i, i, i, i,
		)
	}
	return "const helpers = [];\n" + b.String() +
		"export function POST(request) { return {status: 200, body: {ok: true, n: request.n, helpers: " +
		"helpers.length}} }\n"
}

const itemsHandler = `
export async function POST(request, host) {
	const items = request.body.items.filter(i => i.price > 10).map(i => ({id: i.id, total: i.price * i.count, tags: i.tags.join(' ')}))
	const rows = await host.query('select * from t where id = $1', [items[0].id])
	await host.query('insert into t values ($1, $2)', [items.length, items.reduce((sum, i) => sum + i.total, 0)])
	const answer = await host.fetch('things', {method: 'POST', body: {count: items.length, row: rows[0]}})
	return {status: 200, body: {items, answer}}
}`

func itemsBody() json.RawMessage {
	type item struct {
		ID    string   `json:"id"`
		Price float64  `json:"price"`
		Count int      `json:"count"`
		Tags  []string `json:"tags"`
	}
	var items []item
	for i := range 100 {
		items = append(items, item{
			fmt.Sprintf("item-%04d-%s", i, strings.Repeat("x", 20)), float64(i) * 1.25, i % 7,
			[]string{"red", "green", "blue"},
		})
	}
	b, _ := json.Marshal(map[string]any{"body": map[string]any{"items": items}})
	return b
}

func benchmark(b *testing.B, source string, c jsvm.Call) {
	rt, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	p, err := rt.Compile(context.Background(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": source}})
	if err != nil {
		b.Fatal(err)
	}
	c.Function = "POST"
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		r, err := rt.Run(context.Background(), p, c)
		if err != nil || r.Outcome != jsvm.OK {
			b.Fatal(err, r.Error)
		}
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
	for _, pid := range rt.ProcessIDs() {
		b.ReportMetric(float64(subprocess.ResidentPeak(pid))/(1<<20), "child-MiB")
	}
}

func BenchmarkTrivial(b *testing.B) {
	benchmark(b, largeHandler(), jsvm.Call{Args: []json.RawMessage{[]byte(`{"n": 1}`)}})
}

func BenchmarkItems(b *testing.B) {
	rows := json.RawMessage(`[{"id": "1", "name": "one"}]`)
	answer := func(context.Context, json.RawMessage) (json.RawMessage, error) { return rows, nil }
	benchmark(b, itemsHandler, jsvm.Call{
		Args:      []json.RawMessage{itemsBody()},
		Functions: map[string]jsvm.Function{"query": answer, "fetch": answer},
	})
}

func BenchmarkTrivialParallel(b *testing.B) {
	rt, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	p, err := rt.Compile(context.Background(), jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": largeHandler()}})
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r, err := rt.Run(
				context.Background(), p,
				jsvm.Call{Function: "POST", Args: []json.RawMessage{[]byte(`{"n": 1}`)}},
			); err != nil || r.Outcome != jsvm.OK {
				b.Fatal(err, r.Error)
			}
		}
	})
}

func BenchmarkStart(b *testing.B) {
	l := newPool(Options{}.withDefaults())
	defer l.close()
	for b.Loop() {
		l.mu.Lock()
		l.starting++
		l.mu.Unlock()
		p, err := l.start()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(subprocess.ResidentPeak(p.Pid))/(1<<20), "child-MiB")
		p.kill()
	}
}

// BenchmarkEngine measures an invocation without the processes.
func BenchmarkEngine(b *testing.B) {
	m, err := newVM(64<<20, "")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, source, args string }{
		{"trivial", largeHandler(), `[{"n": 1}]`},
		{
			"items", strings.ReplaceAll(itemsHandler, "await host.", "(async () => [{}])//"),
			"[" + string(itemsBody()) + "]",
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			done := bundle("a.js", func(name string) (string, error) {
				if name == "a.js" {
					return c.source, nil
				}
				return "", errNoFile
			})
			code, err := m.compile(string(done.code))
			if err != nil {
				b.Fatal(err)
			}
			p, err := m.load(code, nil)
			if err != nil {
				b.Fatal(err)
			}
			ch := &child{conn: newConn(strings.NewReader(""), io.Discard), frames: make(chan frame)}
			for b.Loop() {
				r := newRun(ch, 1, &invocation{
					function: "POST",
					args:     []byte(c.args),
					limits:   Options{}.withDefaults().Limits,
				})
				if end := m.invoke(r, p); end.outcome != jsvm.OK {
					b.Fatal(end.err)
				}
				m.heap.restore(m.base)
			}
			b.ReportMetric(float64(len(p.bytes))/1024, "snapshot-KiB")
		})
	}
}
