package endtoend_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/oidctest"
)

// TestMixUp: a tenant whose provider redirects browsers to another tenant's provider does not
// receive a code of that provider (RFC 9700, 4.4). Its domain has the same name, and it chooses the
// challenge and the nonce.
func TestMixUp(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, open dbtest.Opener) {
		is, honest, evil, w := is.New(t), oidctest.New(t), oidctest.New(t), newWorld(t, open)
		id := w.admin.domain(t, "Work", "OIDC", oidcConfig(honest))
		eve := w.in(t, "evil", "local", "admin", password)
		is.Equal(eve.domain(t, "Work", "OIDC", map[string]any{"issuer": evil.URL, "clientID": "x"}), id)

		attacker := newClient(t)
		own := attacker.sentTo(t, w.sso("acme", id, "/api/session"), "/authorize")
		asked, stolen := 0, ""
		evil.Set(func() {
			evil.Broken["/authorize"] = func(out http.ResponseWriter, r *http.Request) {
				asked++
				on, q := *own, own.Query()
				q.Set("state", r.URL.Query().Get("state"))
				on.RawQuery = q.Encode()
				http.Redirect(out, r, on.String(), http.StatusFound)
			}
			evil.Broken["/token"] = func(out http.ResponseWriter, r *http.Request) {
				stolen = r.FormValue("code")
				http.Error(out, "no", http.StatusInternalServerError)
			}
		})
		newClient(t).get(t, w.sso("evil", id, "/api/session")).stranger(t) // the victim, logged in at acme's provider
		is.Equal(asked, 1)
		is.Equal(stolen, "")
		back, err := url.Parse(own.Query().Get("redirect_uri"))
		is.NoErr(err)
		is.Equal(back.Query().Get("tenant"), "acme")
	})
}
