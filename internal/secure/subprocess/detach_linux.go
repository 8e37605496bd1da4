package subprocess

import (
	"os/exec"
	"syscall"
)

// detach puts a child into a new process group, which a terminal's signals do not reach, and makes
// it end with the server.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
