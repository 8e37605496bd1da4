package scripts_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// failing is an API whose calls fail.
type failing struct{ err error }

// Call implements scripts.API.
func (f failing) Call(context.Context, scripts.Request) (scripts.Answer, error) {
	return scripts.Answer{}, f.err
}

// functions returns what a script can call.
func functions(t *testing.T, o scripts.Options, c scripts.Call) handlers.Invocation {
	t.Helper()
	var in handlers.Invocation
	t.Cleanup(scripts.New(o).Bind(c, &in))
	return in
}

// TestFetchNamesItself: an error of the routes is one of fetch for the script, with its code.
func TestFetchNamesItself(t *testing.T) {
	is := is.New(t)
	may := manifest.Manifest{Access: []manifest.Rule{{Methods: []string{"GET"}, Path: "colors"}}}
	for _, err := range []error{
		errs.New(errs.TooLarge, "The answer has more than 4 bytes."),
		errs.New(errs.Unavailable, "The routes are not served yet."),
	} {
		in := functions(t, scripts.Options{API: failing{err}}, scripts.Call{Access: may})
		_, got := in.Functions["fetch"](t.Context(), json.RawMessage(`["colors"]`))
		is.Equal(errs.CodeOf(got), errs.CodeOf(err))
		is.Equal(errs.MessageOf(got), "fetch: "+errs.MessageOf(err))
	}
}
