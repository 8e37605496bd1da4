package httpapi

import (
	"context"
	"fmt"
	"net/http"

	"github.com/tenantcontent/tenantcontent/internal/rest"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/internal/handlers"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/scripts"
)

// runHandler runs a handler and returns its answer, as soon as there is one: the handler can go on
// after it. Errors: errs.Unavailable if too many scripts run; a fault of the handler is not an
// error.
func (a views) runHandler(
	ctx context.Context, c scripts.Call, route handlers.Route, request handlers.Request,
) (handlers.Response, error) {
	return rest.Detached(ctx, &a.Transfers, false, func(
		running context.Context, respond func(handlers.Response),
	) (handlers.Response, error) {
		in := handlers.Invocation{
			App:     scripts.AppOf(c.App.App),
			Route:   route,
			Request: request,
			Env:     c.App.Env,
			Respond: respond,
		}
		defer a.Scripts.Bind(c, &in)()
		out, err := a.Webhooks.Unchecked().Serve(actor.With(running, c.Who), in)
		if err == nil && out.Result.Outcome == jsvm.Canceled && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out.Response, err
	})
}

// handled replies with the answer of a handler. A large one is sent from memory as far as that is
// free, else from a temporary file.
func handled(r handlers.Response) rest.Reply {
	return rest.Reply{Status: r.Status, Header: r.Headers, Serve: func(w *rest.Response, _ *http.Request) error {
		body := r.Body
		r.Body = nil // nothing keeps one that is sent from a file
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Status == http.StatusNoContent || r.Status == http.StatusNotModified {
			w.Header().Del("Content-Length")
		}
		w.WriteHeader(r.Status)
		if len(body) > rest.Small && w.Memory.Hold(len(body)) != nil {
			w.WriteSpooled(body)
		} else {
			_, _ = w.Write(body) // a client that has gone needs no answer
		}
		return nil
	}}
}
