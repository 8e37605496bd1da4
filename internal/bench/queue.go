package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps/messages"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/jobs/queue"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	messagestore "github.com/tenantcontent/tenantcontent/internal/store/messages"
	queuestore "github.com/tenantcontent/tenantcontent/internal/store/queue"
)

const (
	queueTime   = 15 * time.Second // how long events are emitted
	killPause   = 5 * time.Second  // between two kills of a node
	queueLease  = 2 * time.Second  // for that long the jobs of a killed node wait
	outsideJob  = "outside"        // the kind of the jobs with effects outside of the database, one for nine events
	mostWaiting = 4000             // jobs: then those who emit wait, too
)

// nodeVariable has the database of a node and its sink, in JSON: the program is a node of the queue
// then.
const nodeVariable = "TENANTCONTENT_BENCH_NODE"

// nodePlace is where a node finds its work.
type nodePlace struct {
	Database string
	// a file with a line for each effect outside of the database: the number of the job's payload,
	// and the job's id
	Sink string
}

// queueTenants have the events.
var queueTenants = []string{"tenant-0", "tenant-1", "tenant-2", "tenant-3"}

// events is the queue with what it does here: each event is a row in a table of the service's
// database, and each job of the kind outside is a line in the sink.
type events struct {
	*messages.Service
	queue *queue.Service
	store *queuestore.Store
	sink  *os.File
}

// listening has each event start something.
type listening struct{ db *bun.DB }

func (listening) CheckInternals(context.Context, string) (string, error) {
	return "", errs.New(errs.NotFound, "App not found.")
}

func (l listening) CheckRecords(ctx context.Context, id string) (string, error) {
	return l.CheckInternals(ctx, id)
}

func (listening) Listens(context.Context, string, string, string) (bool, error) { return true, nil }

// Emitted is the trivial work of an event, in the transaction that removes its job.
func (l listening) Emitted(ctx context.Context, e messages.Emitted) error {
	return bunx.WriteOne(ctx, l.db, e.Tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO bench_effects (event_id) VALUES ($1)`, e.ID)
		return err
	})
}

func newEvents(db *bun.DB, sink string, node queue.Node) (*events, error) {
	e := &events{store: queuestore.New(db)}
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	e.queue = queue.New(queue.Options{Store: e.store, Node: node, Log: quiet})
	e.Service = messages.New(messages.Options{
		Store:  messagestore.New(db),
		Apps:   listening{db},
		Agents: listening{db},
		Queue:  e.queue,
	})
	workers := e.Unchecked().Workers()
	for i := range workers {
		workers[i].Lease = queueLease
	}
	var err error
	if e.sink, err = os.OpenFile(sink, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return nil, err
	}
	return e, e.queue.Add(append(workers, queue.Worker{Kind: outsideJob, AtOnce: 32,
		Lease: queueLease, Do: func(_ context.Context, j queue.Job) error {
			_, err := fmt.Fprintf(e.sink, "%s %s\n", j.Payload, j.ID)
			return err
		}})...)
}

// queueNode is a node of the queue, if the program was started as one: it works until it is killed.
func queueNode() {
	text, ok := os.LookupEnv(nodeVariable)
	if !ok {
		return
	}
	var at nodePlace
	err := json.Unmarshal([]byte(text), &at)
	var db *bun.DB
	if err == nil {
		db, err = engines.Open(at.Database)
	}
	var e *events
	if err == nil {
		e, err = newEvents(db, at.Sink, queue.Node{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: a node of the queue:", err)
		os.Exit(1)
	}
	e.queue.Run(context.Background())
}

// startNode starts a node as a process of its own.
func startNode(at nodePlace) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(at)
	if err != nil {
		return nil, err
	}
	node := exec.Command(program)
	node.Env, node.Stderr = append(os.Environ(), nodeVariable+"="+string(text)), os.Stderr
	return node, node.Start()
}

func kill(node *exec.Cmd) {
	if node.Process != nil {
		_ = node.Process.Kill()
		_ = node.Wait()
	}
}

// queueRows measures the queue if its name matches, in a database of its own.
func queueRows(ctx context.Context, engine string, matches *regexp.Regexp) (all []result, err error) {
	name := "queue, 2 nodes, one killed each 5 s"
	measure := killedNodes
	if engine != "postgres" { // whose file has one writer: the node is in this process
		name, measure = "queue, 1 node", oneNode
	}
	if !matches.MatchString(name) {
		return nil, nil
	}
	fmt.Fprintf(os.Stderr, "%s on %s …\n", name, engine)
	w, err := newWorld(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	err = bunx.Write(ctx, w.db, queueTenants[0], func(ctx context.Context, c bunx.Conn) error {
		// without a key, so that an effect could be there twice
		_, err := c.Exec(ctx, `CREATE TABLE bench_effects (event_id text NOT NULL)`)
		return err
	})
	if err != nil {
		return nil, err
	}
	r, err := measure(ctx, w, nodePlace{w.url, filepath.Join(dir, "sink")})
	r.name, r.engine = name, engine
	return []result{r}, err
}

// killedNodes measures two nodes, each a process, of which one is killed every five seconds, in
// turn, and started again.
func killedNodes(ctx context.Context, w *world, at nodePlace) (r result, err error) {
	var nodes [2]*exec.Cmd
	defer func() {
		for _, node := range nodes {
			if node != nil {
				kill(node)
			}
		}
	}()
	for i := range nodes {
		if nodes[i], err = startNode(at); err != nil {
			return r, err
		}
	}
	killing, end := context.WithCancel(ctx)
	killed := make(chan error, 1)
	go func() {
		each := time.NewTicker(killPause)
		defer each.Stop()
		for i := 0; ; i++ {
			select {
			case <-killing.Done():
				killed <- nil
				return
			case <-each.C:
			}
			kill(nodes[i%2])
			if nodes[i%2], err = startNode(at); err != nil {
				killed <- err
				return
			}
		}
	}()
	e, err := newEvents(w.db, at.Sink, queue.Node{Off: true})
	if err == nil {
		r, err = e.measure(ctx, w)
	}
	end()
	return r, errors.Join(err, <-killed)
}

// oneNode measures a node in this process.
func oneNode(ctx context.Context, w *world, at nodePlace) (result, error) {
	e, err := newEvents(w.db, at.Sink, queue.Node{})
	if err != nil {
		return result{}, err
	}
	return e.measure(ctx, w)
}

// measure emits events from 16 callers for a while and waits until all are done. Then it looks for
// each: in the table and the sink.
func (e *events) measure(ctx context.Context, w *world) (result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ran := make(chan struct{})
	go func() { e.queue.Run(ctx); close(ran) }()
	defer func() { stop(); <-ran; _ = e.sink.Close() }()

	emitted, outside := make([][]string, callers), make([]int, callers)
	fails := make([]error, callers)
	var waiting atomic.Int64
	var emitting sync.WaitGroup
	begin := time.Now()
	for who := range callers {
		emitting.Go(func() {
			tenant := queueTenants[who%len(queueTenants)]
			ctx := actor.With(ctx, actor.Actor{Tenant: tenant, User: "admin"})
			for i := 0; time.Since(begin) < queueTime; i++ {
				if waiting.Load() > mostWaiting {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				if i%10 == 9 {
					n := outside[who]*callers + who
					fails[who] = e.queue.Put(
						ctx, queue.Job{Tenant: tenant, Kind: outsideJob, Payload: fmt.Append(nil, n)},
					)
					outside[who]++
				} else {
					var made messages.Event
					made, fails[who] = e.Emit(ctx, "shop", "order.paid", json.RawMessage(`{"order": 5}`))
					emitted[who] = append(emitted[who], made.ID)
				}
				if fails[who] != nil {
					return
				}
			}
		})
	}
	left := func() (n int, err error) {
		for _, tenant := range queueTenants {
			some, err := e.store.Count(ctx, tenant)
			if err != nil {
				return 0, err
			}
			n += some
		}
		waiting.Store(int64(n))
		return n, nil
	}
	for time.Since(begin) < queueTime {
		if _, err := left(); err != nil {
			return result{}, err
		}
		time.Sleep(200 * time.Millisecond)
	}
	emitting.Wait()
	took := time.Since(begin)
	behind, err := left()
	if err := errors.Join(append(fails, err)...); err != nil {
		return result{}, err
	}
	for n := behind; n > 0; time.Sleep(20 * time.Millisecond) {
		if n, err = left(); err != nil {
			return result{}, err
		}
		if time.Since(begin) > queueTime+time.Minute {
			return result{}, fmt.Errorf("%d jobs were not done within a minute", n)
		}
	}
	return e.account(ctx, w, emitted, outside, func(put int) float64 { return float64(put-behind) / took.Seconds() })
}

// account compares what was emitted with the effects.
func (e *events) account(
	ctx context.Context, w *world, emitted [][]string, outside []int, rate func(put int) float64,
) (result, error) {
	effects := map[string]int{}
	rows, err := w.db.QueryContext(ctx, `SELECT event_id, count(*) FROM bench_effects GROUP BY event_id`)
	if err != nil {
		return result{}, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return result{}, err
		}
		effects[id] = n
	}
	if err := rows.Err(); err != nil {
		return result{}, err
	}
	put, lost, doubled := 0, 0, 0
	for _, ids := range emitted {
		put += len(ids)
		for _, id := range ids {
			switch n := effects[id]; {
			case n == 0:
				lost++
			case n > 1:
				doubled++
			}
		}
	}
	sink, err := os.ReadFile(e.sink.Name())
	if err != nil {
		return result{}, err
	}
	keys, repeated, otherKey := map[string]string{}, 0, 0
	for line := range bytes.Lines(sink) {
		n, key, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		before, again := keys[n]
		if again {
			repeated++
		}
		if again && before != key {
			otherKey++
		}
		keys[n] = cmp.Or(before, key)
	}
	for who, all := range outside {
		put += all
		for i := range all {
			if keys[fmt.Sprint(i*callers+who)] == "" {
				lost++
			}
		}
	}
	perSec := rate(put)
	return result{
		ours: fmt.Sprintf(
			"%s of %d, %d lost, %d doubled; outside %d of %d repeated, %d of them with another key",
			perSecond(perSec), put, lost, doubled, repeated, len(keys), otherKey,
		),
		must: "≥ 2,000/s, 0 lost, 0 doubled, 0 with another key",
		met:  perSec >= 2000 && lost == 0 && doubled == 0 && otherKey == 0,
	}, nil
}
