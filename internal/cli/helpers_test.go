package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/secure/agefile"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
	"github.com/tenantcontent/tenantcontent/javascript"
)

const password = "correct horse battery"

func TestMain(m *testing.M) {
	javascript.Child()
	agefile.SetWorkFactor(10)
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "TENANTCONTENT_") && name != needs.Require {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// cli runs one command in this process.
func cli(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(t.Context(), args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

// done runs a command that must succeed, and returns its output.
func done(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	code, stdout, stderr := cli(t, stdin, args...)
	if code != 0 {
		t.Fatalf("%s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// server is a running server, in this process or in another one.
type server struct {
	url            string
	stdout, stderr *logtest.Buffer
	stop           func() int // as Ctrl-C does; returns the exit code
	cmd            *exec.Cmd  // nil if it runs in this process
}

// serving runs the command serve in this process until the test ends.
func serving(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{stdout: &logtest.Buffer{}, stderr: &logtest.Buffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() {
		code <- Run(
			ctx, append([]string{"serve", "--listen=127.0.0.1:0"}, args...), strings.NewReader(""), s.stdout,
			s.stderr,
		)
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { s.stop() })
	s.await(t, func() bool { return len(code) > 0 })
	return s
}

// spawn runs the built program in another process. The server is ready when spawn returns.
func spawn(t *testing.T, args ...string) *server {
	t.Helper()
	s := begin(t, args...)
	s.await(t, func() bool { return false })
	return s
}

// begin starts the process and does not wait until it is ready.
func begin(t *testing.T, args ...string) *server {
	t.Helper()
	is := is.New(t)
	program, err := built()
	is.NoErr(err)
	s := &server{stdout: &logtest.Buffer{}, stderr: &logtest.Buffer{}}
	s.cmd = exec.Command(program, append([]string{"--listen=127.0.0.1:0"}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.stdout, s.stderr
	is.NoErr(s.cmd.Start())
	ended := sync.OnceValue(func() int { _ = s.cmd.Wait(); return s.cmd.ProcessState.ExitCode() })
	s.stop = func() int {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		return ended()
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		ended()
	})
	return s
}

// kill ends the process as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.stop()
}

var serves = regexp.MustCompile(`url"?[=:]"?(http://[^"\s]+)`)

// await waits until the server has printed its address and is ready.
func (s *server) await(t *testing.T, ended func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) &&
		!ended(); time.Sleep(2 * time.Millisecond) {
		if m := serves.FindStringSubmatch(s.stderr.String()); m != nil {
			s.url = m[1]
			if res, err := http.Get(s.url + "/readyz"); err == nil {
				_ = res.Body.Close()
				if res.StatusCode == http.StatusOK {
					return
				}
			}
		}
	}
	t.Fatalf("the server is not ready: %s", s.stderr)
}

// built builds the program once for all tests of a process, without the race detector, because its
// speed is measured. It uses the flags of make build, so that nothing is compiled only for it.
var built = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "tenantcontent-cmd-"); err != nil {
		return "", err
	}
	program := filepath.Join(folder, "tenantcontent")
	build := exec.Command("go", "build", "-o", program, "../../cmd/tenantcontent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
	text, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return program, nil
})

// folder is the folder of the program, "" until it is built.
var folder string

// call sends a request with a bearer token and returns status and body.
func call(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	status, text, err := try(method, url, token, body)
	is.New(t).NoErr(err)
	return status, text
}

func try(method, url, token, body string) (int, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

// login returns the token of a new session.
func (s *server) login(t *testing.T, tenant, user, password string) string {
	t.Helper()
	status, body := s.tryLogin(t, tenant, user, password)
	if status != http.StatusOK {
		t.Fatalf("login of %s: %d %s", user, status, body)
	}
	return field(t, body, "token")
}

func (s *server) tryLogin(t *testing.T, tenant, user, password string) (int, string) {
	t.Helper()
	in, err := json.Marshal(map[string]string{"tenant": tenant, "username": user, "password": password})
	is.New(t).NoErr(err)
	return call(t, "POST", s.url+"/api/login/local", "", string(in))
}

// field returns a field of a JSON object.
func field(t *testing.T, body, name string) string {
	t.Helper()
	var in map[string]any
	is.New(t).NoErr(json.Unmarshal([]byte(body), &in))
	text, _ := in[name].(string)
	return text
}

func onSQLite(t *testing.T) []string { return []string{"--data=" + filepath.Join(t.TempDir(), "data")} }

func onPostgres(t *testing.T) []string {
	return []string{"--database=" + dbtest.PostgresURL(t), "--secret-key=" + key}
}

// key is a secret key.
const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// eachPlace runs a test on both databases, with the server in another process.
func eachPlace(t *testing.T, test func(t *testing.T, flags []string)) {
	t.Setenv("TENANTCONTENT_ADMIN_PASSWORD", password)
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) {
		dbtest.Server(t)
		test(t, onPostgres(t))
	})
}
