package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// shares is the name of the group of measurements of what handlers of some tenants and apps leave
// to those of others.
const shares = "shares of handlers: "

const inTurnName = shares + "100 tenants in turn, 16 callers"

const (
	hostileTenants = 8
	hostileEach    = 8  // handlers of each
	waitingEach    = 64 // of one app
	tenantsInTurn  = 100
)

// shareFiles are the webhooks of each app.
var shareFiles = map[string]string{
	"webhooks/trivial.js": "export const POST = ({request}) => ({ok: true, n: request.body.n})\n",
	"webhooks/endless.js": "export const config = {timeout: 120000}\nexport function POST() { for (;;); }\n",
	"webhooks/waits.js": "export const config = {timeout: 60000}\nexport const POST = () => new Promise((done) " +
		"=> setTimeout(done, 15000, {ok: true}))\n",
}

// sharing is a server whose tenants have two apps each.
type sharing struct {
	*neighbours
	tenants int
	hooks   [][2]string // by tenant: the paths and keys of the calls of each app, with %s for the webhook
}

func (s *sharing) fill(n *neighbours, ctx context.Context, _ *bun.DB, app *tenantcontent.App) error {
	s.neighbours = n
	for i := range s.tenants {
		tenant := fmt.Sprintf("share-%d", i)
		if _, err := app.AddTenant(ctx, tenants.Tenant{ID: tenant}, password); err != nil {
			return err
		}
		var of [2]string
		for j := range of {
			if j > 0 && i > hostileTenants {
				continue
			}
			path, key, err := deployHooks(ctx, app, tenant, fmt.Sprintf("App %d", j), shareFiles)
			if err != nil {
				return err
			}
			of[j] = path + "%s?token=" + key
		}
		s.hooks = append(s.hooks, of)
	}
	return nil
}

// path returns the path of a webhook of one of a tenant's apps.
func (s *sharing) path(tenant, app int, name string) string {
	return fmt.Sprintf(s.hooks[tenant][app], name)
}

// shareRows measures what handlers leave to others.
func shareRows(ctx context.Context, engine string, matches *regexp.Regexp) ([]result, error) {
	s := &sharing{tenants: hostileTenants + 1}
	if matches.MatchString(inTurnName) {
		s.tenants = tenantsInTurn
	}
	rows := matching([]groupRow{
		{inTurnName, s.inTurn},
		{shares + "another tenant beside 8 × 8 endless ones", func(ctx context.Context) (result, error) {
			return s.besideEndless(ctx, hostileTenants, 0, 1000, time.Second)
		}},
		{shares + "another app of a tenant of 8 × 8 endless ones", func(ctx context.Context) (result, error) {
			return s.besideEndless(ctx, 0, 1, 300, 3*time.Second)
		}},
		{shares + "another app of a tenant beside 64 that wait 15 s", s.besideWaiting},
	}, matches)
	if len(rows) == 0 {
		return nil, nil
	}
	return measureRows(ctx, engine, rows, s.fill, func(n *neighbours) error {
		return errors.Join(n.kill(), n.start()) // handlers go on when their senders hang up
	})
}

// inTurn compares calls of 100 tenants in turn with calls of one of them.
func (s *sharing) inTurn(context.Context) (result, error) {
	var turn atomic.Int64
	side := func(tenants int) func() (float64, error) {
		return func() (float64, error) {
			return throughput(s.address, "", callers, 1500*time.Millisecond, func(c *caller, _, _ int) error {
				c.auth = ""
				_, err := c.do(http.MethodPost, s.path(int(turn.Add(1))%tenants, 0, "trivial"), `{"n": 1}`)
				return err
			})
		}
	}
	o, b, ratio, err := inTurn(side(tenantsInTurn), side(1))
	return result{
		ours:  perSecond(o),
		bare:  perSecond(b) + " of one",
		ratio: ratio,
		must:  "≥ 0.70",
		met:   ratio >= 0.7,
	}, err
}

// besideEndless times calls of an app while the first tenants call handlers of their first apps
// that never end.
func (s *sharing) besideEndless(ctx context.Context, tenant, app, calls int, most time.Duration) (result, error) {
	return s.beside(ctx, hostileTenants*hostileEach, func(i int) string {
		return s.path(i%hostileTenants, 0, "endless")
	}, s.path(tenant, app, "trivial"), calls, most)
}

// besideWaiting times calls of an app while handlers of another one of its tenant wait.
func (s *sharing) besideWaiting(ctx context.Context) (result, error) {
	return s.beside(ctx, waitingEach, func(int) string {
		return s.path(0, 0, "waits")
	}, s.path(0, 1, "trivial"), 1000, 100*time.Millisecond)
}

// beside times calls from two callers while some others call something that takes long. Those that
// are refused count.
func (s *sharing) beside(
	ctx context.Context, others int, load func(i int) string, path string, calls int, most time.Duration,
) (result, error) {
	idle, _, err := s.times(path, calls)
	if err != nil {
		return result{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var loading sync.WaitGroup
	var refusedLoad atomic.Int64
	defer loading.Wait()
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: others}}
	for i := range others {
		loading.Go(func() {
			for ctx.Err() == nil {
				req, err := http.NewRequestWithContext(
					ctx, http.MethodPost, "http://"+s.address+load(i), strings.NewReader("{}"),
				)
				if err != nil {
					return
				}
				if res, err := client.Do(req); err == nil {
					_ = res.Body.Close()
					if res.StatusCode == http.StatusServiceUnavailable {
						refusedLoad.Add(1)
					}
				}
			}
		})
	}
	time.Sleep(2 * time.Second) // until all are at work
	took, refused, err := s.times(path, calls)
	if err != nil {
		return result{}, err
	}
	p99, before := percentile(took, 0.99), percentile(idle, 0.99)
	return result{
		ours: fmt.Sprintf(
			"%s, %d of %d refused; of the others %d", percentiles(took), refused, calls,
			refusedLoad.Load(),
		),
		bare:  percentiles(idle) + " without",
		ratio: p99 / before,
		must:  fmt.Sprintf("p99 ≤ %s, 0 refused", most),
		met:   p99 <= most.Seconds() && refused == 0,
	}, nil
}

// times returns how many seconds each call took, of two callers that wait a little after each, and
// how many others were refused.
func (s *sharing) times(path string, calls int) ([]float64, int64, error) {
	const timers = 2
	var running sync.WaitGroup
	took, fails, refused := make([][]float64, timers), make([]error, timers), atomic.Int64{}
	for who := range timers {
		running.Go(func() {
			c, err := dial(s.address, "x")
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			c.auth = ""
			for range calls / timers {
				sent := time.Now()
				_, err := c.do(http.MethodPost, path, `{"n": 1}`)
				if err != nil && strings.Contains(err.Error(), " 503 ") {
					refused.Add(1)
					_ = c.conn.Close()
					c, err = dial(s.address, "x")
					c.auth = ""
				}
				if fails[who] = err; err != nil {
					return
				}
				took[who] = append(took[who], time.Since(sent).Seconds())
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	running.Wait()
	return slices.Concat(took...), refused.Load(), errors.Join(fails...)
}
