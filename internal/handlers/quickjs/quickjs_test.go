package quickjs_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
)

func TestMain(m *testing.M) {
	quickjs.Child()
	m.Run()
}

// openFor returns a function that opens a runtime whose compiles take at most d; 0 is the default.
func openFor(d time.Duration) func(*testing.T, jsvm.Limits) jsvm.Runtime {
	return func(t *testing.T, highest jsvm.Limits) jsvm.Runtime {
		rt, err := quickjs.New(quickjs.Options{
			Processes: 4, Limits: highest,
			Grace: 30 * time.Millisecond, CompileTime: d, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
}

func TestRuntime(t *testing.T) { testVM(t, openFor(0)) }

// TestAttacksMemory runs without the race detector, with which a process takes a second to start.
func TestAttacksMemory(t *testing.T) { testAttacks(t, openFor(2*time.Second)) }
