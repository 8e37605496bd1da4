package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/httpapi"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestWebhookPage: a page that a webhook answers is at the origin of the service, and can do
// nothing there.
func TestWebhookPage(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	h := hook(t, w, "dana",
		map[string]string{"webhooks/page.js": `export const GET = () => ({status: 200, body: '<script>` +
			`alert(1)</script>', headers: {
		'Content-Type': 'text/html', 'Content-Security-Policy': "script-src *", 'Referrer-Policy': 'unsafe-url',` +
			` 'X-Accel-Redirect': '/secret', 'X-Sendfile': '/etc/passwd'}})
		export const PUT = () => ({status: 500, body: 'no'})`})
	a := h.call(t, "GET", "page", "")
	is.Equal(a.status, 200)
	is.Equal(a.header.Get("Content-Type"), "text/html")
	is.True(strings.HasPrefix(a.header.Get("Content-Security-Policy"), "sandbox; default-src 'none';"))
	is.Equal(a.header.Get("Referrer-Policy"), "no-referrer")
	is.Equal(a.header.Get("X-Accel-Redirect"), "")
	is.Equal(a.header.Get("X-Sendfile"), "")
	is.True(strings.HasPrefix(h.call(t, "PUT", "page", "").header.Get("Content-Security-Policy"), "sandbox;"))
	is.Equal(h.call(t, "PUT", "page", "", `If-Match: "x"`).status, 500) // is the handler's
	is.Equal(w.do(t, "", "PUT", h.path("/_hook/page?token=x"), "", `If-Match: "x"`).status, 401)
}

// TestBodiesOfWebhooks: what the callers of one tenant's webhooks send takes no memory from others.
func TestBodiesOfWebhooks(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{User: 100 << 10, Tenant: 100 << 10, All: 400 << 10, Wait: 200 * time.Millisecond}
	})
	slow := hook(t, w, "dana", map[string]string{
		"webhooks/slow.js":  "export async function POST() { await new Promise(r => setTimeout(r, 1500)) }",
		"webhooks/quick.js": "export const POST = () => 1",
	})
	length := hook(t, w, "eve", map[string]string{
		"webhooks/length.js": "export const POST = ({request}) => request.rawBody.length",
	})
	body, done := strings.Repeat("x", 90<<10), make(chan answer)
	go func() { done <- slow.call(t, "POST", "slow", body, "Content-Type: text/plain") }()
	until(t, "the first body holds the memory", func() bool {
		return slow.call(t, "POST", "quick", body).status == http.StatusServiceUnavailable
	})
	is.Equal(length.call(t, "POST", "length", body, "Content-Type: text/plain").body, "92160")
	is.Equal((<-done).status, http.StatusNoContent)
}

// TestAnswersOfHandlers: large answers count while they are sent, and what a handler reads after it
// has answered does not count for ever.
func TestAnswersOfHandlers(t *testing.T) {
	is, w := is.New(t), newWorld(t, dbtest.SQLite)
	w.fill(t, "dana")
	h := hook(t, w, "dana", map[string]string{
		"informer.yaml":     "access:\n  - {path: reports, methods: [GET]}\n",
		"webhooks/large.js": "export const GET = () => 'x'.repeat(6e5)",
		"webhooks/behind.js": "export async function GET({respond, fetch, log}) { respond('x'); await new " +
			"Promise(r => setTimeout(r, 50)); log((await fetch('reports?limit=1000')).status) }",
	})
	w.rebuilt(t, func(c *httpapi.Config) {
		c.Memory = httpapi.Memory{
			User:   200 << 10,
			Tenant: 200 << 10,
			All:    1 << 20,
			Wait:   time.Millisecond,
			Page:   100 << 10,
		}
	})
	for range 2 {
		is.Equal(h.call(t, "GET", "behind", "").body, `"x"`)
		until(t, "the handler ends", func() bool { return len(h.last(t, "dana").Logs) > 0 })
		is.Equal(h.last(t, "dana").Logs[0].Message, "200")
	}
	const pages = "/api/reports?limit=1000"
	w.must(t, "dana", "GET", pages, "")
	server := w.serve(t)
	w.stall(t, server, "dana", h.path("/_hook/large?token="+h.key))
	is.Equal(w.do(t, "dana", "GET", pages, "").status, http.StatusServiceUnavailable)
	is.Equal(len(h.call(t, "GET", "large", "").body), 600_002) // from a file
}
