package tenantcontent

import (
	"log/slog"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/handlers/quickjs"
	"github.com/tenantcontent/tenantcontent/internal/text/doctext"
	"github.com/tenantcontent/tenantcontent/internal/text/markdown"
)

// Child must be the first call of the main function of every program that opens an App, and of the TestMain of its tests. What tenants write
// is run and read by children of the program: processes of the same program, which work in Child and never return from it. In the program
// itself it returns at once.
func Child() {
	quickjs.Child()
	doctext.Child()
	markdown.Child()
}

// newScripts returns the Runtime of a Config, and what closes it if it was made here.
func newScripts(given jsvm.Runtime, log *slog.Logger) (rt jsvm.Runtime, end func() error, err error) {
	if given != nil {
		return given, func() error { return nil }, nil
	}
	made, err := quickjs.New(quickjs.Options{Limits: jsvm.Limits{Time: handlers.MaxLoadTime}, Logger: log})
	if err != nil {
		return nil, nil, errs.New(errs.Invalid, "tenantcontent.Child() must be the first call of the program's main function (in tests: of TestMain): "+
			"the JavaScript of tenants runs in processes of the same program. A program that runs none sets Config.Scripts to jsvm.None{}.")
	}
	return made, made.Close, nil
}
