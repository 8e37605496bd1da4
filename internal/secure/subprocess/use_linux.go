package subprocess

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time of the threads of a process, and whether it is known.
func CPUTime(pid int) (time.Duration, bool) {
	var t unix.Timespec
	// The clock of a process, as clock_getcpuclockid(3) computes it.
	clock := int32(^uint32(pid)<<3 | 2)
	if err := unix.ClockGettime(clock, &t); err != nil || pid <= 0 {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}

// Resident returns the bytes of memory that a process uses, or 0 if that is not known.
func Resident(pid int) int64 {
	statm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// MachineMemory returns the bytes of memory that this program can use: those of the machine, or of
// its control group if that has fewer. It returns 0 if that is not known.
func MachineMemory() int64 {
	info, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(info), "MemTotal:")
	kib, _ := strconv.ParseInt(firstField(rest), 10, 64)
	memory := kib << 10
	within := func(file string) {
		text, _ := os.ReadFile(file)
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && (memory == 0 ||
			n < memory) {
			memory = n
		}
	}
	within("/sys/fs/cgroup/memory/memory.limit_in_bytes") // version 1
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for ; ok && group != ""; group = path.Dir(group) {
			within("/sys/fs/cgroup" + path.Join("/", group, "memory.max"))
			if group == "/" || group == "." {
				break
			}
		}
	}
	return memory
}

func firstField(text string) string {
	if fields := strings.Fields(text); len(fields) > 0 {
		return fields[0]
	}
	return ""
}
