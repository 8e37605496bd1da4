//go:build !unix

package subprocess

import (
	"os"
	"os/exec"
)

// environment has further variables of a child's environment.
var environment = []string{"GOMAXPROCS=2"}

func connect() (ours, theirs Pipes, err error) {
	if theirs.R, ours.W, err = os.Pipe(); err != nil {
		return ours, theirs, err
	}
	ours.R, theirs.W, err = os.Pipe()
	return ours, theirs, err
}

// Inherited returns the child's end of its connection.
func Inherited() Pipes { return Pipes{os.Stdin, os.Stdout} }

// UsualPriority returns 0, because priorities are not changed on this system.
func UsualPriority() int { return 0 }

// SetPriority returns false, because priorities are not changed on this system.
func SetPriority(int, int) bool { return false }

func detach(*exec.Cmd) {}

// Suspend returns false, because a process cannot be suspended on this system.
func (p *Process) Suspend() bool { return false }

// Continue does nothing on this system.
func (p *Process) Continue() {}
