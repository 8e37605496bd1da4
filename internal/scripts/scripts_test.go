package scripts_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/apps"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/drafts/manifest"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
	"github.com/tenantcontent/tenantcontent/internal/workspaces"
)

// failing is an API whose calls fail.
type failing struct{ err error }

// Call implements scripts.API.
func (f failing) Call(context.Context, scripts.Request) (scripts.Answer, error) {
	return scripts.Answer{}, f.err
}

// heads is a Store that has each app.
type heads struct{ apps.Store }

// Head implements apps.Store.
func (heads) Head(_ context.Context, tenant string, at apps.Lookup) (apps.App, error) {
	return apps.App{Tenant: tenant, ID: at.ID}, nil
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

// TestOnlyWhatActsIsCapped: the rights of the app's owner are looked up for what a script does as
// its viewer, and not for the app's own database and for texts.
func TestOnlyWhatActsIsCapped(t *testing.T) {
	is := is.New(t)
	asked := 0
	o := scripts.Options{
		Apps:       apps.New(apps.Options{Store: heads{}}),
		Workspaces: workspaces.New(workspaces.Options{}),
		Owner: func(context.Context, string, string) (actor.Actor, error) {
			asked++
			return actor.Actor{}, errs.New(errs.Unavailable, "The owner is not known.")
		},
		Markdown: func(_ context.Context, text string) (string, error) { return "<p>" + text, nil },
		Extract:  func(_ context.Context, _, _ string, data []byte) (string, error) { return string(data), nil },
	}
	in := functions(t, o, scripts.Call{Viewed: true})
	call := func(name, args string) string {
		out, err := in.Functions[name](t.Context(), json.RawMessage(args))
		if err != nil {
			return errs.MessageOf(err)
		}
		return string(out)
	}
	is.Equal(call("markdown", `["a"]`), `"\u003cp\u003ea"`)
	is.Equal(call("extractText", `[{"content": "a"}]`), `"a"`)
	is.True(call("query", `["SELECT 1"]`) != "")
	is.Equal(asked, 0)
	for i, name := range []string{"fetch", "dataset", "emit", "notify", "email"} {
		is.Equal(call(name, `["a"]`), "The owner is not known.")
		is.Equal(asked, i+1)
	}
	is.Equal(len(in.Functions), 8)
}
