package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/bundles"
	"github.com/tenantcontent/tenantcontent/content"
	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
	colorstore "github.com/tenantcontent/tenantcontent/internal/store/colors"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/javascript"
	"github.com/tenantcontent/tenantcontent/principals"
	"github.com/tenantcontent/tenantcontent/tenants"
)

// busyTenant is the name of the group of measurements, each of which has a load's name behind it.
const busyTenant = "beside a busy tenant: "

// neighbours is a server process with two tenants: busy, which loads it, and calm, whose requests
// are timed.
type neighbours struct {
	engine     string
	address    string
	url        string // of the database
	busy, calm string // tokens of superusers
	archive    []byte // of busy's bundle all: busyRows datasets
	files      []byte // of busy's bundle files: a library of 100 files
	server     *exec.Cmd
	program    []string // the server's command line
	settings   []string // and its environment
	ends       []func() error
	ctx        context.Context // of requests: it ends with the measurement
}

const busyRows = 10_000

// load is what the callers of the busy tenant do.
type load struct {
	name    string
	callers int
	once    func(n *neighbours, who, i int) error // one request
}

// errRefused is for a request that was answered with 429 or 503.
var errRefused = errors.New("refused")

var loads = []load{
	{"nothing", 0, nil},
	{"24 searches", 24, func(n *neighbours, who, i int) error {
		kind := []string{"datasets", "colors", "users"}[i%3]
		return n.get(fmt.Sprintf("/api/%s?q=%x&limit=20", kind, who*7+i))
	}},
	{"16 pages of 1,000 rows", 16, func(n *neighbours, who, i int) error {
		return n.get(fmt.Sprintf("/api/%s?limit=1000&start=%d", []string{"datasets", "colors"}[i%2], who%10*500))
	}},
	{"8 exports", 8, func(n *neighbours, _, _ int) error {
		return n.send(http.MethodPost, "/api/bundles/all/_export", "", nil)
	}},
	{"3 restores", 3, func(n *neighbours, _, _ int) error {
		return n.send(http.MethodPost, "/api/_restore", bundles.ContentType, n.archive)
	}},
	{"6 imports", 6, func(n *neighbours, _, _ int) error {
		return n.send(http.MethodPost, "/api/_import-bundle?updateRule=overwrite", bundles.ContentType, n.archive)
	}},
	{"6 imports of files", 6, func(n *neighbours, _, _ int) error {
		return n.send(http.MethodPost, "/api/_import-bundle?updateRule=overwrite", bundles.ContentType, n.files)
	}},
	{"16 writers", 16, func(n *neighbours, who, i int) error {
		return n.send(
			http.MethodPut, fmt.Sprintf("/api/colors/color-%06d", (who*631+i*7)%busyRows), "application/json",
			[]byte(`{"color":"#123abc"}`),
		)
	}},
	{"8 uploads of 16 MiB", 8, func(n *neighbours, _, _ int) error {
		return n.send(http.MethodPost, "/api/uploads?filename=x.bin", "application/octet-stream", upload())
	}},
}

// upload is the bytes of an upload.
var upload = sync.OnceValue(func() []byte {
	raw := make([]byte, 16<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(raw)
	return raw
})

// besideBusyTenant measures calm's requests beside each load whose name matches.
func besideBusyTenant(
	ctx context.Context, engine string, matches *regexp.Regexp, d time.Duration,
) (all []result, err error) {
	some := slices.DeleteFunc(slices.Clone(loads), func(l load) bool {
		return !matches.MatchString(busyTenant + l.name)
	})
	rows := matches.MatchString(busyTenant + "10,000 rows")
	logins := matches.MatchString(attacked)
	if len(some) == 0 && !rows && !logins {
		return nil, nil
	}
	n, err := newNeighbours(ctx, engine, (*neighbours).fillBusy)
	defer func() {
		if n != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err != nil {
		return nil, err
	}
	if logins {
		fmt.Fprintf(os.Stderr, "%s on %s …\n", attacked, engine)
		if all, err = n.underAttack(ctx, d); err != nil {
			return nil, err
		}
	}
	for _, l := range some {
		fmt.Fprintf(os.Stderr, "%s%s on %s …\n", busyTenant, l.name, engine)
		r, err := n.beside(ctx, l, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		all = append(all, r)
	}
	if rows {
		r, err := n.perRows(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, r...)
	}
	return all, nil
}

// beside times calm's requests for a while: four readers who rest for 5 ms after each answer, and a
// writer for 20 ms.
func (n *neighbours) beside(ctx context.Context, l load, d time.Duration) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func(before context.Context) { n.ctx = before }(n.ctx)
	n.ctx = ctx
	var busy sync.WaitGroup
	var done, refused atomic.Int64
	failed := make(chan error, l.callers)
	for who := range l.callers {
		busy.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				err := l.once(n, who, i)
				switch {
				case ctx.Err() != nil:
				case errors.Is(err, errRefused):
					refused.Add(1)
					time.Sleep(100 * time.Millisecond)
				case err != nil:
					failed <- err
					return
				default:
					done.Add(1)
				}
			}
		})
	}
	time.Sleep(500 * time.Millisecond) // until all are at work
	var times sync.WaitGroup
	const readers = 4
	took, fails := make([][]float64, readers+1), make([]error, readers+1)
	begin := time.Now()
	for who := range readers + 1 {
		times.Go(func() {
			c, err := dial(n.address, n.calm)
			if err != nil {
				fails[who] = err
				return
			}
			defer func() { _ = c.conn.Close() }()
			for i := 0; time.Since(begin) < d; i++ {
				path := []string{"/api/colors/color-%06d", "/api/colors?limit=20&start=%d", "/api/session?%d"}[i%3]
				method, body, rest := "GET", "", 5*time.Millisecond
				if who == readers {
					path, method, body, rest =
						"/api/colors/color-%06d", "PUT", `{"color":"#123abc"}`, 20*time.Millisecond
				}
				if i%3 == 2 && who < readers {
					path = "/api/session"
				} else {
					path = fmt.Sprintf(path, (who*13+i)%80)
				}
				sent := time.Now()
				if _, err := c.do(method, path, body); err != nil {
					fails[who] = fmt.Errorf("%s %s: %w", method, path, err)
					return
				}
				took[who] = append(took[who], time.Since(sent).Seconds())
				time.Sleep(rest)
			}
		})
	}
	times.Wait()
	whole := time.Since(begin).Seconds() + 0.5
	finished := float64(done.Load()) / whole
	cancel()
	if err := errors.Join(fails...); err != nil {
		return result{}, err
	}
	busy.Wait()
	select {
	case err := <-failed:
		return result{}, err
	default:
	}
	reads, writes := slices.Concat(took[:readers]...), took[readers]
	r := result{
		name: busyTenant + l.name, engine: n.engine, must: "reads p99 ≤ 60ms",
		ours: fmt.Sprintf(
			"reads %s; writes %s; load %.1f/s, %d refused", percentiles(reads), percentiles(writes), finished,
			refused.Load(),
		),
		met: percentile(reads, 0.99) <= 0.060,
	}
	if n.engine == "postgres" {
		r.must += ", writes ≤ 150ms"
		r.met = r.met && percentile(writes, 0.99) <= 0.150
	}
	return r, nil
}

func percentile(all []float64, p float64) float64 {
	s := slices.Sorted(slices.Values(all))
	return s[min(int(p*float64(len(s))), len(s)-1)]
}

func percentiles(all []float64) string {
	return fmt.Sprintf(
		"p50 %s p99 %s max %s", seconds(percentile(all, 0.5)), seconds(percentile(all, 0.99)),
		seconds(percentile(all, 1)),
	)
}

// perRows times one import, one restore and one export of 10,000 rows, and how long a write of the
// other tenant waited at most. The export packs what the restore keeps as the archive of what it
// replaces.
func (n *neighbours) perRows(ctx context.Context) ([]result, error) {
	var all []result
	for _, path := range []string{
		"/api/_import-bundle?updateRule=overwrite", "/api/_restore", "/api/bundles/all/_export",
	} {
		var body []byte
		if !strings.HasSuffix(path, "_export") {
			body = n.archive
		}
		var took, longest []float64
		for range 3 {
			ctx, cancel := context.WithCancel(ctx)
			worst := make(chan float64)
			go func() {
				most := 0.0
				for ctx.Err() == nil {
					sent := time.Now()
					if err := n.as(
						n.calm, http.MethodPut, "/api/colors/color-000001", "application/json",
						[]byte(`{"color":"#123abc"}`),
					); err != nil {
						most = -1
						break
					}
					most = max(most, time.Since(sent).Seconds())
					time.Sleep(5 * time.Millisecond)
				}
				worst <- most
			}()
			sent := time.Now()
			err := n.send(http.MethodPost, path, bundles.ContentType, body)
			took = append(took, time.Since(sent).Seconds())
			cancel()
			longest = append(longest, <-worst)
			if err != nil {
				return nil, err
			}
		}
		all = append(all, result{
			name: busyTenant + "10,000 rows, " + strings.TrimPrefix(path, "/api/"), engine: n.engine,
			ours: fmt.Sprintf("%s; a write waits %s at most", seconds(median(took)), seconds(median(longest))),
		})
	}
	return all, nil
}

func (n *neighbours) get(path string) error { return n.send(http.MethodGet, path, "", nil) }

// send sends a request of the busy tenant.
func (n *neighbours) send(method, path, kind string, body []byte) error {
	return n.as(n.busy, method, path, kind, body)
}

var neighbourClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

func (n *neighbours) as(token, method, path, kind string, body []byte) error {
	req, err := http.NewRequestWithContext(n.ctx, method, "http://"+n.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := neighbourClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	switch {
	case res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests:
		_, _ = io.Copy(io.Discard, res.Body)
		return errRefused
	case res.StatusCode >= 300:
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s %s answered %s: %s", method, path, res.Status, text)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// newNeighbours makes a database with both tenants, has fill add to it, and starts a server on it.
func newNeighbours(
	ctx context.Context, engine string,
	fill func(*neighbours, context.Context, *bun.DB, *tenantcontent.App) error,
) (*neighbours, error) {
	n := &neighbours{engine: engine, ctx: ctx}
	dir, err := os.MkdirTemp("", "tenantcontent-bench-")
	if err != nil {
		return nil, err
	}
	n.ends = append(n.ends, func() error { return os.RemoveAll(dir) })
	w := &world{engine: engine}
	url, err := w.database(ctx)
	n.ends = append(n.ends, w.close)
	if err != nil {
		return n, err
	}
	key := tenantcontent.NewSecretKey()
	n.url = url
	if err := n.populate(ctx, url, key, fill); err != nil {
		return n, err
	}
	binary := filepath.Join(dir, "tenantcontent")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/tenantcontent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return n, fmt.Errorf("%w: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return n, err
	}
	n.address = l.Addr().String()
	_ = l.Close()
	n.program = []string{binary, "serve", "--listen", n.address, "--data", filepath.Join(dir, "data")}
	n.settings = []string{
		"TENANTCONTENT_SECRET_KEY=" + key, "TENANTCONTENT_DATABASE=" + url, "TENANTCONTENT_LOG_LEVEL=warn",
		"TENANTCONTENT_TRUSTED_PROXIES=127.0.0.1",
	}
	n.ends = append(n.ends, n.kill)
	return n, n.start()
}

// start starts the server and waits until it answers.
func (n *neighbours) start() error {
	n.server = exec.Command(n.program[0], n.program[1:]...)
	n.server.Env = append(os.Environ(), n.settings...)
	n.server.Stderr = os.Stderr
	if err := n.server.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if n.as(n.calm, http.MethodGet, "/api/session", "", nil) == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the server was not ready in 20 s")
		}
	}
}

// kill ends the server, if it runs.
func (n *neighbours) kill() error {
	if n.server != nil && n.server.Process != nil {
		_ = n.server.Process.Kill()
		_ = n.server.Wait()
	}
	return nil
}

// populate adds both tenants, busy with 10,000 colors and calm with 100, and calls fill.
func (n *neighbours) populate(
	ctx context.Context, url, key string, fill func(*neighbours, context.Context, *bun.DB, *tenantcontent.App) error,
) error {
	db, err := engines.Open(url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	if err := tenantcontent.Migrate(ctx, db); err != nil {
		return err
	}
	app, err := tenantcontent.Open(tenantcontent.Config{
		Scripts:   javascript.New(javascript.Options{}),
		DB:        db,
		SecretKey: key,
		Log:       slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	tokens := map[string]*string{"busy": &n.busy, "calm": &n.calm}
	store := colorstore.New(db)
	for tenant, token := range tokens {
		if _, err := app.AddTenant(
			ctx, tenants.Tenant{ID: tenant, Settings: tenants.Settings{AI: true}}, password,
		); err != nil {
			return err
		}
		login, err := app.Sessions.Login(ctx, principals.Credentials{
			Tenant: tenant, Domain: "local", Username: "admin", Password: password,
		})
		if err != nil {
			return err
		}
		*token = login.Token
		many := 100
		if tenant == "busy" {
			many = busyRows
		}
		for i := 0; i < many; i += 100 {
			if err := store.PutAll(ctx, tenant, someColors("color", i, 100)); err != nil {
				return err
			}
		}
	}
	if err := fill(n, ctx, db, app); err != nil {
		return err
	}
	if n.engine == "postgres" {
		_, err = db.ExecContext(ctx, "ANALYZE")
	}
	return err
}

// fillBusy adds to busy 10,000 datasets of 1 KB and a library with files.
func (n *neighbours) fillBusy(ctx context.Context, db *bun.DB, app *tenantcontent.App) error {
	admin := actor.With(ctx, actor.Actor{Tenant: "busy", User: "admin", Superuser: true})
	ids := make([]string, busyRows)
	err := bunx.Write(ctx, db, "busy", func(ctx context.Context, c bunx.Conn) error {
		r, now := rand.New(rand.NewPCG(1, 2)), bunx.At(time.Now())
		for i := range ids {
			ids[i] = uuid.NewSHA1(uuid.NameSpaceURL, []byte{byte(i), byte(i >> 8)}).String()
			data := fmt.Sprintf(`{"formula":"%0900x"}`, r.Uint64())
			name := fmt.Sprintf("dataset-%d %x", i, r.Uint64())
			_, err := c.Exec(ctx,
				`INSERT INTO tc_entities (tenant_id, kind, id, name, label, search, slug, owner_id, data,
					system, created_at, updated_at)
				VALUES ('busy', 'dataset', $1, $2, $2, $2, $3, 'admin', $4, $5, $6, $6)`, ids[i], name,
				fmt.Sprintf("dataset-%d", i), data, false, now)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n.archive, err = n.archiveOf(admin, app, "report", map[string]any{"datasetIds": ids}, "all"); err != nil {
		return err
	}
	n.files, err = n.archiveOf(admin, app, "library", map[string]any{}, "files")
	return err
}

// archiveOf makes an entity, which a bundle refers to, and exports that.
func (n *neighbours) archiveOf(
	admin context.Context, app *tenantcontent.App, kind entity.Kind, data map[string]any, slug string,
) ([]byte, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	e, err := app.Content.Create(admin, content.Entity{Kind: kind, Name: slug, Data: raw})
	if err != nil {
		return nil, err
	}
	if kind == content.Library {
		for i := range 100 {
			if _, err := app.Content.PutFile(
				admin, e.ID, entity.File{
					Path: fmt.Sprintf("f/%d.bin", i),
				}, bytes.NewReader(upload()[i<<16:(i+1)<<16]),
			); err != nil {
				return nil, err
			}
		}
	}
	b, err := app.Bundles.Create(admin, bundles.Bundle{Name: slug, Slug: slug})
	if err != nil {
		return nil, err
	}
	if _, err := app.Bundles.CreateEntry(admin, b.ID, bundles.Entry{Type: string(kind), EntityID: e.ID}); err != nil {
		return nil, err
	}
	out, err := app.Bundles.Export(admin, b.ID)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	err = out.Write(admin, &file)
	return file.Bytes(), err
}

// close ends the server first.
func (n *neighbours) close() error {
	var errs []error
	for _, end := range slices.Backward(n.ends) {
		errs = append(errs, end())
	}
	return errors.Join(errs...)
}
