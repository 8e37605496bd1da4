package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/sessions"
)

// hooks is a server whose tenants busy and calm have apps with webhooks.
type hooks struct {
	*neighbours
	paths map[string]string // of the calls of a tenant's first app, up to the name of the webhook
	keys  map[string]string // of it
	count int               // apps of each tenant
}

// webhookFiles are the files of an app.
var webhookFiles = map[string]string{
	"webhooks/trivial.js": "export const POST = ({request}) => ({ok: true, n: request.body.n})\n",
	"webhooks/large.js":   strings.Replace(trivialHandler(), "POST(request)", "POST({request: {body: request}})", 1),
	"webhooks/list.js":    strings.Replace(listHandler, "POST(request)", "POST({request: {body: request}})", 1),
	"webhooks/loop.js":    "export const config = {timeout: 1000}\nexport function POST() { for (;;); }\n",
}

// fillHooks deploys apps.
func (h *hooks) fillHooks(n *neighbours, ctx context.Context, _ *bun.DB, app *tenantcontent.App) error {
	h.neighbours, h.paths, h.keys = n, map[string]string{}, map[string]string{}
	for _, tenant := range []string{"busy", "calm"} {
		for i := range h.count {
			path, key, err := deployHooks(ctx, app, tenant, fmt.Sprintf("App %d", i), webhookFiles)
			if err != nil {
				return err
			}
			if i == 0 {
				h.paths[tenant], h.keys[tenant] = path, key
			}
		}
	}
	return nil
}

// deployHooks deploys an app with webhooks, and returns the path of their calls up to the name of
// the webhook, and a key.
func deployHooks(
	ctx context.Context, app *tenantcontent.App, tenant, name string, files map[string]string,
) (path, key string, err error) {
	admin := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin", Superuser: true})
	v, err := app.Apps.Create(admin, apps.App{Type: apps.Report, Name: name})
	if err != nil {
		return "", "", err
	}
	for name, content := range files {
		if _, err := app.Apps.PutFile(admin, v.ID, entity.File{
			Path: name, ContentType: "text/javascript",
		}, strings.NewReader(content)); err != nil {
			return "", "", err
		}
	}
	if _, err := app.Apps.Deploy(admin, v.ID, apps.PublishOptions{}); err != nil {
		return "", "", err
	}
	hooks := sessions.TokensOf{Type: sessions.Webhook, EntityID: v.ID}
	t, _, err := app.Sessions.CreateToken(admin, hooks, sessions.NewToken{})
	if err != nil {
		return "", "", err
	}
	keys, err := app.Webhooks.Keys(admin, v.ID)
	if err != nil {
		return "", "", err
	}
	key, err = keys(t.ID, t.CreatedAt)
	return "/api/apps/" + v.ID + "/_hook/", key, err
}

func (h *hooks) path(tenant, name string) string {
	return h.paths[tenant] + name + "?token=" + h.keys[tenant]
}

// webhookRows measures the webhooks whose names match.
func webhookRows(
	ctx context.Context, engine string, matches *regexp.Regexp, d time.Duration, calls int,
) ([]result, error) {
	const idle = "webhook, 200 apps idle"
	h := &hooks{count: 1}
	during := func(measure func(context.Context, time.Duration) (result, error)) func(context.Context) (result, error) {
		return func(ctx context.Context) (result, error) { return measure(ctx, d) }
	}
	rows := matching([]groupRow{
		{idle, during(h.idle)},
		{"webhook trivial, 1 caller", during(h.one)},
		{"webhook trivial, 16 callers", during(h.sixteen)},
		{"webhook trivial of 20 KB, 16 callers", during(h.largeBesidePeer)},
		{"webhook of 100 items in 10 KB, 16 callers", during(h.listBesidePeer)},
		{"webhook beside for(;;)", during(h.besideLoop)},
		{fmt.Sprintf("webhook %d calls", calls), func(ctx context.Context) (result, error) {
			return h.many(ctx, calls)
		}},
	}, matches)
	if len(rows) == 0 {
		return nil, nil
	}
	if matches.MatchString(idle) {
		h.count = 100 // of each of two tenants
	}
	return measureRows(ctx, engine, rows, h.fillHooks, nil)
}

// times calls a webhook from some callers for a while, each of which rests between two calls, and
// returns how long the calls took.
func (h *hooks) times(callers int, d, rest time.Duration, path string) (took []float64, perSecond float64, err error) {
	all, fails := make([][]float64, callers), make([]error, callers)
	var running sync.WaitGroup
	begin := time.Now()
	for who := range callers {
		running.Go(func() {
			c, err := dial(h.address, "x")
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			c.auth = ""
			for time.Since(begin) < d {
				sent := time.Now()
				if _, fails[who] = c.do("POST", path, `{"n": 1}`); fails[who] != nil {
					return
				}
				all[who] = append(all[who], time.Since(sent).Seconds())
				time.Sleep(rest)
			}
		})
	}
	running.Wait()
	took = slices.Concat(all...)
	return took, float64(len(took)) / time.Since(begin).Seconds(), errors.Join(fails...)
}

// one times the calls of one caller.
func (h *hooks) one(_ context.Context, d time.Duration) (result, error) {
	if _, _, err := h.times(1, time.Second, 0, h.path("calm", "trivial")); err != nil { // to warm up
		return result{}, err
	}
	took, _, err := h.times(1, d, 0, h.path("calm", "trivial"))
	if err != nil {
		return result{}, err
	}
	return result{ours: percentiles(took), must: "p50 < 2ms", met: percentile(took, 0.5) < 0.002}, nil
}

// sixteen times the calls of 16 callers.
func (h *hooks) sixteen(_ context.Context, d time.Duration) (result, error) {
	if _, _, err := h.times(callers, time.Second, 0, h.path("calm", "trivial")); err != nil {
		return result{}, err
	}
	took, rate, err := h.times(callers, d, 0, h.path("calm", "trivial"))
	if err != nil {
		return result{}, err
	}
	return result{
		ours: perSecond(rate) + " " + percentiles(took), must: "≥ 2,000/s, p50 < 8ms, p99 < 40ms",
		met: rate >= 2000 && percentile(took, 0.5) < 0.008 && percentile(took, 0.99) < 0.040,
	}, nil
}

// largeBesidePeer calls a handler of 20 KB that does little.
func (h *hooks) largeBesidePeer(ctx context.Context, _ time.Duration) (result, error) {
	return h.besidePeer(ctx, "large", "trivial", `{"n": 1}`, 2)
}

// listBesidePeer calls a handler with a body of 10 KB, of which it answers most.
func (h *hooks) listBesidePeer(ctx context.Context, _ time.Duration) (result, error) {
	return h.besidePeer(ctx, "list", "list", string(itemsBody()), 1.2)
}

// besidePeer calls a handler from 16 callers, in turn with a server with isolated-vm, where it has
// the name theirs. That server also checks a token, runs the handler in a new isolate, and records
// each call in a database of the same kind, many at once.
func (h *hooks) besidePeer(ctx context.Context, name, theirs, body string, must float64) (r result, err error) {
	r.must = fmt.Sprintf("≥ %.2f", must)
	dir, err := handlerFiles()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	side := func(address, path string) func() (float64, error) {
		return func() (float64, error) {
			return throughput(address, "", callers, 1500*time.Millisecond, func(c *caller, _, _ int) error {
				c.auth = ""
				_, err := c.do(http.MethodPost, path, body)
				return err
			})
		}
	}
	ours := side(h.address, h.path("calm", name))
	database := h.url
	if h.engine != "postgres" {
		database = "sqlite:" + filepath.Join(dir, "peer.db")
	}
	p, missing := startPeer(ctx, dir, database)
	if missing != nil {
		fmt.Fprintln(os.Stderr, "bench:", missing)
		n, err := ours()
		r.ours = perSecond(n)
		return r, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	o, b, ratio, err := inTurn(ours, side(p.address, "/hook/"+theirs+"?token="+peerToken()))
	r.ours, r.bare, r.ratio, r.met = perSecond(o), perSecond(b)+" isolated-vm", ratio, ratio >= must
	return r, err
}

// besideLoop times the calls of one tenant while 16 callers of another one call what never ends.
// The median ratio of three rounds counts.
func (h *hooks) besideLoop(ctx context.Context, d time.Duration) (result, error) {
	type round struct{ quiet, flooded []float64 }
	var rounds []round
	for range 3 {
		quiet, _, err := h.times(2, d/2, 5*time.Millisecond, h.path("calm", "trivial"))
		if err != nil {
			return result{}, err
		}
		flood, end := context.WithCancel(ctx)
		var flooding sync.WaitGroup
		for range callers {
			flooding.Go(func() {
				for flood.Err() == nil {
					_ = h.as("x", "POST", h.path("busy", "loop"), "application/json", []byte("{}")) // 504, or 503
				}
			})
		}
		time.Sleep(500 * time.Millisecond) // until all are at work
		flooded, _, err := h.times(2, d/2, 5*time.Millisecond, h.path("calm", "trivial"))
		end()
		flooding.Wait()
		if err != nil {
			return result{}, err
		}
		rounds = append(rounds, round{quiet, flooded})
	}
	ratio := func(r round) float64 { return percentile(r.flooded, 0.99) / percentile(r.quiet, 0.99) }
	slices.SortFunc(rounds, func(a, b round) int { return int(1000 * (ratio(a) - ratio(b))) })
	r := rounds[1]
	return result{
		ours:  "p99 " + seconds(percentile(r.flooded, 0.99)),
		bare:  "p99 " + seconds(percentile(r.quiet, 0.99)) + " quiet",
		ratio: ratio(r), must: "p99 < 3.00", met: ratio(r) < 3,
	}, nil
}

// many makes calls, and counts those that are recorded and what memory has grown by.
func (h *hooks) many(ctx context.Context, calls int) (result, error) {
	before, err := h.recorded(ctx)
	if err != nil {
		return result{}, err
	}
	memory := h.memory()
	fails := make([]error, callers)
	var running sync.WaitGroup
	for who := range callers {
		running.Go(func() {
			c, err := dial(h.address, "x")
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			for i := who; i < calls && fails[who] == nil; i += callers {
				_, fails[who] = c.do("POST", h.path("calm", "trivial"), `{"n": 1}`)
			}
		})
	}
	running.Wait()
	if err := errors.Join(fails...); err != nil {
		return result{}, err
	}
	grown := h.memory() - memory
	after, err := h.recorded(ctx)
	return result{
		ours: fmt.Sprintf("%d recorded, memory %+.0f MiB", after-before, grown),
		must: fmt.Sprintf("%d recorded, memory < +50 MiB", calls), met: after-before == calls && grown < 50,
	}, err
}

var counted = regexp.MustCompile(`"count":(\d+)`)

// recorded returns how many calls of calm's app the service counts.
func (h *hooks) recorded(ctx context.Context) (n int, err error) {
	req, err := http.NewRequestWithContext(
		ctx, http.MethodGet, "http://"+h.address+strings.TrimSuffix(h.paths["calm"], "_hook/")+"webhooks", nil,
	)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+h.calm)
	res, err := neighbourClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	for _, m := range counted.FindAllSubmatch(body, -1) {
		day, _ := strconv.Atoi(string(m[1]))
		n += day
	}
	return n, err
}

// idle reports the memory of the server and its children, with an app of each tenant called once,
// when nothing is called.
func (h *hooks) idle(context.Context, time.Duration) (result, error) {
	for _, tenant := range []string{"busy", "calm"} {
		if err := h.as("x", "POST", h.path(tenant, "trivial"), "application/json", []byte(`{"n": 1}`)); err != nil {
			return result{}, err
		}
	}
	time.Sleep(3 * time.Second)
	m := h.memory()
	return result{ours: fmt.Sprintf("%.0f MiB", m), must: "< 300 MiB", met: m < 300}, nil
}

// memory returns the MiB of memory that the server and its children have for themselves, and their
// shares of what they have together.
func (h *hooks) memory() (total float64) {
	parent := map[string]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		if fields := bytes.Fields(rest); len(fields) > 1 {
			parent[filepath.Base(dir)] = string(fields[1])
		}
	}
	server := strconv.Itoa(h.server.Process.Pid)
	for pid := range parent {
		of := pid
		for of != "" && of != server {
			of = parent[of]
		}
		if of == "" {
			continue
		}
		rollup, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
		for line := range strings.Lines(string(rollup)) {
			if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
				kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
				total += kib / 1024
			}
		}
	}
	return total
}
