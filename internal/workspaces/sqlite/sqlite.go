// Package sqlite keeps each workspace in a SQLite file of its own, below one folder. It is the
// ready driver for servers of one process; two processes can use the folder for a while, as at a
// restart, if they run on one machine.
//
// A tenant's SQL is bounded in what it can name (SQLite's authorizer), in time (the context of the
// caller), in memory (the limits of the connection, which depend on the statement: see weight), on
// disk (the pages of the file) and in its result. It runs in the process of the server.
package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/connpool"
	"github.com/tenantcontent/tenantcontent/internal/sqldb/sqltext"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
	"github.com/tenantcontent/tenantcontent/internal/workspaces/tenantsql"
)

// Options configure a Driver. Dir is required.
type Options struct {
	Dir    string            // made by the first workspace when it is missing, for its owner alone
	Quota  int64             // bytes of a workspace; default 256 MiB
	Limits workspaces.Limits // of a result
	Time   time.Duration     // of a statement, if its context has no earlier end; default 30 s
	Wait   time.Duration     // for a connection, and for a place to run a statement; default 10 s

	// open at once; default 64. A tenant has at most half of them, a workspace at most an eighth.
	Connections int
	// running at once; default twice the cores, at least 4. A tenant has at most half of them.
	Statements int
	Idle       time.Duration // after which an idle connection is closed; default 1 minute
}

// Driver implements workspaces.Driver.
type Driver struct {
	tenantsql.Connector[*session]

	o          Options
	bounds     workspaces.Bounds
	pool       *connpool.Pool[*conn] // by the paths of files
	statements *limiter.Limiter

	mu    sync.Mutex
	sizes map[string]int64 // of files, by their paths, as they were when they were last written
}

var _ workspaces.Driver = (*Driver)(nil)

// New returns a Driver for the files of a folder. Errors: errs.Invalid naming the folder.
func New(o Options) (*Driver, error) {
	if o.Dir == "" {
		return nil, errs.New(errs.Invalid, "the folder of workspaces has no name")
	}
	dir, err := filepath.Abs(o.Dir)
	if err == nil {
		var there os.FileInfo
		if there, err = os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			err = nil
		} else if err == nil && !there.IsDir() {
			err = errors.New("not a folder")
		}
	}
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the folder of workspaces %s cannot be used: %v", o.Dir, err)
	}
	o.Dir = dir
	if o.Quota <= 0 {
		o.Quota = 256 << 20
	}
	o.Limits = o.Limits.WithDefaults()
	for _, d := range []struct {
		of     *time.Duration
		normal time.Duration
	}{{&o.Time, 30 * time.Second}, {&o.Wait, 10 * time.Second}, {&o.Idle, time.Minute}} {
		if *d.of <= 0 {
			*d.of = d.normal
		}
	}
	if o.Connections <= 0 {
		o.Connections = 64
	}
	if o.Statements <= 0 {
		o.Statements = max(4, 2*runtime.GOMAXPROCS(0))
	}
	b := tenantsql.Bounds(o.Quota, o.Limits, o.Time, o.Connections, time.Second)
	d := &Driver{
		o: o, bounds: b, sizes: map[string]int64{},
		pool: connpool.New[*conn](connpool.Options{
			Open: b.Connections, PerTenant: b.PerTenant, PerDatabase: b.PerWorkspace, Idle: o.Idle, Wait: o.Wait,
		}),
		statements: limiter.New(limiter.Options{
			Capacity: int64(o.Statements), PerKey: int64(max(1, o.Statements/2)), FairSubkeys: true, Timeout: o.Wait,
		}),
	}
	d.Connector = d.connect
	return d, nil
}

// Bounds implements workspaces.Driver.
func (d *Driver) Bounds() workspaces.Bounds { return d.bounds }

// Engine implements workspaces.Driver.
func (d *Driver) Engine() string { return "sqlite" }

// folder returns where the files of a tenant are, and file the one of a workspace. The names are
// digests: no id is a part of a path.
func (d *Driver) folder(tenant string) string {
	return filepath.Join(d.o.Dir, tenantsql.Digest("tenant", tenant))
}

// extension ends the names of the files of workspaces.
const extension = ".sqlite"

func (d *Driver) file(tenant, app string) string {
	return filepath.Join(d.folder(tenant), tenantsql.Digest("app", tenant, app)+extension)
}

// connect returns an idle connection of the workspace or opens one.
func (d *Driver) connect(ctx context.Context, w workspaces.Workspace) (*tenantsql.Conn[*session], error) {
	path := d.file(w.Tenant, w.App)
	c, release, err := d.pool.Get(ctx, w.Tenant, path, func(ctx context.Context) (*conn, error) {
		return d.openUpgraded(ctx, path)
	})
	if err != nil {
		return nil, err
	}
	s := &session{conn: c, d: d, w: w, begun: -1}
	return tenantsql.NewConn(s, tenantsql.Options{Dialect: sqltext.SQLite, Time: d.o.Time}, func() {
		d.note(s)
		release(true)
	}), nil
}

// note notes the size of a workspace that may have been written.
func (d *Driver) note(s *session) {
	if !s.wrote || s.broken {
		return
	}
	pages, err := s.usedPages(context.Background())
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sizes) > 10_000 {
		clear(d.sizes)
	}
	if err == nil {
		d.sizes[s.path] = pages * pageSize
	}
}

// noted returns the size of a file that note has noted, with what is only in its write-ahead log.
func (d *Driver) noted(path string) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	size, ok := d.sizes[path]
	return size, ok
}

// Sizes implements workspaces.Driver.
func (d *Driver) Sizes(_ context.Context, tenant string, apps []string) (map[string]int64, error) {
	all := map[string]int64{}
	for _, app := range apps {
		path := d.file(tenant, app)
		size, ok := d.noted(path)
		switch there, err := os.Stat(path); {
		case err == nil && ok:
			all[app] = size
		case err == nil:
			all[app] = there.Size()
		case !errors.Is(err, os.ErrNotExist):
			return all, unavailable(err)
		}
	}
	return all, nil
}

// Drop implements workspaces.Driver.
func (d *Driver) Drop(_ context.Context, tenant, app string) error {
	path := d.file(tenant, app)
	d.pool.Evict(func(p string) bool { return p == path })
	return remove(path)
}

// Has implements workspaces.Driver.
func (d *Driver) Has(_ context.Context, tenant string) (bool, error) {
	files, err := os.ReadDir(d.folder(tenant))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, unavailable(err)
	}
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return filepath.Ext(f.Name()) == extension }), nil
}

// DropTenant implements workspaces.Driver.
func (d *Driver) DropTenant(_ context.Context, tenant string) error {
	folder := d.folder(tenant)
	d.pool.Evict(func(p string) bool { return filepath.Dir(p) == folder })
	return os.RemoveAll(folder)
}

// Close implements workspaces.Driver. Connections in use are closed by their callers.
func (d *Driver) Close() error {
	d.pool.Close()
	return nil
}
