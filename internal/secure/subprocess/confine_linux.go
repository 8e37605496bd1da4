package subprocess

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// systemCalls are the system calls that a child may use: for memory, its threads, time, and reading
// and writing its open files. It cannot open files, make connections or start processes.
var systemCalls = strings.Fields(`
	read write readv writev recvfrom sendto recvmsg sendmsg close fcntl
	epoll_wait epoll_pwait epoll_ctl epoll_create1 eventfd2 pipe2 poll ppoll
	mmap munmap mremap mprotect madvise mincore brk
	futex sched_yield sched_getaffinity nanosleep clock_nanosleep clock_gettime gettimeofday time
	rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack tgkill getpid gettid getppid
	set_robust_list rseq membarrier restart_syscall exit exit_group getrandom getrusage uname`)

// Confine removes the privileges of the process that it does not need for its open files, memory
// and time, and returns what it removed in words. memory is the number of bytes that it may
// allocate in addition to its current memory.
func Confine(memory int64) string {
	if Instrumented {
		return "none: instrumented"
	}
	closeInherited()
	done := []string{}
	note := func(what string, err error) {
		if err == nil {
			done = append(done, what)
		}
	}
	note("oom", os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0))
	data := statusField("self", "VmData:")
	for _, l := range []struct {
		name     string
		resource int
		value    uint64
	}{
		{"core", unix.RLIMIT_CORE, 0}, {"fsize", unix.RLIMIT_FSIZE, 0}, {"nofile", unix.RLIMIT_NOFILE, 16},
		{"data", unix.RLIMIT_DATA, data + uint64(memory)},
	} {
		if l.name == "data" && data == 0 {
			continue // the current size is not known
		}
		note(l.name, unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}))
	}
	if os.Geteuid() == 0 {
		const nobody = 65534
		if syscall.Setgroups(nil) == nil && syscall.Setgid(nobody) == nil && syscall.Setuid(nobody) == nil {
			done = append(done, "nobody")
		}
		unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0) // the change of user has reset it
	}
	note("seccomp", filter())
	return strings.Join(done, " ")
}

// closeInherited closes files that the server has inherited and not marked as close-on-exec. It
// does not close the epoll and event files of Go.
func closeInherited() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, f := range files {
		fd, err := strconv.Atoi(f.Name())
		to, _ := os.Readlink("/proc/self/fd/" + f.Name())
		if err == nil && fd > 2 && to != "" && !strings.HasPrefix(to, "anon_inode:") {
			unix.Close(fd)
		}
	}
}

// filter makes all other system calls fail. The process can create threads but no processes.
func filter() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	allowed := seccomp.SyscallGroup{Action: seccomp.ActionAllow}
	for _, name := range systemCalls {
		if _, ok := info.SyscallNames[name]; ok {
			allowed.Names = append(allowed.Names, name)
		}
	}
	allowed.NamesWithCondtions = []seccomp.NameWithConditions{{
		Name:       "clone",
		Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}},
	}}
	groups := []seccomp.SyscallGroup{allowed}
	if _, ok := info.SyscallNames["clone3"]; ok {
		// the C library uses clone if there is no clone3, whose arguments cannot be checked
		groups = append(groups, seccomp.SyscallGroup{
			Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
			Names:  []string{"clone3"},
		})
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionErrno, Syscalls: groups},
	})
}

// ResidentPeak returns the most bytes of memory that a process has used, or 0 if that is not known.
func ResidentPeak(pid int) int64 {
	return int64(statusField(strconv.Itoa(pid), "VmHWM:"))
}

// statusField returns a size from the status of a process, or 0 if it is not known.
func statusField(process, name string) uint64 {
	status, _ := os.ReadFile("/proc/" + process + "/status")
	_, rest, _ := strings.Cut(string(status), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseUint(fields[0], 10, 64)
	return kib << 10
}
