// Package bunstore stores the server code of apps in PostgreSQL or SQLite. The root imports it.
package bunstore

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/bunx"
)

// what is the name of a deployment in errors.
const what = "Deployment"

// Store implements handlers.Store.
type Store struct {
	db       *bun.DB
	notifier bunx.Notifier
}

// New returns a Store. The tables must exist: see tenantcontent.Migrate.
func New(db *bun.DB) *Store { return &Store{db: db} }

// Notify makes the store call changed after each commit that changes the deployed code of apps.
func (s *Store) Notify(changed func(tenant string)) *Store {
	s.notifier.Set(changed)
	return s
}

// deployment is a row of tc_handler_deployments.
type deployment struct {
	tenant, app string
	sources     []byte
	at          time.Time
}

var deployments = bunx.NewTable("tc_handler_deployments", "d", []bunx.Column[deployment]{
	{Name: "tenant_id", Key: true, Field: func(d *deployment) any { return &d.tenant }},
	{Name: "app_id", Key: true, Field: func(d *deployment) any { return &d.app }},
	{Name: "sources", Field: func(d *deployment) any { return &d.sources }},
	{Name: "created_at", Field: func(d *deployment) any { return bunx.TimeOf(&d.at) }},
})

// route is a row of tc_handler_routes.
type route struct {
	tenant, app string
	handlers.Route
}

var routes = bunx.NewTable("tc_handler_routes", "r", []bunx.Column[route]{
	{Name: "tenant_id", Key: true, Value: func(r *route) any { return r.tenant }},
	{Name: "app_id", Key: true, Value: func(r *route) any { return r.app }},
	{Name: "area", Key: true, Field: func(r *route) any { return (*string)(&r.Area) }},
	{Name: "path", Key: true, Field: func(r *route) any { return &r.Path }},
	{Name: "file", Field: func(r *route) any { return &r.File }},
	{Name: "methods", Field: func(r *route) any { return bunx.JSONArray(&r.Methods) }},
	{Name: "config", Field: func(r *route) any { return bunx.JSON(&r.Config) }},
	{Name: "hash", Field: func(r *route) any { return &r.Hash }},
})

// program is a row of tc_handler_programs.
type program struct {
	tenant string
	handlers.Program
	about json.RawMessage
	at    time.Time
}

// about is the part of a program that is stored as JSON.
type about struct {
	Hash    string   `json:"hash"` // of the engine
	Entry   string   `json:"entry"`
	Exports []string `json:"exports"`
	Files   []string `json:"files"`
}

var programs = bunx.NewTable("tc_handler_programs", "p", []bunx.Column[program]{
	{Name: "tenant_id", Key: true, Value: func(p *program) any { return p.tenant }},
	{Name: "hash", Key: true, Field: func(p *program) any { return &p.Program.Hash }},
	{Name: "engine", Key: true, Field: func(p *program) any { return &p.Engine }},
	{Name: "about", Field: func(p *program) any { return bunx.JSON(&p.about) }},
	{Name: "code", Field: func(p *program) any { return &p.Code }},
	{Name: "map", Field: func(p *program) any { return &p.Map }},
	{Name: "used_at", Field: func(p *program) any { return bunx.TimeOf(&p.at) }},
})

var (
	selectRoutes   = routes.Select(`WHERE tenant_id = $1 AND app_id = $2 ORDER BY area, path`)
	selectPrograms = programs.Select(`WHERE tenant_id = $1 AND hash = $2 ORDER BY used_at DESC, engine`)
	usedAgain      = programs.Overwrite("used_at")
)

// Routes implements handlers.Store.
func (s *Store) Routes(ctx context.Context, tenant, app string) ([]handlers.Route, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectRoutes, tenant, app)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (handlers.Route, error) {
		r, err := routes.Scan(rows)
		return r.Route, err
	})
	return all, bunx.Err(err, what)
}

// Sources implements handlers.Store.
func (s *Store) Sources(ctx context.Context, tenant, app string) (map[string][]byte, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	var packed []byte
	err := c.One(
		ctx, what, `SELECT sources FROM tc_handler_deployments WHERE tenant_id = $1 AND app_id = $2`,
		[]any{tenant, app}, &packed,
	)
	if err != nil {
		return nil, err
	}
	return unpack(packed)
}

// Put implements handlers.Store.
func (s *Store) Put(ctx context.Context, tenant, app string, d handlers.Deployment, added []handlers.Program) error {
	packed, err := pack(d.Sources)
	if err != nil {
		return err
	}
	rows := make([]route, len(d.Routes))
	for i, r := range d.Routes {
		rows[i] = route{tenant, app, r}
	}
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		if _, err := deployments.Insert(
			ctx, c, deployments.OnConflict, deployment{tenant, app, packed, d.At},
		); err != nil {
			return bunx.Err(err, what)
		}
		if err := s.add(ctx, c, tenant, d.At, added); err != nil {
			return err
		}
		if _, err := c.Exec(
			ctx, `DELETE FROM tc_handler_routes WHERE tenant_id = $1 AND app_id = $2`, tenant, app,
		); err != nil {
			return bunx.Err(err, what)
		}
		_, err := routes.Insert(ctx, c, "", rows...)
		return bunx.Err(err, what)
	})
}

// add adds programs in the order of their hashes, so that transactions that add the same programs
// do not deadlock.
func (s *Store) add(ctx context.Context, c bunx.Conn, tenant string, at time.Time, added []handlers.Program) error {
	added = slices.SortedFunc(slices.Values(added), func(a, b handlers.Program) int {
		return strings.Compare(a.Hash, b.Hash)
	})
	for _, p := range added {
		text, err := json.Marshal(about{p.Program.Hash, p.Entry, p.Exports, p.Files})
		if err != nil {
			return err
		}
		row := program{tenant: tenant, Program: p, about: text, at: at}
		if row.Map == nil {
			row.Map = []byte{}
		}
		if _, err := programs.Insert(ctx, c, usedAgain, row); err != nil {
			return bunx.Err(err, what)
		}
	}
	return nil
}

// Programs implements handlers.Store.
func (s *Store) Programs(ctx context.Context, tenant, hash string) ([]handlers.Program, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectPrograms, tenant, hash)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (handlers.Program, error) {
		p, err := programs.Scan(rows)
		if err != nil {
			return handlers.Program{}, err
		}
		var a about
		if err := json.Unmarshal(p.about, &a); err != nil {
			return handlers.Program{}, err
		}
		p.Program.Program.Hash, p.Entry, p.Exports, p.Files = a.Hash, a.Entry, a.Exports, a.Files
		return p.Program, nil
	})
	return all, bunx.Err(err, what)
}

// Add implements handlers.Store.
func (s *Store) Add(ctx context.Context, tenant string, p handlers.Program, at time.Time) error {
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		return s.add(ctx, c, tenant, at, []handlers.Program{p})
	})
}

// Undeploy implements handlers.Store. The database deletes the routes with their deployments.
func (s *Store) Undeploy(ctx context.Context, tenant, app string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := c.Exec(ctx, `DELETE FROM tc_handler_deployments WHERE tenant_id = $1 AND app_id = $2`, tenant, app)
		return bunx.Err(err, what)
	})
}

// Remove implements handlers.Store.
func (s *Store) Remove(ctx context.Context, tenant string, apps []string) error {
	return s.notifier.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		for _, table := range []string{"tc_handler_deployments", "tc_handler_calls"} {
			if _, err := c.Exec(
				ctx, `DELETE FROM `+table+` WHERE tenant_id = $1 AND app_id `+c.OneOf(2), tenant,
				bunx.Keys(apps),
			); err != nil {
				return bunx.Err(err, what)
			}
		}
		return nil
	})
}

// calls is a row of tc_handler_calls.
type calls struct {
	tenant string
	handlers.CallsOf
}

var callsTable = bunx.NewTable("tc_handler_calls", "c", []bunx.Column[calls]{
	{Name: "tenant_id", Key: true, Value: func(c *calls) any { return c.tenant }},
	{Name: "app_id", Key: true, Field: func(c *calls) any { return &c.App }},
	{Name: "day", Key: true, Field: func(c *calls) any { return &c.Day }},
	{Name: "area", Key: true, Field: func(c *calls) any { return &c.Area }},
	{Name: "method", Key: true, Field: func(c *calls) any { return &c.Method }},
	{Name: "path", Key: true, Field: func(c *calls) any { return &c.Path }},
	{Name: "n", Field: func(c *calls) any { return &c.N }},
	{Name: "failed", Field: func(c *calls) any { return &c.Failed }},
	{Name: "milliseconds", Field: func(c *calls) any { return &c.Milliseconds }},
})

const addCalls = ` ON CONFLICT (tenant_id, app_id, day, area, method, path) DO UPDATE SET n = tc_handler_calls.n + excluded.n,
	failed = tc_handler_calls.failed + excluded.failed, milliseconds = tc_handler_calls.milliseconds + excluded.milliseconds`

var selectCalls = callsTable.Select(`WHERE tenant_id = $1 AND app_id = $2 AND day >= $3 ` +
	`ORDER BY day, area, path, method`)

// AddCalls implements handlers.Store. Rows are written in the order of their keys, so that two
// nodes do not deadlock.
func (s *Store) AddCalls(ctx context.Context, tenant string, counted map[handlers.Call]handlers.Calls) error {
	if len(counted) == 0 {
		return nil
	}
	rows := make([]calls, 0, len(counted))
	for call, n := range counted {
		rows = append(rows, calls{tenant, handlers.CallsOf{Call: call, Calls: n}})
	}
	slices.SortFunc(rows, func(a, b calls) int {
		return cmp.Or(
			strings.Compare(a.App, b.App), strings.Compare(a.Day, b.Day), strings.Compare(a.Area, b.Area),
			strings.Compare(a.Method, b.Method), strings.Compare(a.Path, b.Path),
		)
	})
	return bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		_, err := callsTable.Insert(ctx, c, addCalls, rows...)
		return bunx.Err(err, what)
	})
}

// Calls implements handlers.Store.
func (s *Store) Calls(ctx context.Context, tenant, app, since string) ([]handlers.CallsOf, error) {
	ctx, c := bunx.For(ctx, s.db, tenant)
	rows, err := c.Rows(ctx, selectCalls, tenant, app, since)
	all, err := bunx.Scan(rows, err, func(rows *sql.Rows) (handlers.CallsOf, error) {
		r, err := callsTable.Scan(rows)
		return r.CallsOf, err
	})
	return all, bunx.Err(err, what)
}

// Sweep implements handlers.Store. A transaction that uses a program again sets its time first, so
// the program is not removed.
func (s *Store) Sweep(ctx context.Context, tenant string, before time.Time, since string) (n int, err error) {
	for {
		looked, removed, err := s.sweepPrograms(ctx, tenant, before)
		if n += removed; err != nil {
			return n, err
		}
		if looked < programsAtOnce {
			break
		}
		if err := entity.Step(ctx); err != nil {
			return n, err
		}
	}
	days, err := bunx.DeleteSteps(
		ctx, s.db, tenant, "tc_handler_calls", "app_id, day, area, method, path", `day < $2`, since,
	)
	return n + days, err
}

// programsAtOnce is the number of programs that are checked in one transaction.
const programsAtOnce = 100

// sweepPrograms checks some of the programs that may not have a route any more, and removes those
// without one. The others are not checked again until they lose a route. The rows of the programs
// are locked before the routes are read, so a transaction that removes a route marks its program
// after this one.
func (s *Store) sweepPrograms(ctx context.Context, tenant string, before time.Time) (looked, removed int, err error) {
	err = bunx.Write(ctx, s.db, tenant, func(ctx context.Context, c bunx.Conn) error {
		skip := ""
		if c.Postgres() {
			skip = " FOR UPDATE SKIP LOCKED"
		}
		rows, err := c.Rows(ctx,
			`UPDATE tc_handler_programs SET loose = false WHERE tenant_id = $1 AND (hash, engine) IN (
			SELECT hash, engine FROM tc_handler_programs WHERE tenant_id = $1 AND loose AND used_at < $2 LIMIT $3`+
				skip+`) RETURNING hash`,
			tenant,
			bunx.At(before), programsAtOnce)
		hashes, err := bunx.Scan(rows, err, bunx.Text)
		if looked = len(hashes); err != nil || looked == 0 {
			return bunx.Err(err, what)
		}
		removed, err = c.Exec(ctx,
			`DELETE FROM tc_handler_programs WHERE tenant_id = $1 AND NOT loose AND used_at < $2 AND hash `+
				c.OneOf(3)+` AND NOT EXISTS
			(SELECT 1 FROM tc_handler_routes r WHERE r.tenant_id = $1 AND r.hash = tc_handler_programs.hash)`, tenant,
			bunx.At(before), bunx.Keys(hashes))
		return bunx.Err(err, what)
	})
	return looked, removed, err
}

// pack returns sources in the stored form.
func pack(sources map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	err := json.NewEncoder(w).Encode(sources)
	err = errors.Join(err, w.Close())
	return b.Bytes(), err
}

func unpack(packed []byte) (sources map[string][]byte, err error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return sources, json.Unmarshal(raw, &sources)
}
