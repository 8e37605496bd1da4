// Package javascript runs the JavaScript of tenants: handlers of apps, and the code of assistants.
// It also converts the Markdown and reads the documents that these bring. Hosts with apps import
// it; the root does not.
//
//	func main() {
//		javascript.Child() // first
//		…
//		app, err := tenantcontent.Open(tenantcontent.Config{
//			DB: db, SecretKeyFile: "secret.key", Scripts: javascript.New(javascript.Options{}),
//		})
//		…
//		defer app.Close()
//	}
package javascript

import (
	"log/slog"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
	"github.com/tenantcontent/tenantcontent/internal/text/doctext"
	"github.com/tenantcontent/tenantcontent/internal/text/markdown"
)

// Options configure an Engine. The zero value has sensible defaults.
type Options struct {
	// Processes is the most scripts at once, each in a process of its own; at least 2. By default
	// one for each 32 MiB of Memory, but 8 to 256.
	Processes int
	// Memory is how many bytes the scripts that run may have together; by default half of the
	// machine's, or 2 GiB where that is not known.
	Memory int64
	// Computing is how many scripts compute at once; by default twice the number of processors, but
	// 4 to 32.
	Computing int
	// Log receives failures of the processes; default slog.Default.
	Log *slog.Logger
}

// Engine runs scripts, for tenantcontent.Config. App.Close ends it.
type Engine struct{ engine }

type engine = jsvm.Engine

// Child must be the first call of the main function of every program that has an Engine, and of the
// TestMain of its tests. What tenants write is run and read by children of the program: processes
// of the same program, which work in Child and never return from it. In the program itself it
// returns at once.
func Child() {
	quickjs.Child()
	doctext.Child()
	markdown.Child()
}

// New returns an Engine. It starts nothing. What is wrong with the options, and a program that has
// not called Child, is an error of tenantcontent.Open.
func New(o Options) *Engine {
	rt, err := quickjs.New(quickjs.Options{
		Processes: o.Processes,
		Memory:    o.Memory,
		Computing: o.Computing,
		Limits:    jsvm.Limits{Time: handlers.MaxLoadTime},
		Logger:    o.Log,
	})
	if err != nil && !quickjs.Ready() {
		err = errs.New(errs.Invalid,
			"javascript.Child() must be the first call of the program's main function (in tests: of TestMain): "+
				"the JavaScript of tenants runs in processes of the same program.")
	}
	return &Engine{jsvm.NewEngine(jsvm.Parts{Runtime: rt, Markdown: markdown.HTML, Extract: doctext.Extract}, err)}
}
