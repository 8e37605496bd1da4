package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/store/engines"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/internal/testkit/pgtest"
)

// spoilTable overwrites a page in the middle of a table.
func spoilTable(t *testing.T, file, table string) {
	t.Helper()
	is := is.New(t)
	db, err := engines.Open("sqlite:" + file)
	is.NoErr(err)
	var page int64
	is.NoErr(db.QueryRowContext(t.Context(), `SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf'
		ORDER BY path LIMIT 1 OFFSET (SELECT count(*) / 2 FROM dbstat WHERE name = ? AND pagetype = 'leaf')`,
		table, table).Scan(&page))
	is.NoErr(db.Close())
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	is.NoErr(err)
	_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), (page-1)*4096)
	is.NoErr(err)
	is.NoErr(f.Close())
}

// TestDamagedDatabase: a server does not start with it. Its backup fails, and a restore keeps it
// beside the new one. The readable rows can be served again, with the right totals.
func TestDamagedDatabase(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, data, to := is.New(t), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "to")
	file, copied := filepath.Join(data, "tenantcontent.db"), filepath.Join(t.TempDir(), "b.tar")
	s := serving(t, "--data="+data)
	s.importColors(t, s.login(t, "", "admin", password), 3000)
	is.Equal(s.stop(), 0)
	spoilTable(t, file, "tc_colors")
	for _, command := range []string{"serve", "migrate"} {
		code, _, text := cli(t, "", command, "--data="+data)
		is.Equal(code, 1)
		is.True(strings.Contains(text, file+" is damaged: "))
		is.Equal(strings.Count(text, "\n"), 1)
	}
	code, _, text := cli(t, "", "backup", "--data="+data, copied)
	is.Equal(code, 1)
	is.True(strings.Contains(text, file+" is damaged: "))
	is.True(!there(copied))
	code, _, _ = cli(t, "", "restore", "--data="+to, copied+".damaged")
	is.Equal(code, 2)
	text = done(t, "", "restore", "--salvage", "--data="+to, copied+".damaged")
	counts := regexp.MustCompile(`tc_colors: (\d+) rows taken, (\d+) lost at \d+ places, 0 ` +
		`removed`).FindStringSubmatch(text)
	is.True(counts != nil)
	var taken, lost int
	_, err := fmt.Sscan(counts[1]+" "+counts[2], &taken, &lost)
	is.NoErr(err)
	is.Equal(taken+lost, 3000)
	is.True(lost > 0 && lost < 300)

	secret, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.NoErr(os.WriteFile(filepath.Join(to, "secret.key"), secret, 0o600))
	s = serving(t, "--data="+to)
	status, body := call(t, "GET", s.url+"/api/colors?limit=1", s.login(t, "", "admin", password), "")
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(body, fmt.Sprintf(`"total":%d`, taken)))
}

// TestSalvageKeepsContentOfLostUsers: the content is assigned to a superuser.
func TestSalvageKeepsContentOfLostUsers(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, data, to := is.New(t), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "to")
	s := serving(t, "--data="+data)
	token := s.login(t, "", "admin", password)
	for i := range 60 {
		status, body := call(
			t, "POST", s.url+"/api/users", token,
			fmt.Sprintf(
				`{"username": "u%02d", "displayName": %q, "password": %q}`, i, strings.Repeat("x", 100),
				password,
			),
		)
		is.Equal(status, http.StatusCreated)
		_ = body
		status, body = call(t, "POST", s.url+"/api/libraries", token, fmt.Sprintf(`{"name": "L%02d"}`, i))
		if status != http.StatusCreated {
			t.Fatal(body)
		}
		status, body = call(
			t, "POST", s.url+"/api/principals/admin/_reassign", token, fmt.Sprintf(`{"to": "u%02d"}`, i),
		)
		if status != http.StatusOK {
			t.Fatal(body)
		}
	}
	is.Equal(s.stop(), 0)
	spoilTable(t, filepath.Join(data, "tenantcontent.db"), "tc_users")
	copied := filepath.Join(t.TempDir(), "b.tar")
	code, _, _ := cli(t, "", "backup", "--data="+data, copied)
	is.Equal(code, 1)
	text := done(t, "", "restore", "--salvage", "--data="+to, copied+".damaged")
	is.True(regexp.MustCompile(`tc_users: \d+ rows taken, [1-9]\d* lost`).MatchString(text))
	secret, err := os.ReadFile(filepath.Join(data, "secret.key"))
	is.NoErr(err)
	is.NoErr(os.WriteFile(filepath.Join(to, "secret.key"), secret, 0o600))
	s = serving(t, "--data="+to)
	status, body := call(t, "GET", s.url+"/api/libraries?limit=1", s.login(t, "", "admin", password), "")
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(body, `"total":60`))
}

// TestKilledRestore: a server does not create an empty database beside the files of a killed
// restore, and names them. The next restore completes it.
func TestKilledRestore(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, data, to := is.New(t), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "to")
	is.Equal(serving(t, "--data="+data).stop(), 0)
	file := filepath.Join(t.TempDir(), "b.tar")
	done(t, "", "backup", "--data="+data, file)
	whole, err := os.ReadFile(file)
	is.NoErr(err)
	program, err := built()
	is.NoErr(err)
	cmd := exec.Command(program, "restore", "--data="+to, "-")
	in, err := cmd.StdinPipe()
	is.NoErr(err)
	is.NoErr(cmd.Start())
	_, err = in.Write(whole[:len(whole)/2])
	is.NoErr(err)
	left := filepath.Join(to, "tenantcontent.db.restoring")
	for deadline := time.Now().Add(20 * time.Second); !there(left) &&
		time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	is.NoErr(cmd.Process.Kill())
	_ = cmd.Wait()
	for _, command := range []string{"serve", "migrate"} {
		code, _, text := cli(t, "", command, "--data="+to)
		is.Equal(code, 1)
		is.True(strings.Contains(text, left))
		is.True(!there(filepath.Join(to, "tenantcontent.db")))
		is.True(!there(filepath.Join(to, "secret.key")))
	}
	done(t, "", "restore", "--data="+to, file)
	is.True(!there(left))
}

// TestMissingSecretKey: a missing key is an error if the database has tenants, and no new one is
// created.
func TestMissingSecretKey(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, data := is.New(t), filepath.Join(t.TempDir(), "data")
	secret := filepath.Join(data, "secret.key")
	done(t, "", "migrate", "--data="+data)
	is.NoErr(os.Remove(secret)) // without tenants a new one is created
	is.Equal(serving(t, "--data="+data).stop(), 0)
	is.NoErr(os.Remove(secret))
	for _, command := range []string{"serve", "migrate"} {
		code, _, text := cli(t, "", command, "--data="+data)
		is.Equal(code, 2)
		is.True(strings.Contains(text, "the secret key file "+secret+" is missing"))
		is.True(!there(secret))
	}
}

// TestOneServerOfAFile: a second server is refused, and names the first one, until that has ended
// or was killed.
func TestOneServerOfAFile(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, data := is.New(t), "--data="+filepath.Join(t.TempDir(), "data")
	s := spawn(t, data)
	code, _, text := cli(t, "", "serve", "--listen=127.0.0.1:0", data)
	is.Equal(code, 1)
	is.True(strings.Contains(text, fmt.Sprintf("is served by 127.0.0.1:0 (process %d on ", s.cmd.Process.Pid)))
	s.kill()
	is.Equal(serving(t, data).stop(), 0)
}

// TestServesNoStandby: the error says that the database is a standby.
func TestServesNoStandby(t *testing.T) {
	is := is.New(t)
	server, err := pgtest.Start(t.Context())
	needs.Start(t, err, pgtest.ErrNoServer)
	t.Cleanup(server.Stop)
	is.NoErr(server.Standby(t.Context()))
	for _, command := range []string{"serve", "migrate"} {
		code, _, text := cli(t, "", command, "--database="+server.URL, "--secret-key="+key)
		is.Equal(code, 1)
		is.True(strings.Contains(text, "this PostgreSQL is a standby"))
		is.Equal(strings.Count(text, "\n"), 1)
	}
}

// TestStopWaitsForServerRoutes: when the server is stopped, a running handler of an app has time to
// answer.
func TestStopWaitsForServerRoutes(t *testing.T) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	is, s := is.New(t), spawn(t, onSQLite(t)...)
	token := s.login(t, "", "admin", password)
	status, body := call(t, "POST", s.url+"/api/apps", token, `{"type": "app", "name": "Slow"}`)
	is.Equal(status, http.StatusCreated)
	app := s.url + "/api/apps/" + field(t, body, "id")
	for name, text := range map[string]string{
		"informer.yaml": "access:\n  - PUT colors/*\n",
		"server/index.js": `export async function POST({fetch}) {
			await fetch('colors/begun', {method: 'PUT', body: {color: '#000000'}})
			await new Promise(resolve => setTimeout(resolve, 4500)) // longer than what goes on after an answer has
			return {body: 'done'}
		}`,
	} {
		status, body := call(t, "PUT", app+"/contents/"+name, token, text)
		if status >= 300 {
			t.Fatal(status, body)
		}
	}
	status, body = call(t, "POST", app+"/_deploy", token, "")
	if status >= 300 {
		t.Fatal(status, body)
	}
	type answer struct {
		status int
		body   string
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		status, body, err := try("POST", app+"/view/api/_server", token, "{}")
		answered <- answer{status, body, err}
	}()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) &&
		len(answered) == 0; time.Sleep(5 * time.Millisecond) {
		if status, _ := call(t, "GET", s.url+"/api/colors/begun", token, ""); status == http.StatusOK {
			break
		}
	}
	code := make(chan int, 1)
	go func() { code <- s.stop() }()
	got := <-answered
	is.NoErr(got.err)
	is.Equal(got.status, http.StatusOK)
	is.Equal(got.body, `{"body":"done"}`)
	is.Equal(<-code, 0)
}
