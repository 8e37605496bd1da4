package quickjs_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/tenantcontent/tenantcontent/jsvm"
	"github.com/tenantcontent/tenantcontent/jsvm/jsvmtest"
	"github.com/tenantcontent/tenantcontent/jsvm/quickjs"
)

func TestMain(m *testing.M) {
	quickjs.Child()
	m.Run()
}

func open(t *testing.T, highest jsvm.Limits) jsvm.Runtime {
	rt, err := quickjs.New(quickjs.Options{
		Processes: 4, Limits: highest, Grace: 30 * time.Millisecond, CompileTime: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func TestRuntime(t *testing.T) { jsvmtest.Test(t, open) }

// TestAttacksMemory runs without the race detector, with which a process takes a second to start.
func TestAttacksMemory(t *testing.T) { jsvmtest.TestAttacks(t, open) }
