package cli

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"
)

func TestLogIsJSONWithoutSecrets(t *testing.T) {
	is := is.New(t)
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := serving(t, append(onSQLite(t), "--log-format=json", "--log-level=debug", "--secret-key="+key)...)
	session := s.login(t, "", "admin", password)
	res, err := http.PostForm(s.url+"/api/login/local", url.Values{"username": {"admin"}, "password": {password}})
	is.NoErr(err)
	is.Equal(res.StatusCode, http.StatusOK)
	cookie := res.Cookies()[0].Value
	is.NoErr(res.Body.Close())
	status, _ := s.tryLogin(t, "", "admin", "a wrong password")
	is.Equal(status, http.StatusUnauthorized)
	status, body := call(t, "POST", s.url+"/api/tokens", session, `{}`)
	is.Equal(status, http.StatusCreated)
	token := field(t, body, "key")
	status, _ = call(t, "GET", s.url+"/api/colors", token, "")
	is.Equal(status, http.StatusOK)
	status, _ = call(t, "GET", s.url+"/api/colors", token+"x", "")
	is.Equal(status, http.StatusUnauthorized)
	status, _ = call(
		t, "PUT", s.url+"/api/users/admin/password", session,
		`{"current":"`+password+`","password":"the next password"}`,
	)
	is.True(status < 500)
	is.Equal(s.stop(), 0)

	lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
	requests := 0
	for _, line := range lines {
		var entry map[string]any
		is.NoErr(json.Unmarshal([]byte(line), &entry)) // each line is an object
		if entry["msg"] == "request" {
			requests++
			is.True(entry["path"] != "" && entry["status"] != nil && entry["request"] != "")
		}
	}
	is.True(requests >= 7)
	said := s.stderr.String() + s.stdout.String()
	for _, secret := range []string{password, "a wrong password", "the next password", session, cookie, token, key} {
		is.True(!strings.Contains(said, secret))
		is.True(!strings.Contains(said, secret[strings.LastIndex(secret, ".")+1:]))
	}
}
