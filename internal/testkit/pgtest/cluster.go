//go:build unix

package pgtest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Cluster is one server with a separate data folder. Its methods may be called from several
// goroutines.
type Cluster struct {
	URL       string // over loopback TCP: superuser postgres, database postgres, no password
	SocketURL string // the same over the unix socket, in the form of libpq and pgx (folder and port)
	// the socket's file, which pgdriver needs:
	// postgres://postgres@/postgres?sslmode=disable&host=<Socket>
	Socket string

	bin, dir string
	port     int
	cred     *syscall.Credential // user of the server; nil: the caller's

	mu      sync.Mutex
	server  int      // process id; 0 while it is stopped
	watcher int      // process id of watch.sh; 0 after Stop
	pipe    *os.File // to the watcher, which acts when this process has ended and so the pipe is closed
}

// watch is a shell script. It outlives this process, even if that is killed, and then stops the
// server and removes the folder.
//
//go:embed watch.sh
var watch string

// Start creates and starts a cluster in a temporary folder, in well under a second. ctx limits the
// start, not the server. The caller must call Stop; if the process ends without it, even by
// SIGKILL, the server and its folder are removed too.
//
// The server is tuned for tests. It does not sync to disk: a commit survives Kill, but not a crash
// of the machine. Every user on this machine can log in. If the server supports ICU it sorts as
// en-US by default, so that a query that relies on another order must have a COLLATE.
func Start(ctx context.Context) (*Cluster, error) { return start(ctx, "", "") }

// StartIn starts a cluster as Start does, with all of its files in a folder. Its path must be
// short, because that of a socket has at most 107 bytes.
func StartIn(ctx context.Context, folder string) (*Cluster, error) { return start(ctx, "", folder) }

// StartCopy starts a cluster as Start does, with a copy of data that Save made.
func StartCopy(ctx context.Context, data string) (*Cluster, error) { return start(ctx, data, "") }

func start(ctx context.Context, data, folder string) (*Cluster, error) {
	c := &Cluster{}
	var err error
	if c.bin, err = serverBin(); err != nil {
		return nil, err
	}
	if c.cred, err = serverUser(); err != nil {
		return nil, err
	}
	if err := c.makeFolder(folder); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	if err := c.begin(ctx, data); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// makeFolder creates the folder in in. If in is empty, it creates the folder in TMPDIR if that is
// in /dev/shm, as in .ci/test.sh, else in /tmp. It does not use another TMPDIR: the path of a
// socket may have 107 bytes, and the server's user may not have access to a home folder.
func (c *Cluster) makeFolder(in string) (err error) {
	named := in != ""
	switch {
	case named:
	case strings.HasPrefix(os.TempDir(), "/dev/shm/"):
		in = os.TempDir()
	default:
		in = "/tmp"
	}
	if c.dir, err = os.MkdirTemp(in, "pgtest"); err != nil && !named {
		c.dir, err = os.MkdirTemp("", "pgtest")
	}
	if err == nil && c.cred != nil {
		err = os.Chown(c.dir, int(c.cred.Uid), int(c.cred.Gid))
	}
	return err
}

func (c *Cluster) begin(ctx context.Context, data string) error {
	if err := c.startWatcher(); err != nil {
		return err
	}
	fill := c.initdb
	if data != "" {
		fill = func(ctx context.Context) error { return c.copy(ctx, data, c.data()) }
	}
	if err := fill(ctx); err != nil {
		return err
	}
	var err error
	for range 3 { // another process may take the port before the server starts
		if c.port, err = freePort(); err != nil {
			return err
		}
		if err = c.start(ctx); err == nil || ctx.Err() != nil {
			break
		}
	}
	c.URL = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", c.port)
	c.SocketURL = fmt.Sprintf("postgres://postgres@/postgres?host=%s&port=%d&sslmode=disable", c.dir, c.port)
	c.Socket = filepath.Join(c.dir, fmt.Sprintf(".s.PGSQL.%d", c.port))
	return err
}

func (c *Cluster) startWatcher() error {
	r, w, err := os.Pipe() // Go marks both ends close-on-exec, so no other child keeps the pipe open
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer r.Close()
	c.pipe = w
	c.watcher, err = c.spawn(r, nil, "/bin/sh", "-c", watch, "pgtest-watch", c.dir)
	return err
}

// tell passes to the watcher the process that it must end, or 0.
func (c *Cluster) tell(pid int) { fmt.Fprintln(c.pipe, pid) }

// run spawns a child that the watcher knows, with its output in the cluster's log.
func (c *Cluster) run(name string, args ...string) (int, error) {
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	pid, err := c.spawn(nil, log, filepath.Join(c.bin, name), args...)
	c.tell(pid)
	return pid, err
}

func (c *Cluster) data() string    { return filepath.Join(c.dir, "data") }
func (c *Cluster) logFile() string { return filepath.Join(c.dir, "log") }

// failed wraps err with the end of the log.
func (c *Cluster) failed(what string, err error) error {
	b, _ := os.ReadFile(c.logFile())
	return fmt.Errorf("pgtest: %s: %w\n%s", what, err, b[max(0, len(b)-2000):])
}

func (c *Cluster) initdb(ctx context.Context) error {
	args := []string{"-D", c.data(), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"}
	err := c.runInitdb(ctx, append(args, "--locale-provider=icu", "--icu-locale=en-US"))
	if err != nil && ctx.Err() == nil { // version 14, or built without ICU
		err = c.runInitdb(ctx, args)
	}
	return err
}

func (c *Cluster) runInitdb(ctx context.Context, args []string) error {
	pid, err := c.run("initdb", args...)
	if err != nil {
		return err
	}
	defer c.tell(0)
	if err := wait(ctx, pid); err != nil {
		if ctx.Err() != nil {
			killTree(pid)
		}
		return c.failed("initdb", err)
	}
	return nil
}

// Save copies the cluster's data to a folder that does not exist yet, for StartCopy. It shuts down
// the server during that time. If another process saves there first, its copy is kept.
func (c *Cluster) Save(ctx context.Context, data string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutdown()
	copied := filepath.Join(c.dir, "copy")
	if err := c.copy(ctx, c.data(), copied); err != nil {
		return err
	}
	if err := os.Rename(copied, data); err != nil {
		if _, there := os.Stat(data); there != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
	}
	return c.start(ctx)
}

// copy copies a folder of data as the server's user.
func (c *Cluster) copy(ctx context.Context, from, to string) error {
	log, err := os.OpenFile(c.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	pid, err := c.spawn(nil, log, "cp", "-R", "-p", from, to)
	if err != nil {
		return err
	}
	if err := wait(ctx, pid); err != nil {
		if ctx.Err() != nil {
			killTree(pid)
		}
		return c.failed("copy of "+from, err)
	}
	return nil
}

// start starts the server on its folder and port and waits until it accepts connections.
func (c *Cluster) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not ready after a minute"))
	defer cancel()
	os.Remove(c.lockFile()) // of a killed server: another process may have its id now
	args := []string{"-D", c.data(), "-p", strconv.Itoa(c.port), "-k", c.dir}
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "max_connections=200", "shared_buffers=64MB",
		"fsync=off", "full_page_writes=off", // but not synchronous_commit=off: Kill would lose the last commits
		"dynamic_shared_memory_type=mmap", // in the folder, so that a killed server leaves nothing in /dev/shm
	} {
		args = append(args, "-c", setting)
	}
	var err error
	if c.server, err = c.run("postgres", args...); err != nil {
		return err
	}
	for !c.ready() {
		if exited(c.server, nil) {
			c.gone()
			return c.failed("start", errors.New("the server ended"))
		}
		if err := sleep(ctx); err != nil {
			killTree(c.server)
			c.gone()
			return c.failed("start", err)
		}
	}
	return nil
}

func (c *Cluster) gone() {
	c.server = 0
	c.tell(0)
}

// lockFile returns the path of a file with the server's process id in line 1, shared memory in line
// 7, and state in line 8.
func (c *Cluster) lockFile() string { return filepath.Join(c.data(), "postmaster.pid") }

func (c *Cluster) ready() bool {
	b, _ := os.ReadFile(c.lockFile())
	lines := strings.Split(string(b), "\n")
	if len(lines) <= 7 || lines[0] != strconv.Itoa(c.server) {
		return false
	}
	status := strings.TrimSpace(lines[7])
	return status == "ready" || status == "standby"
}

// freePort returns a port below those that operating systems assign to clients. Otherwise a client
// that keeps dialling while the server is stopped could be assigned the server's port as its
// source. It would be connected to itself and block Restart.
func freePort() (int, error) {
	for range 100 {
		port := 15000 + rand.IntN(17000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("pgtest: no free loopback port")
}

// Stop ends the server (open transactions are rolled back, connections closed) and removes its
// folder. It may be called twice.
func (c *Cluster) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutdown()
	if c.pipe != nil {
		c.pipe.Close()
	}
	if c.watcher != 0 {
		wait(context.Background(), c.watcher)
		c.watcher = 0
	}
	os.RemoveAll(c.dir) // the watcher has done it, unless it could not start
}

// Shutdown ends the server as Stop does, but keeps its folder for Restart.
func (c *Cluster) Shutdown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shutdown()
}

func (c *Cluster) shutdown() {
	if c.server != 0 {
		signalTree(c.server, syscall.SIGCONT)
		end(c.server, syscall.SIGINT) // PostgreSQL's "fast" shutdown
		c.gone()
	}
}

// Standby restarts the server as a standby without a primary: it answers reads and refuses writes.
func (c *Cluster) Standby(ctx context.Context) error {
	c.Shutdown()
	if err := os.WriteFile(filepath.Join(c.data(), "standby.signal"), nil, 0o644); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	return c.Restart(ctx)
}

// Kill ends the server's processes with SIGKILL, as a crash would. They have ended when it returns.
func (c *Cluster) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != 0 {
		killTree(c.server)
		c.gone()
	}
}

// Freeze stops the server's processes with SIGSTOP, as if the machine hung: connections stay open,
// but are not answered. Thaw continues them.
func (c *Cluster) Freeze() { c.signal(syscall.SIGSTOP) }

// Thaw undoes Freeze.
func (c *Cluster) Thaw() { c.signal(syscall.SIGCONT) }

func (c *Cluster) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != 0 {
		signalTree(c.server, sig)
	}
}

// Restart starts the server again on the same port and folder. It first shuts down a running
// server.
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watcher == 0 {
		return errors.New("pgtest: the cluster was stopped and its folder removed")
	}
	c.shutdown()
	return c.start(ctx)
}
