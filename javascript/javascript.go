// Package javascript runs the JavaScript of tenants: handlers of apps, and the code of assistants.
// It also converts Markdown and reads documents for them. Hosts with apps import it; the root does
// not.
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
	"github.com/tenantcontent/tenantcontent/internal/text/charset"
	"github.com/tenantcontent/tenantcontent/internal/text/doctext"
	"github.com/tenantcontent/tenantcontent/internal/text/markdown"
)

// Options configure an Engine. The zero value has sensible defaults.
type Options struct {
	// Processes is the most scripts that run at once, each in a separate process; at least 2. The
	// default is one for each 32 MiB of Memory, but 8 to 256.
	Processes int
	// Memory is the most bytes that all running scripts use together. The default is half of the
	// machine's memory, or 2 GiB if that is not known.
	Memory int64
	// Computing is the most scripts that compute at once. The default is twice the number of
	// processors, but 4 to 32.
	Computing int
	// Log receives failures of the processes. The default is slog.Default().
	Log *slog.Logger
}

// Engine runs scripts, for tenantcontent.Config. App.Close closes it.
type Engine struct{ engine }

type engine = jsvm.Engine

// Child must be the first call of the main function of every program that has an Engine, and of the
// TestMain of its tests. Child processes of the program run the scripts and read the documents of
// tenants. They run the same program, and in them Child does not return. In the program itself it
// returns at once.
func Child() {
	quickjs.Child()
	doctext.Child()
	markdown.Child()
}

// New returns an Engine. It starts no process. tenantcontent.Open returns an error if the options
// are invalid or the program has not called Child.
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
	return &Engine{jsvm.NewEngine(jsvm.Parts{
		Runtime: rt, Markdown: markdown.HTML, Extract: doctext.Extract, Decode: charset.Decode,
	}, err)}
}
