package subprocess

import (
	"os/exec"
	"syscall"
)

// detach puts a child into a group of its own, which a terminal's signals do not reach, and ends it
// with the server.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
