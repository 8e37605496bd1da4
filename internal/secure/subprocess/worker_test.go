package subprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
)

var testWorker = Worker{
	Name: "test", What: "The test", Time: 20 * time.Second, Memory: 64 << 20, Input: 1 << 10, Output: 1 << 10,
	Work: func(in []byte) ([]byte, error) {
		switch string(in) {
		case "refuse":
			return nil, errs.New(errs.Invalid, "The test is refused.")
		case "panic":
			panic("damaged")
		case "loop":
			for {
				in[0] ^= 1
			}
		case "memory":
			var all [][]byte
			for {
				if all = append(all, bytes.Repeat([]byte{1}, 1<<20)); len(all) == 1<<20 {
					return nil, nil
				}
			}
		case "long":
			return make([]byte, 2<<10), nil
		case "exit":
			os.Exit(3)
		case "open":
			_, err := os.Open("/etc/hostname")
			_, err2 := os.Create("/tmp/x")
			return fmt.Append(nil, os.Getuid() != 0, err != nil, err2 != nil, len(os.Environ()) <= 4), nil
		}
		return append([]byte("did "), in...), nil
	},
}

func TestMain(m *testing.M) {
	testWorker.Child()
	m.Run()
}

func TestWorker(t *testing.T) {
	is := is.New(t)
	ctx := t.Context()
	do := func(in string) string {
		out, err := testWorker.Do(ctx, "acme", []byte(in))
		if err != nil {
			return string(errs.CodeOf(err)) + ": " + errs.MessageOf(err)
		}
		return string(out)
	}
	is.Equal(do(""), "did ")
	is.Equal(do("a"), "did a")
	is.Equal(len(testWorker.idle), 1)
	pid := testWorker.idle[0].Pid
	is.Equal(do("refuse"), "invalid: The test is refused.")
	is.Equal(do("panic"), "invalid: The test is damaged and cannot be read.")
	is.Equal(do("long"), "invalid: The test results in more than 1024 bytes.")
	is.Equal(do(strings.Repeat("a", 1<<10+1)), "too_large: The test has 1025 bytes, where 1024 are allowed.")
	is.Equal(testWorker.idle[0].Pid, pid) // one process did all jobs
	is.Equal(do("exit"), "invalid: The test is damaged, or needs more than 64 MiB of memory to be read.")
	is.Equal(len(testWorker.idle), 0)
	if !Instrumented {
		is.Equal(do("open"), "true true true true")
		is.Equal(do("memory"), "invalid: The test is damaged, or needs more than 64 MiB of memory to be read.")
	}

	is.Equal(do("a"), "did a")
	testWorker.idle[0].Kill() // the end of an idle process does not matter
	is.Equal(do("b"), "did b")

	testWorker.Time = 50 * time.Millisecond
	is.Equal(do("loop"), "invalid: The test takes more than 50ms to be read.")
	testWorker.Time = 20 * time.Second
	canceled, cancel := context.WithCancelCause(ctx)
	gone := errors.New("the caller is gone")
	time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
	_, err := testWorker.Do(canceled, "acme", []byte("loop"))
	is.Equal(err, gone)

	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if got := do(fmt.Sprint(i)); got != fmt.Sprint("did ", i) {
				t.Error(got)
			}
		})
	}
	all.Wait()

	uncalled := Worker{Name: "other", Input: 10}
	_, err = uncalled.Do(ctx, "acme", nil)
	is.True(err != nil)
}
