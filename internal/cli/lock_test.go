package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/sqldb/dblock"
	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// TestRekeyBesideAServer: rekey names the running server and changes nothing, on both databases.
func TestRekeyBesideAServer(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, s := is.New(t), serving(t, flags...)
		fails(t, 1, "in use by "+s.url+" (process ", "", append([]string{"rekey"}, flags...)...)
		s.login(t, "", "admin", password)
		is.Equal(s.stop(), 0)
		done(t, "", append([]string{"rekey"}, flags...)...)
	})
}

// TestStartBesideARekey: neither a server nor a command that encrypts starts while the keys are
// being changed.
func TestStartBesideARekey(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is := is.New(t)
		done(t, "", append([]string{"migrate"}, flags...)...)
		url := strings.TrimPrefix(flags[0], "--database=")
		if data, ok := strings.CutPrefix(flags[0], "--data="); ok {
			url = "sqlite:" + filepath.Join(data, "tenantcontent.db")
		}
		db, err := engines.Open(url)
		is.NoErr(err)
		defer func() { _ = db.Close() }()
		lock, err := dblock.Alone(t.Context(), db, "rekey")
		is.NoErr(err)
		fails(t, 1, "is being changed by rekey (process ", "",
			append([]string{"serve", "--listen=127.0.0.1:0"}, flags...)...)
		fails(t, 1, "is being changed by rekey (process ", "", append([]string{"tenant", "add", "acme"}, flags...)...)
		fails(t, 1, "in use by rekey (process ", "", append([]string{"rekey"}, flags...)...)
		is.NoErr(lock.Release())
		done(t, "", append([]string{"tenant", "add", "acme"}, flags...)...)
	})
}

// TestRekeyWithoutASecret: without secrets the key is not changed, because a server that is about
// to start has read it.
func TestRekeyWithoutASecret(t *testing.T) {
	is, data := is.New(t), migrated(t)
	before, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.True(strings.Contains(done(t, "", "rekey", "--data="+data), "nothing was changed"))
	after, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.Equal(before, after)
}

// TestRowLevelSecurity: it is enabled once. A server that cannot work with it does not start, or
// stops serving.
func TestRowLevelSecurity(t *testing.T) {
	dbtest.Server(t)
	is, secured := is.New(t), dbtest.PostgresURL(t)
	bare := strings.Replace(secured, "row_level_security=on", "row_level_security=off", 1)
	on := func(url string) []string { return []string{"--database=" + url, "--secret-key=" + key} }
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := serving(t, on(bare)...)
	token := s.login(t, "", "admin", password)
	status, _ := s.tryLogin(t, "", "admin", "wrong")
	is.Equal(status, http.StatusUnauthorized)

	said := done(t, "", "migrate", "--row-level-security", "--database="+bare)
	is.True(strings.HasPrefix(said, "Switched on row-level security for "))
	is.Equal(
		done(t, "", "migrate", "--row-level-security", "--database="+bare),
		"Row-level security was on already.\nThe database is up to date.\n",
	)

	const says = "add row_level_security=on to the database URL"
	status, body := call(t, "GET", s.url+"/readyz", "", "")
	is.Equal(status, http.StatusServiceUnavailable)
	is.True(strings.Contains(body, says))
	for deadline := 0; ; deadline++ { // the state is cached for up to a second
		status, body = s.tryLogin(t, "", "admin", password)
		if status != http.StatusUnauthorized || deadline > 2000 {
			break
		}
	}
	is.Equal(status, http.StatusServiceUnavailable) // although the password is right
	is.True(strings.Contains(body, says))
	is.True(strings.Contains(s.stderr.String(), "request not served"))
	status, _ = call(t, "GET", s.url+"/api/session", strings.Replace(token, "a", "b", 1), "")
	is.Equal(status, http.StatusServiceUnavailable)
	is.Equal(s.stop(), 0)
	bypassed(t)

	for _, args := range []string{"serve --listen=127.0.0.1:0", "tenant add acme", "rekey"} {
		fails(t, 1, says, "", append(strings.Fields(args), on(bare)...)...)
		fails(t, 1, "does not bind the role", "", append(strings.Fields(args), on(strings.Replace(
			secured, "tester@", superuser(t)+"@", 1,
		))...)...)
	}
	s = serving(t, on(secured)...)
	s.login(t, "", "admin", password)
	is.Equal(s.stop(), 0)
}

// bypassed checks that a server whose role bypasses the policies refuses all requests, even with
// the right password, soon after they were enabled.
func bypassed(t *testing.T) {
	is, secured := is.New(t), dbtest.PostgresURL(t)
	bare := strings.Replace(secured, "row_level_security=on", "row_level_security=off", 1)
	done(t, "", "migrate", "--database="+bare)
	s := serving(t, "--database="+strings.Replace(bare, "tester@", superuser(t)+"@", 1), "--secret-key="+key)
	token := s.login(t, "", "admin", password)
	done(t, "", "migrate", "--row-level-security", "--database="+bare)
	status, body := http.StatusOK, ""
	for end := time.Now().Add(time.Minute); status == http.StatusOK && time.Now().Before(end); {
		// until the server has checked
		status, body = call(t, "GET", s.url+"/api/session", token, "")
	}
	is.Equal(status, http.StatusServiceUnavailable)
	is.True(strings.Contains(body, "does not bind the role"))
	for _, path := range []string{"/readyz", "/api/session", "/api", "/api/colors"} {
		status, body := call(t, "GET", s.url+path, token, "")
		is.Equal(status, http.StatusServiceUnavailable)
		is.True(strings.Contains(body, "does not bind the role"))
	}
	status, _ = s.tryLogin(t, "", "admin", password)
	is.Equal(status, http.StatusServiceUnavailable)
	is.Equal(s.stop(), 0)
}

// superuser returns the name of a role that bypasses policies.
func superuser(t *testing.T) string {
	t.Helper()
	db, err := engines.Open(dbtest.Server(t).URL)
	is.New(t).NoErr(err)
	defer func() { _ = db.Close() }()
	var name string
	is.New(t).NoErr(db.QueryRowContext(t.Context(), "SELECT current_user").Scan(&name))
	return name
}
