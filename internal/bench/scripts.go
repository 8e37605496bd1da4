package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
)

// trivialHandler is a script of 20 KB whose handler does little.
func trivialHandler() string {
	var b strings.Builder
	b.WriteString("const helpers = [];\n")
	for i := 0; b.Len() < 19_500; i++ {
		fmt.Fprintf(
			&b,
			"function helper%d(a, b) { const o = {x: a, y: [b, %d, 'text %d']}; if (a > b) return o.x + o.y[0]; "+
				"return Object.keys(o).map(k => k + b).join(',') }\nhelpers.push(helper%d);\n",
			i, i, i, i,
		)
	}
	return b.String() + "export function POST(request) { return {status: 200, body: {ok: true, n: request.n, " +
		"helpers: helpers.length}} }\n"
}

// itemsHandler reads 100 items and calls the host three times.
const itemsHandler = `export async function POST(request, host) {
	const items = request.body.items.filter(i => i.price > 10).map(i => ({id: i.id, total: i.price * i.count, tags: i.tags.join(' ')}))
	const rows = await host.query('select * from t where id = $1', [items[0].id])
	await host.query('insert into t values ($1, $2)', [items.length, items.reduce((sum, i) => sum + i.total, 0)])
	const answer = await host.fetch('things', {method: 'POST', body: {count: items.length, row: rows[0]}})
	return {status: 200, body: {items, answer}}
}
`

// listHandler reads 100 items and calls nothing.
const listHandler = `export function POST(request) {
	const items = request.items.filter(i => i.price > 10).map(i => ({id: i.id, total: i.price * i.count, tags: i.tags.join(' ')}))
	return {status: 200, body: {items, total: items.reduce((sum, i) => sum + i.total, 0)}}
}
`

// itemsRequest is a request with itemsBody.
func itemsRequest() json.RawMessage {
	return fmt.Appendf(nil, `{"body":%s}`, itemsBody())
}

// itemsBody has 100 items in 10 KB.
func itemsBody() json.RawMessage {
	type item struct {
		ID    string   `json:"id"`
		Price float64  `json:"price"`
		Count int      `json:"count"`
		Tags  []string `json:"tags"`
	}
	items := make([]item, 100)
	for i := range items {
		items[i] = item{
			fmt.Sprintf("item-%04d-%s", i, strings.Repeat("x", 20)), float64(i) * 1.25, i % 7,
			[]string{"red", "green", "blue"},
		}
	}
	b, _ := json.Marshal(map[string]any{"items": items})
	return b
}

// handlerFiles writes the handlers and the request for the server with isolated-vm.
func handlerFiles() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "tenantcontent-bench-"); err != nil {
		return "", err
	}
	for name, content := range map[string]string{
		"trivial.js": trivialHandler(),
		"items.js":   itemsHandler,
		"list.js":    listHandler,
		"items.json": string(itemsRequest()),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	return dir, err
}

// scripts measures handlers without a server around them, one caller, against isolated-vm with a
// new isolate for each call.
func scripts(ctx context.Context) (all []result, err error) {
	dir, err := handlerFiles()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, missing := startPeer(ctx, dir, "")
	if missing != nil { // what is measured against it is not reached then
		fmt.Fprintln(os.Stderr, "bench:", missing)
	} else {
		defer func() { err = errors.Join(err, p.stop()) }()
	}
	rt, err := quickjs.New(quickjs.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	for _, c := range []struct {
		name, source string
		request      json.RawMessage
		must         float64
	}{
		{"trivial", trivialHandler(), json.RawMessage(`{"n": 1}`), 2},
		{"items", itemsHandler, itemsRequest(), 1.2},
	} {
		program, err := rt.Compile(ctx, jsvm.Source{Entry: "a.js", Files: jsvm.Files{"a.js": c.source}})
		if err != nil {
			return nil, err
		}
		const d = 1500 * time.Millisecond
		r := result{name: "jsvm " + c.name + ", one caller", engine: "none", must: fmt.Sprintf("≥ %.2f", c.must)}
		var ours, theirs float64
		once := func() (float64, error) { return calls(ctx, rt, program, c.request, d) }
		if missing != nil {
			ours, err = once()
		} else if ours, theirs, r.ratio, err = inTurn(once, func() (float64, error) {
			return p.engine(c.name, d)
		}); err == nil {
			r.bare, r.met = perCall(theirs)+" isolated-vm", r.ratio >= c.must
		}
		if err != nil {
			return nil, err
		}
		r.ours = perCall(ours)
		all = append(all, r)
	}
	return all, nil
}

// perCall returns the time of a call, of which there are n a second.
func perCall(n float64) string { return fmt.Sprintf("%.3fms", 1000/n) }

// calls returns how many calls a second one caller makes.
func calls(
	ctx context.Context, rt jsvm.Runtime, program *jsvm.Program, request json.RawMessage, d time.Duration,
) (float64, error) {
	answer := func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`[{"id":"1","name":"one"}]`), nil
	}
	call := jsvm.Call{
		Function:  "POST",
		Args:      []json.RawMessage{request},
		Functions: map[string]jsvm.Function{"query": answer, "fetch": answer},
	}
	begin, n := time.Now(), 0
	for ; time.Since(begin) < d; n++ {
		r, err := rt.Run(ctx, program, call)
		if err != nil {
			return 0, err
		}
		if r.Outcome != jsvm.OK {
			return 0, r.Error
		}
	}
	return float64(n) / time.Since(begin).Seconds(), nil
}

// peerToken returns a token that the server with isolated-vm accepts.
func peerToken() string {
	text := func(json string) string { return base64.RawURLEncoding.EncodeToString([]byte(json)) }
	signed := text(`{"alg":"HS256","typ":"JWT","kid":"default"}`) + "." + text(`{"key":"bench","iat":1763900000}`)
	mac := hmac.New(sha256.New, []byte("0123456789abcdef0123456789abcdef"))
	mac.Write([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
