// Package subprocess starts the same program again as a child process. The child processes input of
// tenants and can be killed. The package defines its connection, its environment, and which
// privileges are removed from it.
package subprocess

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// A Starter starts processes. The zero value is ready for use.
type Starter struct {
	mu    sync.Mutex
	forks chan fork // to the goroutine that starts processes; nil until it runs
	quit  chan struct{}
	ended bool
}

// fork is a process to be started.
type fork struct {
	cmd  *exec.Cmd
	done chan error
}

// ErrClosed is returned by Start after Close.
var ErrClosed = fmt.Errorf("subprocess: %w", os.ErrClosed)

// Process is a child process, as the parent uses it.
type Process struct {
	Pid  int
	Conn Pipes // the parent's end of the connection

	cmd    *exec.Cmd
	stderr head
}

// Start starts the program with the environment variable set to value, by which the program
// recognizes that it is a child. The environment contains only this variable, those that the Go
// runtime reads, and TZ. The child works in "/", and its only open files are its end of the
// connection and its standard error. On Linux it ends with the parent.
func (s *Starter) Start(variable, value string) (*Process, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	ours, theirs, err := connect()
	if err != nil {
		return nil, err
	}
	p := &Process{Conn: ours, cmd: exec.Command(path)}
	p.cmd.Args = []string{os.Args[0]}
	p.cmd.Dir = "/"
	p.cmd.Env = append([]string{variable + "=" + value, "TZ=UTC"}, environment...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs.R, theirs.W, &p.stderr
	p.cmd.WaitDelay = time.Second
	detach(p.cmd)
	err = s.fork(p.cmd)
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	p.Pid = p.cmd.Process.Pid
	return p, nil
}

// fork starts a command on a thread that runs until Close, because the system ends a child when the
// thread that started it ends.
func (s *Starter) fork(cmd *exec.Cmd) error {
	s.mu.Lock()
	if s.quit == nil {
		s.forks, s.quit = make(chan fork), make(chan struct{})
		if s.ended {
			close(s.quit)
		} else {
			go s.serve()
		}
	}
	s.mu.Unlock()
	f := fork{cmd, make(chan error, 1)}
	select {
	case s.forks <- f:
		return <-f.done
	case <-s.quit:
		return ErrClosed
	}
}

func (s *Starter) serve() {
	runtime.LockOSThread() // forever: the thread ends with the goroutine
	for {
		select {
		case f := <-s.forks:
			f.done <- f.cmd.Start()
		case <-s.quit:
			return
		}
	}
}

// Close stops the Starter. On Linux, its children end with it.
func (s *Starter) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended && s.quit != nil {
		close(s.quit)
	}
	s.ended = true
}

// Kill ends the process. It must not be called after Wait has returned.
func (p *Process) Kill() { p.cmd.Process.Kill() } // an error means that it has ended already

// Wait waits for the end of the process. It must be called once.
func (p *Process) Wait() { p.cmd.Wait() } // how it ended is in ProcessState

// Stderr returns the beginning of what the process has written to its standard error.
func (p *Process) Stderr() string { return p.stderr.String() }

// OutOfMemory reports whether the process has written that it ran out of memory.
func (p *Process) OutOfMemory() bool {
	for _, sign := range []string{"out of memory", "cannot allocate memory"} {
		if strings.Contains(p.Stderr(), sign) {
			return true
		}
	}
	return false
}

// head keeps the beginning of what is written to it.
type head struct {
	mu sync.Mutex
	b  []byte
}

const headSize = 2 << 10

// Write keeps the part of b that fits.
func (h *head) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, b[:min(len(b), headSize-len(h.b))]...)
	return len(b), nil
}

// String returns what was written.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(string(h.b), "\ufffd")
}

// Pipes is one end of a connection.
type Pipes struct{ R, W *os.File }

// Close closes the end.
func (p Pipes) Close() {
	for _, f := range p.Files() {
		f.Close()
	}
}

// Files returns the files of the end, each once.
func (p Pipes) Files() []io.Closer {
	if p.R == p.W {
		return []io.Closer{p.R}
	}
	return []io.Closer{p.R, p.W}
}

// executable returns the path of the program. On Linux it is the running file, even if it has been
// replaced since.
func executable() (string, error) {
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/self/exe"); err == nil {
			return "/proc/self/exe", nil
		}
	}
	return os.Executable()
}
