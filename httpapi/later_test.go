package httpapi_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// crowdedScripts has no place for handlers while it is full.
type crowdedScripts struct {
	jsvm.Runtime
	full atomic.Bool
}

func (s *crowdedScripts) Run(ctx context.Context, p *jsvm.Program, c jsvm.Call) (jsvm.Result, error) {
	if s.full.Load() {
		return jsvm.Result{}, errs.New(errs.Unavailable, "Too many scripts run at the moment. Try again later.")
	}
	return s.Runtime.Run(ctx, p, c)
}

// TestWebhookRunsLater: with config.later a call that finds no place is answered with 202, and its
// handler runs as the owner when there is one.
func TestWebhookRunsLater(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, crowded := is.New(t), &crowdedScripts{}
		w := newWorld(t, open, withPolls, func(c *tenantcontent.Config) {
			parts, err := jsvm.Open(c.Scripts)
			is.NoErr(err)
			crowded.Runtime = parts.Runtime
			c.Scripts = engine(crowded)
		})
		h := hook(t, w, "admin", map[string]string{
			"webhooks/now.js": "export const POST = () => 1",
			"webhooks/later.js": "export const config = {later: true}\nexport const POST = ({request, log}) => { " +
				"log(request.body.n, request.user.id, request.replay ?? 'first'); return {status: 201} }",
		})
		crowded.full.Store(true)
		is.Equal(h.call(t, "POST", "now", "{}").status, 503)
		answer := h.call(t, "POST", "later", `{"n": 5}`, "Content-Type: application/json")
		is.Equal(answer.status, 202)
		id := read[struct{ InvocationID string }](t, answer).InvocationID
		record := func() map[string]any {
			return read[map[string]any](t, h.must(t, "admin", "GET", h.path("/webhooks/invocations/"+id), ""))
		}
		is.Equal(record()["statusCode"], 202.0)
		crowded.full.Store(false)
		w.workOff(t)
		got := record()
		is.Equal(got["statusCode"], 201.0)
		is.True(strings.Contains(
			string(h.must(t, "admin", "GET", h.path("/webhooks/invocations/"+id), "").body), "5 admin",
		))
		is.Equal(h.do(t, "mia", "GET", h.path("/webhooks/invocations/"+id), "").status/100, 4)
	})
}
