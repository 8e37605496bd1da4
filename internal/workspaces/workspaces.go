// Package workspaces keeps a SQL database for each app, or draft, that the app's own SQL runs in:
// its handlers' queries and its migrations. A Driver makes the databases and keeps them apart;
// internal/workspaces/sqlite and internal/workspaces/postgres are ready ones.
//
// The callers of a Service have checked who may use an app. No method needs an actor.
package workspaces

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/entity"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/clock"
	"github.com/tenantcontent/tenantcontent/internal/text/uuids"
)

// Conn is a connection to a workspace, for one caller at a time. Close it.
type Conn interface {
	// Query runs one statement, a transaction of its own, and returns its rows as a JSON array of
	// objects; it is empty for a statement that returns none. params is a JSON array of the values
	// of $1, $2 and so on, or empty. The statement ends with ctx.
	//
	// A statement that can make the workspace larger fails with the error of Room(ctx, 1), if there
	// is one. Those that delete, drop or truncate do not, so that room can be made.
	//
	// If ReadOnly(ctx), the statement can only read: one that writes fails with errs.Forbidden and
	// changes nothing.
	//
	// Errors: errs.Invalid with the engine's message for a fault in the statement or in params;
	// errs.Conflict for a value that is there already in a unique column; errs.TooLarge for a full
	// workspace and for too large a result; errs.Unavailable; the error of ctx when it ends.
	Query(ctx context.Context, statement string, params json.RawMessage) (rows json.RawMessage, err error)
	Close() error
}

type readOnlyKey struct{}

// WithReadOnly returns a context in which the statements of a Conn can only read.
func WithReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// ReadOnly reports whether the context is one of WithReadOnly.
func ReadOnly(ctx context.Context) bool { return ctx.Value(readOnlyKey{}) != nil }

type roomKey struct{}

// WithRoom returns a context in which the statements of a Conn are bounded by what room returns:
// how many bytes may still be stored, and an error if n bytes do not fit.
func WithRoom(ctx context.Context, room func(ctx context.Context, n int64) (left int64, err error)) context.Context {
	return context.WithValue(ctx, roomKey{}, room)
}

// Room returns how many bytes statements may still store, and an error if n bytes do not fit.
// Without WithRoom any number fits.
func Room(ctx context.Context, n int64) (left int64, err error) {
	if room, ok := ctx.Value(roomKey{}).(func(context.Context, int64) (int64, error)); ok {
		return room(ctx, n)
	}
	return math.MaxInt64, nil
}

// ErrWrites is the error of a statement that writes where statements can only read.
var ErrWrites = errs.New(errs.Forbidden, "The statement writes, and statements can only read here.")

// Workspace names a workspace. Tenant and App are no parts of paths or names of objects: a Driver
// derives those.
type Workspace struct {
	Tenant, App string
	Password    string // a secret of the workspace that never changes, for drivers whose engine has log-ins
}

// Driver makes workspaces and connects to them. Its methods may be called from several goroutines.
// workspacestest.Test checks one.
type Driver interface {
	// Engine returns the name of the SQL engine, such as "sqlite": x.sqlite.sql is then used in
	// place of x.sql.
	Engine() string
	// Connect returns a connection to a workspace, which it makes if there is none. A full server
	// waits, and returns errs.Unavailable in the end.
	Connect(ctx context.Context, w Workspace) (Conn, error)
	// Migrate runs those of some migrations that have not been run, in their order, each in a
	// transaction of its own together with the record of it in the table _migrations. Of two
	// callers at once, also in other processes, one waits for the other. It returns the names of
	// those that it has run, also when one fails: that one's error is an Error.
	Migrate(ctx context.Context, w Workspace, all []Migration) (applied []string, err error)
	// Applied returns the digests of the migrations that have been run, by their names.
	Applied(ctx context.Context, w Workspace) (map[string]string, error)
	// Drop removes a workspace. It does nothing if there is none. Connections that are open may
	// fail.
	Drop(ctx context.Context, tenant, app string) error
	// Has reports whether there is a workspace of a tenant.
	Has(ctx context.Context, tenant string) (bool, error)
	// DropTenant removes all workspaces of a tenant.
	DropTenant(ctx context.Context, tenant string) error
	// Stats returns the size and the tables of a workspace.
	Stats(ctx context.Context, w Workspace) (Stats, error)
	// Sizes returns the bytes of workspaces of a tenant by their apps, those that are there.
	Sizes(ctx context.Context, tenant string, apps []string) (map[string]int64, error)
	// Bounds returns the limits of the driver.
	Bounds() Bounds
	// Close closes all connections.
	Close() error
}

// Mover is a Driver whose workspaces can be moved to another server that has one of the same
// engine.
type Mover interface {
	// Export writes a workspace, as it is at one moment, and reports whether there is one. The
	// workspace can be used meanwhile.
	Export(ctx context.Context, tenant, app string, to io.Writer) (there bool, err error)
	// Import makes a workspace, in the place of one that is there, of what Export has written.
	// Nobody uses it yet. It returns errs.Invalid for what Export has not written, and
	// errs.TooLarge for what is larger than a workspace may be.
	Import(ctx context.Context, tenant, app string, from io.Reader) error
}

// Locator is a Driver that names where a tenant's workspaces are, for the tools that move them.
type Locator interface {
	// Location returns what the tools of the engine are to move for a tenant, for people.
	Location(tenant string) string
}

// Bounds are the limits of a Driver.
type Bounds struct {
	Size    int64         // bytes of a workspace
	Result  Limits        // of the result of a statement
	Time    time.Duration // of a statement, if its caller has no earlier end
	Measure time.Duration // how often the sizes of workspaces in use are measured
	Tokens  int           // words and signs of a statement
	// Connections are open at once, by one process: in all, for a tenant, to a workspace.
	Connections, PerTenant, PerWorkspace int
}

// Stats is what a workspace has. A workspace that was never used has nothing.
type Stats struct {
	Bytes  int64   `json:"bytes"`
	Limit  int64   `json:"limit"` // of Bytes
	Tables []Table `json:"tables"`
}

// Table is a table of a workspace.
type Table struct {
	Name    string   `json:"name"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"` // with its indexes
	Columns []Column `json:"columns"`
}

// Column is a column of a Table.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // as it was declared
}

// Record is the row of a workspace.
type Record struct {
	App       string
	Engine    string
	Sealed    string // the password
	CreatedAt time.Time
}

// Store stores which workspaces there are. internal/store/workspaces implements it.
type Store interface {
	// Get returns the row of a workspace. lasting is false in a transaction, whose rollback could
	// take the row away. Errors: errs.NotFound.
	Get(ctx context.Context, tenant, app string) (r Record, lasting bool, err error)
	// Add adds the row of a workspace unless there is one, and returns the row that is there, as
	// Get does.
	Add(ctx context.Context, tenant string, r Record) (added Record, lasting bool, err error)
	// Engines returns how many workspaces a tenant has, by the engines that they were made with.
	Engines(ctx context.Context, tenant string) (map[string]int, error)
	// Loose returns apps and drafts of a tenant that have workspaces and are perhaps gone: new
	// ones, and those whose app has been deleted since.
	Loose(ctx context.Context, tenant string) ([]string, error)
	// Keep makes Loose leave those of some apps out whose rows were added before a time, until
	// their app is deleted.
	Keep(ctx context.Context, tenant string, apps []string, before time.Time) error
	// Measured stores the sizes of workspaces by their apps, those that have changed.
	Measured(ctx context.Context, tenant string, sizes map[string]int64) error
	// Remove removes rows of workspaces.
	Remove(ctx context.Context, tenant string, apps []string) error
	// AfterCommit runs f when the transaction in ctx has been committed, at once if there is none.
	AfterCommit(ctx context.Context, f func())
}

// Sealer encrypts secrets. *keyring.Ring implements it.
type Sealer interface {
	Seal(tenant, table, column, row string, plain []byte) (string, error)
	Open(tenant, table, column, row, sealed string) ([]byte, error)
}

// Options configure a Service. Store and Keys are required.
type Options struct {
	Driver Driver // nil: there are no workspaces, and Connect and Migrate return errs.Unavailable
	Store  Store
	Keys   Sealer
	// Exist returns those of some ids of a tenant that are apps or drafts, deleted ones that can be
	// restored among them. The workspaces of others are swept. nil: none are swept.
	Exist func(ctx context.Context, tenant string, ids []string) (map[string]bool, error)
	// Admit returns an error if a tenant must not have another workspace. nil: each may.
	Admit func(ctx context.Context, tenant string) error
	// Room returns how many bytes a tenant may still store, and an error if n bytes do not fit.
	// nil: any number.
	Room func(ctx context.Context, tenant string, n int64) (left int64, err error)
	// Kind is the kind of apps, whose workspaces are dropped when they are purged.
	Kind entity.Kind
	Log  *slog.Logger
	Now  func() time.Time
}

// Service connects to the workspaces of apps.
type Service struct {
	o     Options
	clock clock.Clock

	mu    sync.RWMutex
	known map[key]Workspace // rows that are there for good
	used  map[key]bool      // may have another size than when they were measured
	sized map[key]time.Time // when they were measured after a statement, see Service.grown
}

type key struct{ tenant, app string }

const (
	sealedTable, sealedColumn = "tc_workspaces", "password"
	maxKnown                  = 10_000
)

// New returns a Service.
func New(o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return &Service{
		o: o, clock: clock.New(o.Now, nil),
		known: map[key]Workspace{}, used: map[key]bool{}, sized: map[key]time.Time{},
	}
}

// errNone is returned where no workspaces are configured.
func errNone() error {
	return errs.New(
		errs.Unavailable,
		"This server has no workspaces for apps: set TENANTCONTENT_WORKSPACES to a folder or to the URL of a "+
			"PostgreSQL, or Config.Workspaces in a host program.",
	)
}

// Connect returns a connection to the workspace of an app or draft for one invocation. The
// workspace is made if there is none yet.
// Errors: errs.Invalid for an id that is none; errs.Unavailable.
func (s *Service) Connect(ctx context.Context, tenant, app string) (Conn, error) {
	w, err := s.workspace(ctx, tenant, app)
	if err != nil {
		return nil, err
	}
	c, err := s.o.Driver.Connect(ctx, w)
	if err != nil {
		return nil, err
	}
	return &bounded{Conn: c, s: s, of: key{w.Tenant, w.App}}, nil
}

// workspace returns the Workspace of an app, with a row for it.
func (s *Service) workspace(ctx context.Context, tenant, app string) (Workspace, error) {
	if s.o.Driver == nil {
		return Workspace{}, errNone()
	}
	app, ok := uuids.Parse(app)
	if !ok || tenant == "" {
		return Workspace{}, errs.New(errs.Invalid, "The workspace of an app is found by the app's id, a UUID.")
	}
	s.mu.RLock()
	w, ok := s.known[key{tenant, app}]
	s.mu.RUnlock()
	if ok {
		return w, nil
	}
	r, lasting, err := s.o.Store.Get(ctx, tenant, app)
	if errs.CodeOf(err) == errs.NotFound {
		if s.o.Admit != nil {
			if err := s.o.Admit(ctx, tenant); err != nil {
				return Workspace{}, err
			}
		}
		r = Record{App: app, Engine: s.o.Driver.Engine(), CreatedAt: s.clock.Stamp()}
		if r.Sealed, err = s.o.Keys.Seal(
			tenant, sealedTable, sealedColumn, app, []byte(rand.Text()+rand.Text()),
		); err != nil {
			return Workspace{}, err
		}
		r, lasting, err = s.o.Store.Add(ctx, tenant, r)
	}
	if err != nil {
		return Workspace{}, err
	}
	if r.Engine != s.o.Driver.Engine() {
		return Workspace{}, errs.New(
			errs.Conflict,
			"The workspace of this app was made with %s, and this server uses %s for workspaces.", r.Engine,
			s.o.Driver.Engine(),
		)
	}
	plain, err := s.o.Keys.Open(tenant, sealedTable, sealedColumn, app, r.Sealed)
	if err != nil {
		return Workspace{}, err
	}
	w = Workspace{Tenant: tenant, App: app, Password: string(plain)}
	if lasting {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.known) >= maxKnown {
			clear(s.known)
		}
		s.known[key{tenant, app}] = w
	}
	return w, nil
}

// forget removes workspaces from memory.
func (s *Service) forget(tenant string, apps []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, app := range apps {
		delete(s.known, key{tenant, app})
	}
}

// Drop removes the workspaces of some apps or drafts, after the transaction in ctx has been
// committed. What fails then, or is interrupted, is done by the next Sweep if the apps are gone.
func (s *Service) Drop(ctx context.Context, tenant string, apps []string) error {
	if s.o.Driver == nil || len(apps) == 0 {
		return nil
	}
	s.o.Store.AfterCommit(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), dropTime)
		defer cancel()
		if err := s.drop(ctx, tenant, apps); err != nil {
			s.o.Log.Warn(
				"the workspaces of apps were not dropped; it is tried again each minute", "tenant", tenant,
				"err", err,
			)
		}
	})
	return nil
}

// dropTime is how long Drop waits for the Driver after a commit.
const dropTime = 10 * time.Second

// drop removes the workspaces first and their rows then, so that nothing is left without a row.
func (s *Service) drop(ctx context.Context, tenant string, apps []string) error {
	s.forget(tenant, apps)
	var gone []string
	var failed []error
	for _, app := range apps {
		if err := s.o.Driver.Drop(ctx, tenant, app); err != nil {
			failed = append(failed, err)
			continue
		}
		gone = append(gone, app)
	}
	if len(gone) > 0 {
		failed = append(failed, s.o.Store.Remove(ctx, tenant, gone))
	}
	return errors.Join(failed...)
}

// Bounds returns the limits of the workspaces, false where there are none.
func (s *Service) Bounds() (Bounds, bool) {
	if s.o.Driver == nil {
		return Bounds{}, false
	}
	return s.o.Driver.Bounds(), true
}

// Stats returns the size and the tables of the workspace of an app or draft; for one that has none
// yet, the limit alone.
func (s *Service) Stats(ctx context.Context, tenant, app string) (Stats, error) {
	if s.o.Driver == nil {
		return Stats{}, errNone()
	}
	_, _, err := s.o.Store.Get(ctx, tenant, app)
	if errs.CodeOf(err) == errs.NotFound {
		return Stats{Limit: s.o.Driver.Bounds().Size, Tables: []Table{}}, nil
	}
	if err != nil {
		return Stats{}, err
	}
	w, err := s.workspace(ctx, tenant, app)
	if err != nil {
		return Stats{}, err
	}
	return s.o.Driver.Stats(ctx, w)
}

// Hooks returns what is done with workspaces: those of apps and tenants that are deleted go with
// them, those without an app are swept, and a change of the key seals their passwords again.
func (s *Service) Hooks() entity.Hooks {
	return entity.Hooks{
		Deleted: func(ctx context.Context, tenant string, gone ...entity.Key) error {
			return s.Drop(ctx, tenant, entity.IDs(gone, s.o.Kind))
		},
		Removed: s.dropTenant,
		Sealed:  []entity.SealedColumn{{Table: sealedTable, Column: sealedColumn, Key: "app_id"}},
		Sweep:   s.sweep,
		Due:     []entity.Due{{Table: sealedTable, Column: "created_at", Where: "loose"}},
	}
}

// dropTenant removes the workspaces of a tenant whose rows are gone.
func (s *Service) dropTenant(ctx context.Context, tenant string) error {
	if s.o.Driver == nil {
		return nil
	}
	s.mu.Lock()
	for k := range s.known {
		if k.tenant == tenant {
			delete(s.known, k)
		}
	}
	s.mu.Unlock()
	return s.o.Driver.DropTenant(ctx, tenant)
}

// settled is how old a workspace is whose app is known to be there: until then the transaction that
// deletes the app can be under way.
const settled = time.Hour

// sweep removes the workspaces whose apps are gone.
func (s *Service) sweep(ctx context.Context, tenant string) (int, error) {
	if s.o.Driver == nil || s.o.Exist == nil {
		return 0, nil
	}
	apps, err := s.o.Store.Loose(ctx, tenant)
	if err != nil || len(apps) == 0 {
		return 0, err
	}
	exist, err := s.o.Exist(ctx, tenant, apps)
	if err != nil {
		return 0, err
	}
	var gone []string
	for _, app := range apps {
		if !exist[app] {
			gone = append(gone, app)
		}
	}
	if len(gone) > 0 {
		err = s.drop(ctx, tenant, gone)
	}
	if len(gone) < len(apps) {
		err = errors.Join(err, s.o.Store.Keep(ctx, tenant, slices.DeleteFunc(apps, func(app string) bool {
			return !exist[app]
		}), s.clock.Now().Add(-settled)))
	}
	return len(gone), err
}
