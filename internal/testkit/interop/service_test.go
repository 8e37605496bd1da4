//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/domains"
	"github.com/tenantcontent/tenantcontent/domains/ldap"
	"github.com/tenantcontent/tenantcontent/domains/oidc"
	"github.com/tenantcontent/tenantcontent/domains/saml"
	"github.com/tenantcontent/tenantcontent/internal/secure/egress"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/principals"
)

// service is the whole service with an empty database and the tenant acme, whose superuser is
// logged in.
type service struct {
	app   *tenantcontent.App
	log   logtest.Buffer
	token string
}

func newService(t *testing.T) *service {
	t.Helper()
	is, s := is.New(t), &service{}
	var err error
	s.app, err = tenantcontent.Open(tenantcontent.Config{
		DomainDrivers: []domains.Driver{ldap.AD{}, ldap.LDAP{}, saml.Driver{}, oidc.Driver{}},
		AllowNetworks: egress.Loopback(), DB: dbtest.SQLite(t),
		SecretKey: tenantcontent.NewSecretKey(),
		BaseURL:   "http://localhost", Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	is.NoErr(err)
	const password = "a superuser's password"
	_, err = s.app.Principals.Unchecked().AddSuperuser(t.Context(), principals.Credentials{
		Tenant: "acme", Username: "admin", Password: password,
	})
	is.NoErr(err)
	s.token = s.login(t, "local", "admin", password, http.StatusOK).Token
	return s
}

// call sends a request as the superuser, which must be answered with a status, and reads the
// answer.
func (s *service) call(t *testing.T, method, path string, body any, status int, answer any) {
	t.Helper()
	is := is.New(t)
	text, err := json.Marshal(body)
	is.NoErr(err)
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, bytes.NewReader(text))
	r.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	w := httptest.NewRecorder()
	s.app.ServeHTTP(w, r)
	if w.Code != status {
		t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	is.NoErr(json.Unmarshal(w.Body.Bytes(), answer))
}

// session is the answer of a login.
type session struct {
	Token, Message string
	User           struct{ Username string }
}

func (s *service) login(t *testing.T, domain, name, password string, status int) (in session) {
	t.Helper()
	token := s.token
	defer func() { s.token = token }()
	s.token = ""
	s.call(
		t, "POST", "/api/login/"+domain,
		map[string]string{"tenant": "acme", "username": name, "password": password}, status, &in,
	)
	return in
}

// scanned is the result of a scan.
type scanned struct {
	Users    struct{ Created, Updated, Disabled, Unchanged int }
	Warnings []string
}

func (s *service) scan(t *testing.T, domain string) scanned {
	t.Helper()
	var answer struct{ Domains []scanned }
	s.call(t, "POST", "/api/domains/"+domain+"/driver/_scan", map[string]any{}, http.StatusOK, &answer)
	return answer.Domains[0]
}

// testService connects a directory to the service: people log in and are scanned, and the log
// contains why others may not. It must run after the test that has created the refused users.
func testService(
	t *testing.T, d directory, people []string, password string, forms func(name string) []string,
	disabled string, reasons map[string]string,
) {
	is, s := is.New(t), newService(t)
	s.call(
		t, "POST", "/api/domains",
		map[string]any{"name": "Corp", "type": d.driver.Info().ID, "config": d.config}, http.StatusOK,
		&struct{}{},
	)
	is.True(len(s.login(t, "corp", people[0], password, http.StatusOK).Token) > 0) // before any scan
	first := s.scan(t, "corp")
	is.Equal(len(first.Warnings), 0)
	is.True(first.Users.Created >= len(people)-1)
	again := s.scan(t, "corp")
	is.Equal(again.Users.Created+again.Users.Updated+again.Users.Disabled, 0)
	for _, name := range people {
		for _, form := range forms(name) {
			s.login(t, "corp", form, password, http.StatusOK)
		}
	}
	var users struct {
		Embedded map[string][]struct{ Username string } `json:"_embedded"`
	}
	s.call(t, "GET", "/api/users?limit=1000", nil, http.StatusOK, &users)
	for _, user := range users.Embedded["inf:user"] {
		// no other form of a name has become a user
		is.True(!strings.Contains(user.Username, `\`) && !strings.Contains(user.Username, "@"))
	}
	for name, reason := range reasons {
		is.Equal(s.login(t, "corp", name, password, http.StatusUnauthorized).Message, "Unable to log in")
		if !strings.Contains(s.log.String(), reason) {
			t.Errorf("%s: the log does not say %q", name, reason)
		}
	}
	var user struct{ Enabled bool }
	s.call(t, "GET", "/api/users/"+disabled, nil, http.StatusOK, &user)
	is.True(!user.Enabled)
	is.True(!strings.Contains(s.log.String(), password))
}
