package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/matryer/is"
)

var shown = regexp.MustCompile(`password (\S+) \(shown only now\)`)

// passwordIn returns the random password in the output of a command.
func passwordIn(t *testing.T, stdout string) string {
	t.Helper()
	m := shown.FindStringSubmatch(stdout)
	if m == nil {
		t.Fatalf("no password in %q", stdout)
	}
	return m[1]
}

func TestFirstStart(t *testing.T) {
	is, data := is.New(t), "--data="+filepath.Join(t.TempDir(), "data")
	s := serving(t, data)
	random := passwordIn(t, s.stdout.String())
	is.True(len(random) >= 16)
	is.True(!strings.Contains(s.stderr.String(), random)) // not in the log
	token := s.login(t, "", "admin", random)
	status, body := call(t, "GET", s.url+"/api/tenant", token, "")
	is.Equal(status, http.StatusOK)
	is.Equal(field(t, body, "id"), "default")
	is.True(strings.Contains(body, `"ai":{"enabled":true}`))
	is.True(strings.Contains(body, `"apps"`))
	is.Equal(s.stop(), 0)

	s = serving(t, data)
	is.Equal(s.stdout.String(), "") // not the second time
	s.login(t, "", "admin", random)
}

func TestFirstStartWithPassword(t *testing.T) {
	is, data := is.New(t), "--data="+filepath.Join(t.TempDir(), "data")
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := serving(t, data)
	is.True(strings.Contains(s.stdout.String(), "as configured"))
	is.True(!strings.Contains(s.stdout.String()+s.stderr.String(), password))
	s.login(t, "", "admin", password)
	is.Equal(s.stop(), 0)

	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", "of the first start alone")
	s = serving(t, data)
	s.login(t, "", "admin", password)
}

func TestTenantAdd(t *testing.T) {
	is, data := is.New(t), "--data="+migrated(t)
	random := passwordIn(t, done(t, "", "tenant", "add", "acme", "--name=Acme Inc.", data))
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is.True(!strings.Contains(done(t, "", "tenant", "add", "evil", data), password))
	s := serving(t, data)
	is.Equal(s.stdout.String(), "") // there are tenants: no first start
	_, body := call(t, "GET", s.url+"/api/tenant", s.login(t, "acme", "admin", random), "")
	is.Equal(field(t, body, "name"), "Acme Inc.")
	s.login(t, "evil", "admin", password)
	status, _ := s.tryLogin(t, "acme", "admin", password)
	is.Equal(status, http.StatusUnauthorized)
}

func TestUsers(t *testing.T) {
	is, data := is.New(t), "--data="+migrated(t)
	done(t, "", "tenant", "add", "default", "--admin-password="+password, data)
	done(t, password+"\n", "user", "add", "jo", data)
	done(t, password+"\r\nmore\n", "user", "add", "kim", data) // only the first line, with any line ending
	t.Setenv("TENANTCONTENT_PASSWORD", "from the environment")
	done(t, "", "user", "add", "lee", data)
	is.NoErr(os.Unsetenv("TENANTCONTENT_PASSWORD"))
	s := serving(t, data)
	token := s.login(t, "", "jo", password)
	s.login(t, "", "kim", password)
	s.login(t, "", "lee", "from the environment")

	said := done(t, "another horse battery", "user", "passwd", "jo", data) // while the server is running
	is.True(!strings.Contains(said, "another horse battery"))
	s.login(t, "", "jo", "another horse battery")
	status, _ := s.tryLogin(t, "", "jo", password)
	is.Equal(status, http.StatusUnauthorized)
	is.Equal(s.stop(), 0)
	s = serving(t, data)
	status, _ = call(t, "GET", s.url+"/api/session", token, "")
	is.Equal(status, http.StatusUnauthorized) // the session ended with the password
}

func TestRekeyOfTheFile(t *testing.T) {
	is, data := is.New(t), filepath.Join(t.TempDir(), "data")
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	s := serving(t, "--data="+data)
	token := s.login(t, "", "admin", password)
	is.Equal(s.stop(), 0)
	before, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.True(strings.Contains(
		done(t, "", "rekey", "--data="+data),
		"Encrypted 1 secret again. The key in "+data+"/secret.key was replaced; keep a new copy of it.",
	))
	after, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.True(string(before) != string(after))
	is.Equal(len(before), len(after)) // one key

	s = serving(t, "--data="+data)
	status, _ := call(t, "GET", s.url+"/api/session", token, "")
	is.Equal(status, http.StatusOK)
	is.Equal(s.stop(), 0)
	is.NoErr(os.WriteFile(filepath.Join(data, "secret.key"), before, 0o600))
	fails(t, 2, "does not fit", "", "serve", "--listen=127.0.0.1:0", "--data="+data)
}

func TestRekeyOfAConfiguredRing(t *testing.T) {
	is := is.New(t)
	const newer = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	eachPlace(t, func(t *testing.T, flags []string) {
		base := append(flags, "--secret-key="+key)
		done(t, "", append([]string{"migrate"}, base...)...)
		done(t, "", append([]string{"tenant", "add", "default"}, base...)...)
		both := append(flags, "--secret-key="+newer+","+key)
		is.True(strings.Contains(
			done(t, "", append([]string{"rekey"}, both...)...), "Encrypted 1 secret again under the first key",
		))
		is.True(strings.Contains(done(t, "", append([]string{"rekey"}, both...)...), "nothing was changed"))
		s := serving(t, append(flags, "--secret-key="+newer)...)
		s.login(t, "", "admin", password)
		is.Equal(s.stop(), 0)
		fails(t, 2, "does not fit", "", append([]string{"serve", "--listen=127.0.0.1:0"}, base...)...)
	})
}

func TestMigrate(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		for range 2 {
			is.New(t).Equal(done(t, "", append([]string{"migrate"}, flags...)...), "The database is up to date.\n")
		}
	})
}

func TestOpenAPICommand(t *testing.T) {
	is := is.New(t)
	var document struct {
		OpenAPI string
		Servers []struct{ URL string }
		Paths   map[string]any
	}
	is.NoErr(json.Unmarshal([]byte(done(t, "", "openapi", "--base-url", "https://example.com/content")), &document))
	is.Equal(document.OpenAPI, "3.1.1")
	is.Equal(document.Servers[0].URL, "https://example.com/content")
	is.True(document.Paths["/api/colors/{key}"] != nil)
	is.True(strings.HasPrefix(done(t, "", "openapi", "--yaml"), `"openapi": "3.1.1"`))
}

func TestVersion(t *testing.T) {
	is.New(t).True(strings.HasPrefix(done(t, "", "version"), "tenantcontent "))
}
