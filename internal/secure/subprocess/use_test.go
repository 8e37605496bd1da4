package subprocess

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestUse(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	is := is.New(t)
	before, ok := CPUTime(os.Getpid())
	is.True(ok)
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
	}
	after, ok := CPUTime(os.Getpid())
	is.True(ok)
	is.True(after > before)
	_, ok = CPUTime(4<<20 + 1) // higher than any process id of Linux
	is.True(!ok)
	is.True(Resident(os.Getpid()) > 1<<20)
	is.Equal(Resident(4<<20+1), int64(0))
	is.True(MachineMemory() > 16<<20)
}
