package cli

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/testkit/logtest"
)

// developing is a run of the command dev.
type developing struct {
	stdout, stderr *logtest.Buffer
	stop           func() int // as Ctrl-C does; returns the exit code
	read           int        // number of bytes of stdout that await has read
}

// develop runs the command dev until the test ends.
func develop(t *testing.T, args ...string) *developing {
	t.Helper()
	d := &developing{stdout: &logtest.Buffer{}, stderr: &logtest.Buffer{}}
	ctx, cancel := context.WithCancel(context.Background())
	code := make(chan int, 1)
	go func() { code <- Run(ctx, append([]string{"dev"}, args...), strings.NewReader(""), d.stdout, d.stderr) }()
	d.stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { d.stop() })
	return d
}

// await waits until the output has another match, and returns its groups.
func (d *developing) await(t *testing.T, pattern string) []string {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		text := d.stdout.String()[d.read:]
		re := regexp.MustCompile(pattern)
		if at := re.FindStringIndex(text); at != nil {
			d.read += at[1]
			return re.FindStringSubmatch(text)
		}
	}
	t.Fatalf("no %s in: %s\n%s", pattern, d.stdout, d.stderr)
	return nil
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	is := is.New(t)
	res, err := c.Get(url)
	is.NoErr(err)
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	is.NoErr(err)
	return res.StatusCode, string(text)
}

func TestDev(t *testing.T) {
	is, folder, temporary := is.New(t), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temporary)
	env := filepath.Join(t.TempDir(), "env")
	write(t, filepath.Dir(env), map[string]string{"env": "NAME=Jo\n"})
	write(t, folder, map[string]string{
		"index.html":              "<h1>Hello</h1>",
		"node_modules/x/index.js": "x",
		".tenantcontent.json":     `{"server": "https://example.com", "app": "of another server"}`,
		"server/hello.js": "export function GET({env, log}) {\n  log('called', 1)\n  return {hello: " +
			"env.NAME}\n}\n",
	})
	d := develop(t, folder, "--env-file="+env)
	d.await(t, `published: 2 new, 0 changed, 0 removed \(`)
	link := d.await(t, `View: +((http://127\.0\.0\.1:\S+)/dev/\S+\?app=(\S+))`)
	handler := link[2] + "/api/apps/" + link[3] + "/view/api/_server/"

	jar, err := cookiejar.New(nil)
	is.NoErr(err)
	browser := &http.Client{Jar: jar}
	status, text := get(t, browser, link[1])
	is.Equal(status, http.StatusOK)
	is.True(strings.Contains(text, "<h1>Hello</h1>"))
	status, _ = get(t, http.DefaultClient, strings.Replace(link[1], "/dev/", "/dev/x", 1))
	is.Equal(status, http.StatusNotFound)

	status, text = get(t, browser, handler+"hello")
	is.Equal(status, http.StatusOK)
	is.Equal(text, `{"hello":"Jo"}`)
	d.await(t, `server GET /hello 200 \d+\.\d ms \d+\.\d MiB\n +info +called 1\n`)
	status, _ = get(t, http.DefaultClient, handler+"hello")
	is.Equal(status, http.StatusUnauthorized)
	d.await(t, `server GET /hello 401\n`)
	status, _ = get(t, browser, handler+"there%0Ais%1bnone")
	is.Equal(status, http.StatusNotFound)
	d.await(t, `server GET /there%0Ais%1bnone 404\n`)

	// Code that cannot be compiled is not published.
	write(t, folder, map[string]string{"server/hello.js": "export function GET() {\n  return 1 +\n}\n"})
	d.await(t, `(?m)^`+regexp.QuoteMeta(filepath.Join(folder, "server", "hello.js"))+`:3:\d+: `)
	_, text = get(t, browser, handler+"hello")
	is.Equal(text, `{"hello":"Jo"}`)

	write(t, folder, map[string]string{
		"server/hello.js": "export function GET() {\n  throw new RangeError('too far')\n}\n",
		"server/a/[b].js": "export const GET = ({request}) => request.params.b\n",
	})
	d.await(t, `published: 1 new, 1 changed, 0 removed`)
	status, text = get(t, browser, handler+"hello")
	is.Equal(status, http.StatusInternalServerError)
	is.True(!strings.Contains(text, "too far"))
	d.await(t, `server GET /hello 500 .*\n +RangeError: too far\n +at GET \(server/hello\.js:2:\d+\)\n`)

	write(t, filepath.Dir(env), map[string]string{"env": "NAME=Jo\nGREETING=\"Good \\\"day\\\"\"\n"})
	write(t, folder, map[string]string{"server/hello.js": "export const GET = ({env}) => env.GREETING + env.NAME\n"})
	is.NoErr(os.RemoveAll(filepath.Join(folder, "server", "a")))
	d.await(t, `published: 0 new, 1 changed, 1 removed`)
	_, text = get(t, browser, handler+"hello")
	is.Equal(text, `"Good \"day\"Jo"`)

	write(t, folder, map[string]string{
		"migrations/1.sql": "CREATE TABLE t (n int)",
		"server/none.js":   "export const PUTT = 1\n",
	})
	d.await(t, `published: 2 new, .*\nMigrations applied:\n  1\.sql\nWarning: server/none\.js exports no function .*\n`)
	write(t, folder, map[string]string{"migrations/1.sql": "CREATE TABLE u (n int)"})
	d.await(
		t,
		`published: 0 new, 1 changed, .*\nWarning: .*\nWarning: migrations/1\.sql has changed since it was applied`,
	)
	write(t, folder, map[string]string{"migrations/2.sql": "SELECT 1;\nCREATE TABEL v"})
	d.await(t, `(?m)^`+regexp.QuoteMeta(filepath.Join(folder, "migrations", "2.sql"))+`:2: `)

	is.Equal(d.stop(), 0)
	is.Equal(d.stderr.String(), "")
	left, err := os.ReadDir(temporary)
	is.NoErr(err)
	is.Equal(len(left), 0)
	state, err := os.ReadFile(filepath.Join(folder, stateFile))
	is.NoErr(err)
	is.True(strings.Contains(string(state), "of another server"))
}

func TestDevWebhooks(t *testing.T) {
	is, folder := is.New(t), t.TempDir()
	write(t, folder, map[string]string{
		"webhooks/index.js": "export const GET = ({log}) => { log.warn('a\\nb\\u001b'); return 1 }\n",
	})
	d := develop(t, folder)
	d.await(t, `published: 1 new, .*; there is no index\.html, which viewers see first \(`)
	hook := d.await(t, `Webhook: +GET +(http://127\.0\.0\.1:\S+/_hook\?token=\S+)\n`)[1]
	status, text := get(t, http.DefaultClient, hook)
	is.Equal(status, http.StatusOK)
	is.Equal(text, "1")
	d.await(t, `webhook GET / 200 \d+\.\d ms \d+\.\d MiB\n +warn +a\n +b\\u001b\n`)
	status, _ = get(t, http.DefaultClient, hook+"x")
	is.Equal(status, http.StatusUnauthorized)
	d.await(t, `webhook GET / 401\n`)
	write(t, folder, map[string]string{
		"webhooks/a/[b].js": "export const POST = ({request, respond}) => { respond({b: request.params.b}); throw " +
			"new Error('late') }\n",
	})
	hook = d.await(t, `Webhook: +POST +(http://\S+/_hook/a/:b\?token=\S+)\n`)[1]
	res, err := http.Post(strings.Replace(hook, ":b", "7", 1), "text/plain", strings.NewReader(""))
	is.NoErr(err)
	is.NoErr(res.Body.Close())
	is.Equal(res.StatusCode, http.StatusOK)
	d.await(t, `webhook POST /a/7 200 .*\n +Error: late\n +at `)
	is.Equal(d.stop(), 0)
	is.Equal(d.stderr.String(), "")
}

func TestDevKeeps(t *testing.T) {
	is, folder := is.New(t), t.TempDir()
	write(t, folder, map[string]string{
		"index.html":        "1",
		"app.yaml":          "access: [\n",
		"webhooks/index.js": "export const GET = () => 1\n",
	})
	d := develop(t, folder, "--keep")
	d.await(t, `(?m)^`+regexp.QuoteMeta(filepath.Join(folder, "app.yaml"))+`.*\n`)
	write(t, folder, map[string]string{"app.yaml": "access: []\n"})
	d.await(t, `published: 3 new`)
	first := d.await(t, `/api/apps/(\S+)/_hook\?token=(\S+)`)
	is.Equal(d.stop(), 0)
	d = develop(t, folder, "--keep")
	d.await(t, `published: nothing has changed`)
	is.Equal(d.await(t, `/api/apps/(\S+)/_hook\?token=(\S+)`)[1:], first[1:])
	is.Equal(d.stop(), 0)
	is.Equal(d.stderr.String(), "")
	_, err := os.Stat(filepath.Join(folder, stateFile))
	is.True(os.IsNotExist(err))
}

func TestDevRefuses(t *testing.T) {
	is := is.New(t)
	code, _, stderr := cli(t, "", "dev", filepath.Join(t.TempDir(), "missing"))
	is.Equal(code, 2)
	is.True(strings.Contains(stderr, "cannot read the folder"))
}

func TestReadVariables(t *testing.T) {
	is, folder := is.New(t), t.TempDir()
	file := filepath.Join(folder, "env")
	write(t, folder, map[string]string{
		"env": "\ufeff# a comment\r\n\r\nA=1\nexport B = two words # and a comment\nC='a # b " +
			"\\n'\nD=\"x\\ny\\\\\\\"\\$\"\nE=\nF=a=b#c\n",
	})
	got, err := readVariables(file)
	is.NoErr(err)
	is.Equal(got, map[string]string{
		"A": "1",
		"B": "two words",
		"C": `a # b \n`,
		"D": "x\ny\\\"$",
		"E": "",
		"F": "a=b#c",
	})
	for text, want := range map[string]string{
		"A=1\nB": ":2: this is no NAME=VALUE",
		"=1":     ":1: this is no NAME=VALUE",
		"A='x":   ":1: the value has no quote at its end",
	} {
		write(t, folder, map[string]string{"env": text})
		_, err := readVariables(file)
		is.True(err != nil && strings.HasSuffix(err.Error(), want)) // want
	}
	_, err = readVariables(file + "x")
	is.True(strings.Contains(err.Error(), "cannot read --env-file"))
}

func TestHandlerPath(t *testing.T) {
	for path, want := range map[string][2]string{
		"/api/apps/1/_hook/a/b": {"webhook", "/a/b"}, "/api/apps/1/_hook": {"webhook", "/"}, "/api/apps/1/_hookx": {},
		"/api/apps/1/webhooks": {}, "/api/apps": {}, "/": {},
		"/api/apps/1/view/api/_server/a": {"server", "/a"}, "/api/apps/1/view/x/api/_server": {"server", "/"},
		"/api/apps/1/view/api/_serverx": {}, "/api/apps/1/view": {},
		"/api/apps/1/contents/api/_server/a": {},
	} {
		area, rest := handlerPath(path)
		is.New(t).Equal([2]string{area, rest}, want) // path
	}
}
