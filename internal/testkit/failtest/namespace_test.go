//go:build linux

package failtest_test

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// inNamespace is set in the environment of the process that runInNamespace starts.
const inNamespace = "TENANTCONTENT_TEST_NAMESPACE"

// runInNamespace runs this program again as the same user in separate name spaces, in which the
// user may mount file systems. It returns the exit code. It returns false for root, who may do so
// anyway, and if the system does not allow name spaces.
func runInNamespace() (code int, done bool) {
	if os.Geteuid() == 0 || os.Getenv(inNamespace) != "" {
		return 0, false
	}
	const mayMount = 21 // CAP_SYS_ADMIN
	c := exec.Command(os.Args[0], os.Args[1:]...)
	c.Env = append(os.Environ(), inNamespace+"=true")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
		AmbientCaps: []uintptr{mayMount},
		Pdeathsig:   syscall.SIGKILL,
	}
	runtime.LockOSThread() // the end of the thread would send Pdeathsig
	err := c.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return 0, true
	case errors.As(err, &ended):
		return max(ended.ExitCode(), 1), true
	}
	return 0, false // the tests that need it report that
}
