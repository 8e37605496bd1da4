//go:build unix

package subprocess

import (
	"os"
	"runtime"
	"syscall"
)

// environment has further variables of a child's environment: it uses one thread for Go code, and
// does not check for more processors.
var environment = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// connect returns the two ends of a connection.
func connect() (ours, theirs Pipes, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return ours, theirs, os.NewSyscallError("socketpair", err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return ours, theirs, os.NewSyscallError("setnonblock", err)
	}
	a, b := os.NewFile(uintptr(fds[0]), "subprocess"), os.NewFile(uintptr(fds[1]), "subprocess")
	return Pipes{a, a}, Pipes{b, b}, nil
}

// Inherited returns the child's end of its connection, which is read and written without blocking a
// thread.
func Inherited() Pipes {
	if syscall.SetNonblock(0, true) != nil {
		return Pipes{os.Stdin, os.Stdout}
	}
	return Pipes{os.NewFile(0, "subprocess"), os.NewFile(1, "subprocess")}
}

// UsualPriority returns the nice value of the server.
func UsualPriority() int {
	value, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	switch {
	case err != nil:
		return 0
	case runtime.GOOS == "linux":
		return 20 - value // as the kernel returns it
	}
	return value
}

// SetPriority sets the nice value of all threads of a child, which is the only process of its
// group.
func SetPriority(pid, nice int) bool {
	return syscall.Setpriority(syscall.PRIO_PGRP, pid, nice) == nil
}

// Suspend stops the process until Continue or Kill. It reports whether this system supports it.
func (p *Process) Suspend() bool {
	return p.cmd != nil && p.cmd.Process.Signal(syscall.SIGSTOP) == nil
}

// Continue continues a process that Suspend has stopped.
func (p *Process) Continue() { _ = p.cmd.Process.Signal(syscall.SIGCONT) } // an error means that it has ended
