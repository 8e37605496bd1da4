package endtoend_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// sign returns the HMAC-SHA-256 of parts.
func sign(secret string, parts ...string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, strings.Join(parts, ""))
	return mac.Sum(nil)
}

// providers sign requests as described in their documentation, with their secrets.
// internal/handlers/signatures tests the requests that they have published.
var providers = map[string]struct {
	secret string
	sign   func(secret, body string, at time.Time) map[string]string
}{
	"github": {"It's a Secret to Everybody", func(secret, body string, _ time.Time) map[string]string {
		return map[string]string{
			"X-Hub-Signature-256": "sha256=" + hex.EncodeToString(sign(secret, body)),
			"X-GitHub-Event":      "push",
		}
	}},
	"stripe": {"whsec_test", func(secret, body string, at time.Time) map[string]string {
		t := fmt.Sprint(at.Unix())
		return map[string]string{
			"Stripe-Signature": "t=" + t + ",v1=" + hex.EncodeToString(sign(secret, t, ".", body)) +
				",v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39",
		}
	}},
	"slack": {"8f742231b10e8888abcd99yyyzzz85a5", func(secret, body string, at time.Time) map[string]string {
		t := fmt.Sprint(at.Unix())
		return map[string]string{
			"X-Slack-Request-Timestamp": t,
			"X-Slack-Signature":         "v0=" + hex.EncodeToString(sign(secret, "v0:", t, ":", body)),
		}
	}},
	"standard": {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", func(secret, body string, at time.Time) map[string]string {
		t := fmt.Sprint(at.Unix())
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		return map[string]string{
			"webhook-id":        "msg_1",
			"webhook-timestamp": t,
			"webhook-signature": "v1," + base64.StdEncoding.EncodeToString(sign(string(key), "msg_1.", t, ".", body)),
		}
	}},
}

// TestWebhooksOfProviders: requests signed as by each provider are passed to the handler over a
// real connection. Changed and late ones are not.
func TestWebhooksOfProviders(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, w := is.New(t), newWorld(t, open)
		app := read[struct{ ID string }](
			t, w.admin.must(t, "POST", "/api/apps", `{"type": "report", "name": "Hooks"}`),
		).ID
		one := "/api/apps/" + app
		for name, p := range providers {
			w.admin.must(
				t, "PUT", one+"/contents/webhooks/"+name+".js",
				fmt.Sprintf(
					`{"content": "export const config = {verify: {preset: '%s', secret: 'env.%s'}}\nexport const `+
						`POST = ({request}) => ({got: request.rawBody})\n"}`,
					name, name,
				),
			)
			w.admin.must(t, "PUT", one+"/environment/"+name, fmt.Sprintf(`{"value": %q}`, p.secret))
		}
		w.admin.must(t, "POST", one+"/_deploy", "")
		key := read[struct{ Key string }](t, w.admin.must(t, "POST", one+"/webhook-tokens", `{}`)).Key
		send := func(name, body string, headers map[string]string) answer {
			t.Helper()
			r, err := http.NewRequestWithContext(
				t.Context(), "POST", w.url+one+"/_hook/"+name+"?token="+key, strings.NewReader(body),
			)
			is.NoErr(err)
			r.Header.Set("Content-Type", "application/json")
			for name, value := range headers {
				r.Header.Set(name, value)
			}
			res, err := w.way.RoundTrip(r)
			is.NoErr(err)
			return received(t, res)
		}
		const body = `{"id": "évt_1", "type": "invoice.paid"}`
		for name, p := range providers {
			a := send(name, body, p.sign(p.secret, body, time.Now()))
			is.Equal(a.status, 200)
			is.Equal(read[struct{ Got string }](t, a).Got, body)
			is.Equal(send(name, body+" ", p.sign(p.secret, body, time.Now())).status, 401)
			is.Equal(send(name, body, p.sign("whsec_b3RoZXI=", body, time.Now())).status, 401)
			is.Equal(send(name, body, nil).status, 401)
			late := 401
			if name == "github" { // github signs no time
				late = 200
			}
			is.Equal(send(name, body, p.sign(p.secret, body, time.Now().Add(-6*time.Minute))).status, late)
		}
		l := read[struct{ Recent []struct{ StatusCode int } }](t, w.admin.must(t, "GET", one+"/webhooks", ""))
		is.Equal(len(l.Recent), 5*len(providers))
	})
}
