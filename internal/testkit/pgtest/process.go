//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const tick = 5 * time.Millisecond

// spawn starts a child as the server's user, in a new session, so that Ctrl-C or a signal to the
// test's process group does not reach it. Children are waited for with wait4 when needed, not by a
// goroutine, which leak checks would report.
func (c *Cluster) spawn(stdin, out *os.File, name string, args ...string) (pid int, err error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	// Without the caller's PGDATA, PGOPTIONS, locale and so on.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.cred}
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if out != nil {
		cmd.Stdout, cmd.Stderr = out, out
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	pid = cmd.Process.Pid
	return pid, cmd.Process.Release()
}

// exited reaps the child if it has ended.
func exited(pid int, status *syscall.WaitStatus) bool {
	for {
		got, err := syscall.Wait4(pid, status, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) {
			return got == pid || err != nil
		}
	}
}

// wait returns the error of the child when it has ended, or that of ctx.
func wait(ctx context.Context, pid int) error {
	var status syscall.WaitStatus
	for !exited(pid, &status) {
		if err := sleep(ctx); err != nil {
			return err
		}
	}
	if status != 0 {
		return fmt.Errorf("exit status %d, signal %d", status.ExitStatus(), status.Signal())
	}
	return nil
}

func sleep(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(tick):
		return nil
	}
}

// end sends a signal, and SIGKILL to the whole server if the process has not ended ten seconds
// later.
func end(pid int, sig syscall.Signal) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	syscall.Kill(pid, sig)
	if wait(ctx, pid); ctx.Err() != nil {
		killTree(pid)
	}
}

// killTree kills a process and its children and returns when all have ended. It first stops the
// parent, so that it can neither start nor reap children, and their state shows when they are dead.
func killTree(pid int) {
	syscall.Kill(pid, syscall.SIGSTOP)
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(tick) {
		alive := liveChildren(pid)
		for _, child := range alive {
			syscall.Kill(child, syscall.SIGKILL)
		}
		if len(alive) == 0 {
			break
		}
	}
	syscall.Kill(pid, syscall.SIGKILL)
	wait(context.Background(), pid)
}

// signalTree sends a signal to a process, then to its children. The parent is first: when it is
// stopped, it starts no more of them.
func signalTree(pid int, sig syscall.Signal) {
	syscall.Kill(pid, sig)
	for _, child := range liveChildren(pid) {
		syscall.Kill(child, sig)
	}
}

// liveChildren returns the children of a process that are not zombies.
func liveChildren(parent int) (pids []int) {
	for _, p := range processes() {
		if p.parent == parent && !strings.HasPrefix(p.state, "Z") {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

type process struct {
	pid, parent int
	state       string
}

// processes returns all processes, from /proc or, if it does not exist, from ps.
func processes() (all []process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, _ := os.ReadFile(file) // it has ended: without text it has no fields
		pid, rest, _ := strings.Cut(string(b), " (")
		rest = rest[strings.LastIndex(rest, ")")+1:] // the name in parentheses may contain anything
		if f := strings.Fields(rest); len(f) > 1 {
			all = append(all, parse(pid, f[1], f[0]))
		}
	}
	if all != nil {
		return all
	}
	out, _ := exec.Command("ps", "-axo", "pid=,ppid=,stat=").Output()
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 {
			all = append(all, parse(f[0], f[1], f[2]))
		}
	}
	return all
}

func parse(pid, parent, state string) process {
	p := process{state: state}
	p.pid, _ = strconv.Atoi(pid)
	p.parent, _ = strconv.Atoi(parent)
	return p
}

// serverUser returns the user of the server. It is nil, the caller's user, unless that is root,
// which PostgreSQL refuses.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
	}
	return nil, errors.New("pgtest: PostgreSQL does not run as root, and there is no user postgres or nobody to " +
		"run it as")
}
