package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/matryer/is"
	"golang.org/x/sys/unix"
	"golang.org/x/text/unicode/norm"
)

// gate is a proxy that records the requests to a server, and may answer one itself.
type gate struct {
	url    string
	before func(w http.ResponseWriter, r *http.Request) (answered bool)

	mu       sync.Mutex
	requests []string // methods and paths
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	to, err := url.Parse(server)
	is.New(t).NoErr(err)
	g, proxy := &gate{}, httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.requests = append(g.requests, r.Method+" "+r.URL.EscapedPath())
		answered := g.before != nil && g.before(w, r)
		g.mu.Unlock()
		if !answered {
			// Otherwise an answer that begins before the proxy has read the request's body to its
			// end is cut off: golang/go#40747.
			_ = http.NewResponseController(w).EnableFullDuplex()
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	g.url = s.URL
	return g
}

// seen returns the requests since the last call.
func (g *gate) seen() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.requests
	g.requests = nil
	return all
}

// site is a server with a gate, and a folder with the files of an app.
type site struct {
	*gate
	token  string
	folder string
}

func newSite(t *testing.T, at *live) *site {
	t.Helper()
	return &site{newGate(t, at.url), at.token, t.TempDir()}
}

// live is a server with the token of its superuser.
type live struct {
	*server
	token string
}

// TestApps runs the tests of pushes and pulls on one server.
func TestApps(t *testing.T) {
	s := serving(t, "--data="+t.TempDir(), "--admin-password="+password)
	at := &live{s, s.login(t, "default", "admin", password)}
	for name, test := range map[string]func(t *testing.T, at *live){
		"Push":               testAppPush,
		"PushIgnoredStays":   testAppPushIgnoredStays,
		"PushReplacesFolder": testAppPushReplacesFolder,
		"PushDraft":          testAppPushDraft,
		"PushBesideEditor":   testAppPushBesideEditor,
		"PushCut":            testAppPushCut,
		"PushTakesBack":      testAppPushTakesBack,
		"PushTriesAgain":     testAppPushTriesAgain,
		"PushOtherApp":       testAppPushOtherApp,
		"PushBesideOthers":   testAppPushBesideOthers,
		"PushOtherTenant":    testAppPushOtherTenant,
		"PushFirst":          testAppPushFirst,
		"PushManifest":       testAppPushManifest,
		"PushDeploy":         testAppPushDeploy,
		"PushNewApp":         testAppPushNewApp,
		"Pull":               testAppPull,
		"PullCut":            testAppPullCut,
		"CompareParts":       testAppCompareParts,
	} {
		t.Run(name, func(t *testing.T) { test(t, at) })
	}
}

// run runs a command of app with the site's server and token.
func (s *site) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return cli(t, "", append([]string{"app"}, append(args, "--server="+s.url, "--token="+s.token)...)...)
}

// done is run for a command that must succeed.
func (s *site) done(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := s.run(t, args...)
	if code != 0 {
		t.Fatalf("%s: exit %d: %s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// refused is run for a command that must fail, and returns the error.
func (s *site) refused(t *testing.T, exit int, args ...string) string {
	t.Helper()
	code, stdout, stderr := s.run(t, args...)
	if code != exit {
		t.Fatalf("%s: exit %d: %s%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stderr
}

// write creates files in a folder.
func write(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	is := is.New(t)
	for name, text := range files {
		name = filepath.Join(folder, filepath.FromSlash(name))
		is.NoErr(os.MkdirAll(filepath.Dir(name), 0o755))
		is.NoErr(os.WriteFile(name, []byte(text), 0o644))
	}
}

// files returns the files of a folder without those of the command.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	is, all := is.New(t), map[string]string{}
	is.NoErr(fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == stateFile {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(folder, name))
		all[name] = string(raw)
		return err
	}))
	return all
}

// state returns the state file of the folder.
func (s *site) state(t *testing.T) (stored state) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.folder, stateFile))
	is.New(t).NoErr(err)
	is.New(t).NoErr(json.Unmarshal(raw, &stored))
	return stored
}

// api calls the server and returns its answer.
func (s *site) api(t *testing.T, method, path, body string) string {
	t.Helper()
	status, text := call(t, method, s.url+"/api/"+path, s.token, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

// published returns the files of the folder's app.
func (s *site) published(t *testing.T) map[string]string {
	t.Helper()
	app, all := "apps/"+s.state(t).App, map[string]string{}
	var page struct {
		Embedded struct {
			Files []struct{ Path string } `json:"inf:content"`
		} `json:"_embedded"`
	}
	is.New(t).NoErr(json.Unmarshal([]byte(s.api(t, "GET", app+"/contents?limit=1000", "")), &page))
	for _, f := range page.Embedded.Files {
		all[f.Path] = s.api(t, "GET", app+"/contents/"+strings.ReplaceAll(url.PathEscape(f.Path), "%2F", "/"), "")
	}
	s.seen()
	return all
}

// draft reports whether the folder's app has a draft.
func (s *site) draft(t *testing.T) bool {
	t.Helper()
	status, _ := call(t, "GET", s.url+"/api/apps/"+s.state(t).App+"/draft", s.token, "")
	s.seen()
	return status == 200
}

func lines(text string) []string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(all)
	return all
}

// testAppPush: the first push creates the app, later ones send what has changed, and a push without
// changes takes one request.
func testAppPush(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	ours := map[string]string{
		"index.html": "<h1>Hi</h1>", "assets/app.js": "run()", "data.json": `{"content": "no option"}`,
		"empty": "", "ä b#?%.txt": "x", "keep.log": "kept",
	}
	write(t, s.folder, ours)
	write(t, s.folder, map[string]string{
		".DS_Store": "x", "assets/Thumbs.db": "x", ".git/config": "x", "sub/node_modules/m/x.js": "x",
		".env": "SECRET=x", ".env.local": "SECRET=x", "debug.log": "x", "tmp/x": "x",
		ignoreFile: "# logs\r\n*.log\n!keep.log\n/tmp/\n",
	})
	// as on macOS
	is.NoErr(os.Rename(filepath.Join(s.folder, "ä b#?%.txt"), filepath.Join(s.folder, norm.NFD.String("ä b#?%.txt"))))
	out := s.done(t, "push", s.folder)
	id := s.state(t).App
	is.Equal(lines(out), lines("+ assets/app.js\n+ data.json\n+ empty\n+ index.html\n+ keep.log\n+ ä b#?%.txt\n"+
		"7 ignored (--verbose lists them)\nPublished the app "+id+
		" of the tenant default: 6 new, 0 changed, 0 removed, 0 unchanged.\nView: "+s.url+"/api/apps/"+id+"/view"))
	is.Equal(field(t, s.api(t, "GET", "apps/"+id, ""), "name"), filepath.Base(s.folder))
	all := s.published(t)
	is.Equal(all, ours)
	is.Equal(s.draft(t), false)
	is.Equal(s.state(t).Server, s.url)

	is.Equal(
		s.done(t, "push", s.folder),
		"7 ignored (--verbose lists them)\nNothing to push to the app "+id+
			" of the tenant default: 0 new, 0 changed, 0 removed, 6 unchanged.\nView: "+s.url+"/api/apps/"+id+"/view\n",
	)
	is.Equal(s.seen(), []string{"POST /api/apps/" + id + "/_compare"})

	write(t, s.folder, map[string]string{"index.html": "<h1>New</h1>", "more.css": "x"})
	is.NoErr(os.Remove(filepath.Join(s.folder, "empty")))
	is.NoErr(os.Remove(filepath.Join(s.folder, "keep.log")))
	is.Equal(s.done(t, "push", s.folder),
		"+ more.css\n~ index.html\nOnly on the server, and kept (--delete removes them):\n  empty\n  keep.log\n7 "+
			"ignored (--verbose lists them)\n"+
			// keep.log is not ignored
			"Published the app "+id+" of the tenant default: 1 new, 1 changed, 0 removed, 3 unchanged.\nView: "+s.url+
			"/api/apps/"+id+"/view\n")
	sent := slices.DeleteFunc(s.seen(), func(r string) bool { return !strings.HasPrefix(r, "PUT ") })
	is.Equal(len(sent), 2)

	var answer pushed
	is.NoErr(json.Unmarshal([]byte(s.done(t, "push", s.folder, "--delete", "--json")), &answer))
	is.Equal(answer, pushed{
		Tenant:    "default",
		App:       id,
		URL:       s.url + "/api/apps/" + id + "/view",
		Published: true,
		Deployed:  answer.Deployed,
		Left:      []string{},
		Others:    []string{},
		Ignored: []string{
			".DS_Store", ".env", ".env.local", "assets/Thumbs.db", "debug.log", "sub/node_modules", "tmp",
		},
		New:       []string{},
		Changed:   []string{},
		Removed:   []string{"empty", "keep.log"},
		Kept:      []string{},
		Unchanged: 5,
	})
	is.Equal(*answer.Deployed, runs{
		Routes:     answer.Deployed.Routes[:0],
		Agents:     []string{},
		Migrations: []string{},
		Warnings:   []string{},
	})
	is.Equal(slices.Sorted(maps.Keys(s.published(t))), []string{
		"assets/app.js", "data.json", "index.html", "more.css", "ä b#?%.txt",
	})
}

// testAppPushDeploy: a push deploys the handlers that it publishes, and with --deploy also those
// published already.
func testAppPushDeploy(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{
		"index.html":        "x",
		"server/a.js":       "export const GET = () => 1, POST = GET",
		"webhooks/index.js": "import n from './n.json'\nexport const POST = () => n",
		"webhooks/n.json":   "5",
		"server/lib.js":     "export const n = 1", "migrations/1.sql": "CREATE TABLE t (n integer)",
	})
	const handlers = "\nHandlers:\n  GET, POST view/api/_server/a (server/a.js)\n  POST _hook " +
		"(webhooks/index.js)\nWarning: server/lib.js exports no function GET, POST, PUT, PATCH or DELETE, so it " +
		"is no route.\n"
	out := s.done(t, "push", s.folder)
	id := s.state(t).App
	is.True(strings.Contains(out, ".\nMigrations applied:\n  1.sql"+handlers+"View: "))
	run := func() string { return s.api(t, "GET", "apps/"+id+"/view/api/_server/a", "") }
	is.Equal(run(), "1")

	write(t, s.folder, map[string]string{"server/a.js": "export const GET = (\n"})
	is.True(strings.Contains(s.refused(t, 1, "push", s.folder), "server/a.js:2:1: "))
	is.True(strings.Contains(s.refused(t, 1, "push", s.folder, "--deploy"), "server/a.js:2:1: "))
	is.Equal(run(), "1")
	write(t, s.folder, map[string]string{"server/a.js": "export const GET = () => 2, POST = GET"})
	out = s.done(t, "push", s.folder, "--deploy")
	is.True(strings.Contains(out, "Published the app "+id) && strings.Contains(out, handlers))
	is.Equal(run(), "2")

	// Files that were written without a draft run after a deploy.
	s.api(t, "PUT", "apps/"+id+"/contents/server/a.js", "export const GET = () => 3, POST = GET")
	s.done(t, "pull", s.folder)
	is.Equal(run(), "2")
	is.True(!strings.Contains(s.done(t, "push", s.folder), "Deployed"))
	is.Equal(run(), "2")
	is.True(!strings.Contains(s.done(t, "push", s.folder, "--deploy", "--dry-run"), "Deployed"))
	is.Equal(run(), "2")
	out = s.done(t, "push", s.folder, "--deploy")
	is.True(strings.Contains(out, "Nothing to push to the app "+id) &&
		strings.Contains(out, "\nDeployed the app."+handlers+"View: "))
	is.Equal(run(), "3")
	var answer pushed
	is.NoErr(json.Unmarshal([]byte(s.done(t, "push", s.folder, "--deploy", "--json")), &answer))
	is.Equal(answer.Published, false)
	is.Equal(len(answer.Deployed.Routes), 2)
	s.api(t, "PUT", "apps/"+id+"/contents/server/a.js", "(")
	s.done(t, "pull", s.folder)
	is.True(strings.Contains(s.refused(t, 1, "push", s.folder, "--deploy"), "server/a.js:"))
	is.Equal(run(), "3")

	is.True(strings.Contains(s.refused(t, 2, "push", s.folder, "--deploy", "--draft"), "leave out --draft or --deploy"))
	plain := newSite(t, at)
	write(t, plain.folder, map[string]string{"index.html": "x"})
	is.True(strings.Contains(plain.done(t, "push", plain.folder, "--deploy"), "\nIt has no handlers.\n"))
}

// testAppPushIgnoredStays: files that the folder ignores are not removed from the server.
func testAppPushIgnoredStays(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x"})
	s.done(t, "push", s.folder)
	s.api(t, "PUT", "apps/"+s.state(t).App+"/contents/uploads/a.txt", "x")
	write(t, s.folder, map[string]string{ignoreFile: "uploads"})
	is.True(strings.Contains(s.done(t, "push", s.folder, "--delete"), "0 removed"))
	is.Equal(len(s.published(t)), 2)
}

// testAppPushReplacesFolder: a file replaces a folder, or another spelling of its name, if these
// are removed.
func testAppPushReplacesFolder(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"a/b": "x", "README": "x"})
	s.done(t, "push", s.folder)
	is.NoErr(os.RemoveAll(filepath.Join(s.folder, "a")))
	is.NoErr(os.Remove(filepath.Join(s.folder, "README")))
	write(t, s.folder, map[string]string{"a": "file", "readme": "y"})
	before := s.published(t)
	says := s.refused(t, 2, "push", s.folder)
	is.True(strings.Contains(says, "a/b: cannot be beside a, which is only on the server: --delete removes it"))
	is.True(strings.Contains(says, "README: cannot be beside readme, "))
	// nothing was uploaded
	is.Equal(len(slices.DeleteFunc(s.seen(), func(r string) bool { return strings.HasSuffix(r, "/_compare") })), 0)
	s.done(t, "push", s.folder, "--delete")
	is.Equal(s.published(t), map[string]string{"a": "file", "readme": "y"})
	is.Equal(len(before), 2)
}

// testAppPushDraft: --draft publishes nothing, and a push without it publishes the draft.
func testAppPushDraft(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "old"})
	s.done(t, "push", s.folder)
	write(t, s.folder, map[string]string{"index.html": "new"})
	id := s.state(t).App
	out := s.done(t, "push", s.folder, "--draft")
	draft := s.state(t).Draft
	is.Equal(out, "~ index.html\nPushed into the draft "+draft+" of the app "+id+
		" of the tenant default: 0 new, 1 changed, 0 removed, 0 unchanged.\n"+
		"To publish it: tenantcontent app push "+s.folder+", or POST "+s.url+"/api/apps/"+id+
		"/draft/_commit\nView: "+s.url+"/api/apps/"+draft+"/view\n")
	is.Equal(s.published(t)["index.html"], "old")
	is.True(strings.Contains(s.done(t, "push", s.folder, "--draft"), "0 changed"))

	write(t, s.folder, map[string]string{"index.html": "old"}) // as in the published app
	is.True(strings.Contains(s.done(t, "push", s.folder), "\nIt has a draft, "+draft+", which stays as it is.\n"))
	write(t, s.folder, map[string]string{"index.html": "new"})
	is.True(strings.HasPrefix(s.done(t, "push", s.folder), "Published the app "))
	is.Equal(s.published(t)["index.html"], "new")
	is.Equal(s.state(t).Draft, "")
	is.Equal(s.draft(t), false)

	// changes of an earlier push in a draft are not changes by others
	write(t, s.folder, map[string]string{"index.html": "drafted"})
	s.done(t, "push", s.folder, "--draft")
	write(t, s.folder, map[string]string{"index.html": "drafted again"})
	s.done(t, "push", s.folder, "--draft")
	s.api(t, "POST", "apps/"+id+"/draft/_commit", "")
	write(t, s.folder, map[string]string{"index.html": "newest"})
	is.Equal(s.done(t, "pull", s.folder)[:50], "Changed here alone, and kept (app push sends them)")
	s.done(t, "push", s.folder)
	is.Equal(s.published(t), map[string]string{"index.html": "newest"})
	is.Equal(len(s.state(t).Sent), 0)
}

// testAppPushBesideEditor: a push does not publish what others are editing, unless it is forced.
func testAppPushBesideEditor(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "old"})
	s.done(t, "push", s.folder)
	id := s.state(t).App
	_, text := call(
		t, "POST", s.url+"/api/login/local", "",
		`{"username": "admin", "password": "`+password+`", "tenant": "default"}`,
	)
	other := &site{gate: s.gate, token: field(t, text, "token")}
	other.api(t, "PUT", "apps/"+field(t, other.api(t, "POST", "apps/"+id+"/_edit", ""), "id")+"/contents/theirs", "x")
	write(t, s.folder, map[string]string{"index.html": "new"})

	is.True(strings.Contains(
		s.refused(t, 1, "push", s.folder),
		"that no push of this folder has begun and admin is editing, and with it",
	))
	says := s.refused(t, 1, "push", s.folder, "--draft")
	is.Equal(
		says,
		"tenantcontent: the draft is being edited by admin in another session: wait, or take it over with --force\n",
	)
	is.Equal(s.state(t).Draft, "")
	is.Equal(s.published(t), map[string]string{"index.html": "old"})
	s.done(t, "push", s.folder, "--force")
	is.Equal(s.published(t), map[string]string{"index.html": "new", "theirs": "x"})

	write(t, s.folder, map[string]string{"index.html": "newer"})
	s.done(t, "push", s.folder, "--draft")
	s.api(t, "PUT", "apps/"+id+"/contents/theirs", "y")
	says = s.refused(t, 1, "push", s.folder)
	is.True(strings.Contains(says, "409 Conflict: The app has changed since the draft began"))
	is.True(strings.Contains(says, "\nNothing is published: the next push goes on. --force takes over the draft"))
	s.done(t, "push", s.folder, "--force")
	is.Equal(s.published(t)["index.html"], "newer")
}

// testAppPushCut: a push that is interrupted does not change the published app, and the next one
// continues it.
func testAppPushCut(t *testing.T, at *live) {
	for name, cut := range map[string]struct {
		in   func(r *http.Request) bool
		says string
	}{
		"sending": {func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/contents/2.txt")
		}, "interrupted: nothing is published; the next push goes on\n"},
		"publishing": {func(r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/_commit")
		}, "interrupted: the app may be published: the next push shows whether it is\n"},
	} {
		t.Run(name, func(t *testing.T) {
			is, s := is.New(t), newSite(t, at)
			write(t, s.folder, map[string]string{"0.txt": "old"})
			s.done(t, "push", s.folder)
			for i := range 5 {
				write(t, s.folder, map[string]string{fmt.Sprint(i, ".txt"): "new"})
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			s.mu.Lock()
			s.before = func(w http.ResponseWriter, r *http.Request) bool {
				if cut.in(r) {
					stop()
					_, _ = io.Copy(io.Discard, r.Body)
					return true
				}
				return false
			}
			s.mu.Unlock()
			var out, errs strings.Builder
			is.Equal(
				Run(
					ctx, []string{"app", "push", s.folder, "--server=" + s.url, "--token=" + s.token},
					strings.NewReader(""), &out, &errs,
				),
				exitInterrupted,
			)
			is.True(strings.Contains(errs.String(), cut.says))
			s.mu.Lock()
			s.before = nil
			s.mu.Unlock()
			is.Equal(s.published(t), map[string]string{"0.txt": "old"})
			is.True(s.draft(t))
			s.done(t, "push", s.folder)
			is.Equal(len(s.published(t)), 5)
			is.Equal(s.published(t)["0.txt"], "new")
			is.Equal(s.draft(t), false)
		})
	}
}

// testAppPushTakesBack: a file that was only sent by a failed push is removed with the file of the
// folder.
func testAppPushTakesBack(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "1", "old.txt": "x"})
	s.done(t, "push", s.folder)
	write(t, s.folder, map[string]string{"index.html": "2", "server/a.js": "export const GET = ("})
	is.True(strings.Contains(s.refused(t, 1, "push", s.folder), "server/a.js:"))
	is.NoErr(os.Remove(filepath.Join(s.folder, "server", "a.js")))
	is.NoErr(os.Remove(filepath.Join(s.folder, "old.txt")))
	says := s.done(t, "push", s.folder)
	is.True(strings.Contains(says, "- server/a.js\n"))
	// it was published: --delete removes it
	is.Equal(s.published(t), map[string]string{"index.html": "2", "old.txt": "x"})
	is.Equal(s.draft(t), false)
}

// TestAppPushKilled: a push that is killed does not change the published app, and the next one
// continues it.
func TestAppPushKilled(t *testing.T) {
	eachPlace(t, func(t *testing.T, flags []string) {
		is, server := is.New(t), spawn(t, flags...)
		s := &site{newGate(t, server.url), server.login(t, "default", "admin", password), t.TempDir()}
		write(t, s.folder, map[string]string{"0.txt": "old", "1.txt": "old"})
		s.done(t, "push", s.folder)
		for i := range 9 {
			write(t, s.folder, map[string]string{fmt.Sprint(i, ".txt"): "new"})
		}
		program, err := built()
		is.NoErr(err)
		ctx, kill := context.WithCancel(t.Context())
		defer kill()
		cmd := exec.CommandContext(ctx, program, "app", "push", s.folder)
		cmd.Env = append(os.Environ(), "TENANTCONTENT_SERVER="+s.url, "TENANTCONTENT_TOKEN="+s.token)
		puts := 0
		s.mu.Lock()
		s.before = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				puts++
			}
			if puts == 6 {
				kill()
			}
			return puts >= 6
		}
		s.mu.Unlock()
		is.True(cmd.Run() != nil)
		s.mu.Lock()
		s.before = nil
		s.mu.Unlock()
		is.Equal(s.published(t), map[string]string{"0.txt": "old", "1.txt": "old"})
		is.True(s.draft(t))
		s.done(t, "push", s.folder)
		all := s.published(t)
		is.Equal(len(all), 9)
		is.Equal(all["0.txt"]+all["8.txt"], "newnew")
		is.Equal(s.draft(t), false)
	})
}

// testAppPushTriesAgain: a request is repeated if the server is busy.
func testAppPushTriesAgain(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x"})
	refusals := 0
	s.mu.Lock()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || refusals > 0 {
			return false
		}
		refusals++
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	s.mu.Unlock()
	s.done(t, "push", s.folder)
	is.Equal(s.published(t), map[string]string{"index.html": "x"})
}

// TestAppPushRefuses: files that cannot be in an app are named before anything is sent.
func TestAppPushRefuses(t *testing.T) {
	is, folder := is.New(t), t.TempDir()
	write(t, folder, map[string]string{
		"ok":        "x",
		"A.txt":     "x",
		"a.txt":     "y",
		"dir/f":     "x",
		"DIR":       "x",
		"b\\c":      "x",
		"line\nend": "x",
		"e\u0301":   "x",
		"é":         "x",
		"deep/" + strings.Repeat(strings.Repeat("d", 250)+"/", 4) + "deeper than paths may be": "x",
	})
	is.NoErr(os.Symlink("ok", filepath.Join(folder, "link")))
	is.NoErr(os.Symlink(t.TempDir(), filepath.Join(folder, "away")))
	is.NoErr(unix.Mkfifo(filepath.Join(folder, "pipe"), 0o600))
	requests := 0
	flags := answering(t, func(http.ResponseWriter, *http.Request) { requests++ })
	code, _, stderr := cli(t, "", append([]string{"app", "push", folder}, flags...)...)
	is.Equal(code, 2)
	for _, says := range []string{
		"a.txt: cannot be beside A.txt, which differs in case alone", "cannot be beside",
		"link: is a symbolic link: put the file itself there", "away: is a symbolic link",
		"pipe: is no plain file", `b\c: path must be UTF-8 without control characters and backslashes`,
		`line\u000aend: path must`, "path must have 1 to 1024 bytes",
	} {
		if !strings.Contains(stderr, says) {
			t.Errorf("%s is not in %s", says, stderr)
		}
	}
	is.Equal(requests, 0)

	wrong, f := &problems{}, &appFolder{}
	var err error
	f.Root, err = os.OpenRoot(folder)
	is.NoErr(err)
	defer func() { _ = f.Close() }()
	is.NoErr(f.digest(t.Context(), []localFile{{path: "gone"}}, wrong))
	is.Equal(wrong.all, []string{"gone: cannot be read: no such file or directory"})
	for i := range 30 {
		wrong.add(fmt.Sprint(i), "is wrong")
	}
	is.True(strings.HasSuffix(wrong.err("no").Error(), "\n  and 11 more"))
}

// TestAppPushFailures has other errors.
func TestAppPushFailures(t *testing.T) {
	big := answering(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"id": "a", "missing": ["ok"], "maxFileBytes": 3}`)
	})
	bad := answering(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, `<html>`) })
	elsewhere := ""
	away := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			elsewhere = r.Header.Get("Authorization")
		}
		http.Redirect(w, r, "/away", http.StatusTemporaryRedirect)
	})
	for name, c := range map[string]struct {
		files map[string]string
		args  []string
		code  int
		says  string
	}{
		"too large": {
			map[string]string{"ok": "1234"}, append(big, "--app=a"), 2,
			"ok: has 4B; a file of an app must have at most 3B",
		},
		"nothing": {map[string]string{".env": "x"}, big, 2, "has no files to push"},
		"no JSON": {map[string]string{"ok": "x"}, append(bad, "--app=a"), 1, "answered what is no JSON"},
		"redirect": {
			map[string]string{"ok": "x"}, append(away, "--app=a"), 1,
			"it sends to /away, and the token was not given for another address",
		},
		"broken state": {map[string]string{"ok": "x", stateFile: "{"}, big, 2, "cannot read "},
		"empty state":  {map[string]string{"ok": "x", stateFile: "{}"}, big, 2, "it names no app or no server"},
		"other server": {
			map[string]string{"ok": "x", stateFile: `{"server": "https://evil.example", "app": "x"}`}, away, 2,
			"is of the app x at https://evil.example, and this is for http://127.0.0.1:",
		},
		"password in a URL": {
			map[string]string{"ok": "x"}, []string{"--server=http://u:p@127.0.0.1:1", "--token=x"}, 2,
			"must have no user and password",
		},
		"unknown type": {map[string]string{"ok": "x"}, append(big, "--type=folder"), 2, "--type must be one of"},
	} {
		t.Run(name, func(t *testing.T) {
			is, folder := is.New(t), t.TempDir()
			write(t, folder, c.files)
			code, _, stderr := cli(t, "", append([]string{"app", "push", folder}, c.args...)...)
			is.Equal(code, c.code)
			if !strings.Contains(stderr, c.says) {
				t.Error(stderr)
			}
		})
	}
	is.New(t).Equal(elsewhere, "")
	code, _, stderr := cli(t, "", append([]string{"app", "push", filepath.Join(t.TempDir(), "none")}, big...)...)
	is.New(t).Equal(code, 2)
	is.New(t).True(strings.Contains(stderr, "cannot read the folder "))
}

// testAppPushOtherApp: a folder is only pushed to its app.
func testAppPushOtherApp(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x"})
	other := field(t, s.api(t, "POST", "apps", `{"type": "report", "name": "Other", "slug": "other"}`), "id")
	s.done(t, "push", s.folder, "--app=admin:other")
	is.Equal(s.state(t).App, other)
	s.done(t, "push", s.folder, "--app=admin:other")
	third := field(t, s.api(t, "POST", "apps", `{"type": "report", "name": "Third"}`), "id")
	is.True(strings.Contains(
		s.refused(t, 2, "push", s.folder, "--app="+third), "is of the app "+other+": leave out --app="+third,
	))
	draft := field(t, s.api(t, "POST", "apps/"+other+"/_edit", ""), "id")
	is.True(strings.Contains(s.refused(t, 2, "push", s.folder, "--app="+draft), "is a draft: name its app, "+other))
	s.api(t, "DELETE", "apps/"+other, "")
	is.True(strings.Contains(
		s.refused(t, 1, "push", s.folder),
		"404 Not Found: App not found. The folder is of the app "+other+" of the tenant default: remove ",
	))
	is.True(strings.Contains(
		s.refused(t, 1, "push", t.TempDir()+"/../"+filepath.Base(s.folder), "--app=admin:none"), "404",
	))
}

// testAppPushBesideOthers: a push does not undo what others have published since the last push or
// pull.
func testAppPushBesideOthers(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "1", "a.css": "1", "old.js": "1", "both": "1"})
	s.done(t, "push", s.folder)
	id, mia := s.state(t).App, filepath.Join(t.TempDir(), "mia")
	s.done(t, "pull", mia, "--app="+id)
	write(t, mia, map[string]string{"index.html": "mia", "new.html": "mia"})
	is.NoErr(os.Remove(filepath.Join(mia, "old.js")))
	s.done(t, "push", mia, "--delete")

	write(t, s.folder, map[string]string{"a.css": "2"})
	is.NoErr(os.Remove(filepath.Join(s.folder, "both")))
	out := s.done(t, "push", s.folder, "--dry-run", "--delete")
	is.True(strings.HasPrefix(out,
		"~ a.css\n- both\nChanged by somebody else since your last push or pull, not here, and left alone (app "+
			"pull brings these changes):\n  index.html\n  old.js\n"+
			"Added by somebody else, and kept (app pull brings them; --delete with --force removes them):\n  "+
			"new.html\nA push to the app "))
	is.Equal(s.published(t), map[string]string{"index.html": "mia", "a.css": "1", "new.html": "mia", "both": "1"})
	s.done(t, "push", s.folder, "--delete")
	is.Equal(s.published(t), map[string]string{"index.html": "mia", "a.css": "2", "new.html": "mia"})
	s.done(t, "push", s.folder, "--delete") // the state file still has the files that were not changed
	is.Equal(s.published(t), map[string]string{"index.html": "mia", "a.css": "2", "new.html": "mia"})

	write(t, s.folder, map[string]string{"index.html": "3", "old.js": "3", "new.html": "3", "a.css": "3"})
	says := s.refused(t, 1, "push", s.folder)
	is.Equal(says,
		"tenantcontent: nothing was sent, as these files were changed on the server since your last push or pull: "+
			"pull first, or overwrite them with --force:\n"+
			"  index.html: was changed here, and on the server\n  new.html: is new here, and somebody else has added "+
			"another one\n  old.js: was changed here, and removed on the server\n")
	is.Equal(s.draft(t), false)
	says = s.refused(t, 1, "pull", s.folder)
	is.True(strings.HasSuffix(
		says, ":\n  index.html: was changed here, and in the app\n  new.html: is here already and differs\n",
	))
	write(t, s.folder, map[string]string{"index.html": "1", "new.html": "mia"}) // only these conflicted
	out = s.done(t, "pull", s.folder)
	is.True(strings.HasPrefix(
		out,
		"~ index.html\nThe app has no more, and this folder keeps (--delete removes them):\n  old.js\nChanged "+
			"here alone, and kept (app push sends them):\n  a.css\nPulled ",
	))
	s.done(t, "push", s.folder)
	is.Equal(s.published(t), map[string]string{"index.html": "mia", "a.css": "3", "new.html": "mia", "old.js": "3"})

	write(t, mia, map[string]string{"a.css": "mia", "x": "mia"})
	s.refused(t, 1, "push", mia)
	s.done(t, "push", mia, "--force")
	write(t, s.folder, map[string]string{"y": "4"})
	s.done(t, "push", s.folder, "--delete", "--force")
	is.Equal(s.published(t), files(t, s.folder))
}

// testAppPushOtherTenant: a folder is not pushed to an app with the same id of another tenant.
func testAppPushOtherTenant(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x"})
	s.done(t, "push", s.folder)
	stored := s.state(t)
	is.Equal(stored.Tenant, "default")
	stored.Tenant = "other"
	raw, err := json.Marshal(stored)
	is.NoErr(err)
	write(t, s.folder, map[string]string{stateFile: string(raw), "index.html": "y"})
	for _, command := range []string{"push", "pull"} {
		says := s.refused(t, 2, command, s.folder, "--force")
		is.True(strings.Contains(
			says,
			" of the tenant other, and your token is of the tenant default: take a token of the tenant other, or "+
				"remove ",
		))
	}
	is.Equal(s.published(t), map[string]string{"index.html": "x"})
}

// testAppPushFirst: the first push to an app with other files needs --force.
func testAppPushFirst(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x"})
	s.done(t, "push", s.folder)
	id, other := s.state(t).App, t.TempDir()
	write(t, other, map[string]string{"index.html": "y"})
	says := s.refused(t, 1, "push", other, "--app="+id)
	is.True(strings.Contains(says, "has other files than "))
	is.True(strings.Contains(s.refused(t, 1, "pull", other, "--app="+id), "index.html: is here already and differs"))
	s.done(t, "push", other, "--app="+id, "--force", "--draft")
	s.done(t, "push", other)
	is.Equal(s.published(t), map[string]string{"index.html": "y"})
	same := t.TempDir()
	write(t, same, map[string]string{"index.html": "y"})
	s.done(t, "push", same, "--app="+id)
	is.True(strings.Contains(
		s.refused(t, 2, "push", same, "--name=New"), "--name, --slug and --type are for a new app",
	))
}

// testAppPushManifest: an invalid manifest is not sent.
func testAppPushManifest(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "x", "informer.yaml": "roles: [viewer]\nrolls: 1\n"})
	says := s.refused(t, 2, "push", s.folder)
	is.True(strings.HasPrefix(says, "tenantcontent: informer.yaml:2:1: rolls: is not known here; "))
	is.Equal(len(s.seen()), 0)
	write(t, s.folder, map[string]string{"informer.yaml": "roles: [viewer]\n"})
	s.done(t, "push", s.folder)
	write(t, s.folder, map[string]string{"informer.yaml": "["})
	s.done(t, "push", s.folder, "--force")
	is.Equal(s.published(t)["informer.yaml"], "[")
}

// testAppPushNewApp: a new app gets a slug, and is only created if the push can succeed.
func testAppPushNewApp(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	folder := filepath.Join(s.folder, "My Site")
	write(t, folder, map[string]string{"index.html": "x"})
	is.Equal(
		s.done(t, "push", folder, "--dry-run"),
		"+ index.html\nA push would make a new app: 1 new, 0 changed, 0 removed, 0 unchanged.\n",
	)
	is.Equal(s.seen(), []string{"GET /api/limits"})
	s.done(t, "push", folder)
	is.Equal(field(t, s.api(t, "GET", "apps/admin:my-site", ""), "name"), "My Site")
	is.NoErr(os.Remove(filepath.Join(folder, stateFile)))
	s.done(t, "push", folder) // without a slug
	is.NoErr(os.Remove(filepath.Join(folder, stateFile)))
	is.True(strings.Contains(s.refused(t, 1, "push", folder, "--slug=my-site"), "409 Conflict"))
	s.done(t, "push", folder, "--slug=mine")
	s.api(t, "GET", "apps/admin:mine", "")

	parent := filepath.Join(s.folder, "parent")
	write(t, parent, map[string]string{"dist/index.html": "x", ".env": "x"})
	out := s.done(t, "push", parent, "--dry-run", "--verbose")
	is.True(strings.HasPrefix(
		out,
		"+ dist/index.html\nIgnored:\n  .env\nWarning: there is no index.html, which viewers see first: did you mean "+filepath.Join(parent, "dist")+"?\nA push ",
	))
	write(t, parent, map[string]string{"informer.yaml": "entryPoint: dist/index.html"})
	is.True(!strings.Contains(s.done(t, "push", parent, "--dry-run"), "Warning"))

	large := filepath.Join(s.folder, "large")
	write(t, large, map[string]string{"index.html": "x"})
	is.NoErr(os.Truncate(filepath.Join(large, "index.html"), 101<<20))
	s.seen()
	for _, also := range [][]string{nil, {"--dry-run"}} { // no app is created
		is.True(strings.Contains(
			s.refused(t, 2, append([]string{"push", large}, also...)...), "a file of an app must have at most",
		))
		is.Equal(s.seen(), []string{"GET /api/limits"})
	}
	_, err := os.Stat(filepath.Join(large, stateFile))
	is.True(os.IsNotExist(err))
	status, _ := call(t, "GET", s.url+"/api/apps/admin:large", s.token, "")
	is.Equal(status, 404)
	is.True(strings.Contains(
		s.refused(t, 1, "push", large, "--app=admin:none"),
		"the server has no app admin:none that you can see: a push without --app makes a new one",
	))
	s.token = "wrong"
	is.True(strings.Contains(
		s.refused(t, 1, "push", folder), "\nCheck TENANTCONTENT_TOKEN: POST /api/tokens makes a token.\n",
	))
}

// testAppPull: a pull writes what has changed, and does not overwrite files that were changed here
// unless it is forced.
func testAppPull(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"index.html": "1", "lib/a.js": "1", "same": "1", "gone": "1", "mine": "1"})
	s.done(t, "push", s.folder)
	id := s.state(t).App
	there := filepath.Join(t.TempDir(), "new", "folder")
	out := s.done(t, "pull", there, "--app="+id)
	is.Equal(
		out,
		"+ gone\n+ index.html\n+ lib/a.js\n+ mine\n+ same\nPulled the app "+id+
			" of the tenant default: 5 new, 0 changed, 0 removed, 0 unchanged.\n",
	)
	is.Equal(files(t, there), files(t, s.folder))
	is.Equal(
		s.done(t, "pull", there),
		"Pulled the app "+id+" of the tenant default: 0 new, 0 changed, 0 removed, 5 unchanged.\n",
	)

	write(t, s.folder, map[string]string{"index.html": "2", "lib/a.js": "2", "mine": "2", "fresh/x": "2"})
	is.NoErr(os.Remove(filepath.Join(s.folder, "gone")))
	s.done(t, "push", s.folder, "--delete")
	write(t, there, map[string]string{"mine": "edited", "own": "x"})
	before := files(t, there)
	is.True(strings.Contains(
		s.refused(t, 1, "pull", there),
		"nothing was written, as these files differ from the app: keep a copy of yours, and overwrite them with "+
			"--force:\n  mine: was changed here, and in the app\n",
	))
	is.Equal(files(t, there), before)
	is.Equal(s.done(
		t, "pull", there, "--force",
	),
		"+ fresh/x\n~ index.html\n~ lib/a.js\n~ mine\nThe app has no more, and this folder keeps (--delete "+
			"removes them):\n  gone\n"+
			"Pulled the app "+id+" of the tenant default: 1 new, 3 changed, 0 removed, 1 unchanged.\n")
	is.Equal(files(t, there), map[string]string{
		"index.html": "2",
		"lib/a.js":   "2",
		"same":       "1",
		"gone":       "1",
		"mine":       "2",
		"fresh/x":    "2",
		"own":        "x",
	})

	is.NoErr(os.Remove(filepath.Join(s.folder, "same")))
	s.done(t, "push", s.folder, "--delete")
	is.True(strings.HasPrefix(s.done(t, "pull", there, "--delete"), "- gone\n- same\nPulled "))
	is.Equal(files(t, there)["own"], "x")
	s.done(t, "push", there) // the folder can be used as any other
	is.Equal(s.published(t)["own"], "x")
}

// testAppPullCut: a pull that is interrupted writes nothing.
func testAppPullCut(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	write(t, s.folder, map[string]string{"a": "1", "b": "1"})
	s.done(t, "push", s.folder)
	id, there := s.state(t).App, filepath.Join(t.TempDir(), "there")
	s.mu.Lock()
	s.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/contents/b") {
			return false
		}
		_, _ = io.WriteString(w, "other")
		return true
	}
	s.mu.Unlock()
	is.True(strings.Contains(
		s.refused(t, 1, "pull", there, "--app="+id), "b was changed in the app meanwhile: pull again",
	))
	_, err := os.Stat(there)
	is.True(os.IsNotExist(err))
	write(t, there, map[string]string{".tenantcontent-pull/0": "left by one that was killed", "a": "1"})
	s.mu.Lock()
	s.before = nil
	s.mu.Unlock()
	is.Equal(
		s.done(t, "pull", there, "--app="+id),
		"+ b\nPulled the app "+id+" of the tenant default: 1 new, 0 changed, 0 removed, 1 unchanged.\n",
	)
	is.Equal(files(t, there), map[string]string{"a": "1", "b": "1"})
	is.True(strings.Contains(s.refused(t, 2, "pull", t.TempDir()), "is of no app yet: name one with --app"))
}

// TestAppPullHostile: whatever names a server sends, nothing is written outside of the folder, nor
// to files that Git runs.
func TestAppPullHostile(t *testing.T) {
	listing := func(t *testing.T, paths ...string) []string {
		var list []map[string]any
		for _, path := range paths {
			list = append(list, map[string]any{"path": path, "size": 1})
		}
		page, err := json.Marshal(map[string]any{"_embedded": map[string]any{"inf:content": list}})
		is.New(t).NoErr(err)
		return answering(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/contents"):
				_, _ = w.Write(page)
			case strings.Contains(r.URL.Path, "/contents/"):
				_, _ = io.WriteString(w, "x")
			default:
				_, _ = io.WriteString(w, `{"id": "a"}`)
			}
		})
	}
	for _, path := range []string{
		"../x", "a/../../x", "/etc/x", `..\x`, `C:\x`, "C:x", "c:/x",
		"a//b", "", ".", "nul\x00", "away/x", "folder", "file/x", "link",
	} {
		t.Run(path, func(t *testing.T) {
			is, base := is.New(t), t.TempDir()
			there := filepath.Join(base, "there")
			write(t, there, map[string]string{"folder/f": "f", "file": "f"})
			is.NoErr(os.Symlink(base, filepath.Join(there, "away")))
			is.NoErr(os.Symlink("file", filepath.Join(there, "link")))
			code, _, stderr :=
				cli(t, "", append([]string{"app", "pull", there, "--app=a", "--force"}, listing(t, "ok", path)...)...)
			is.Equal(code, 2)
			is.True(strings.Contains(
				stderr, "nothing was written, as this folder cannot hold these files of the app:\n  ",
			))
			left, err := os.ReadDir(base)
			is.NoErr(err)
			is.Equal(len(left), 1)
			_, err = os.Stat(filepath.Join(there, "ok"))
			is.True(os.IsNotExist(err))
		})
	}
	is, there := is.New(t), t.TempDir()
	flags := listing(
		t, "ok", ".git/hooks/post-checkout", ".GIT/config", "a/.git./config", "a/git~1/x", ".g\u200cit/config",
		stateFile, ".TenantContent.json", ".tenantcontent-pull/x", ignoreFile, ".env", "node_modules/x",
	)
	is.Equal(
		done(t, "", append([]string{"app", "pull", there, "--app=a"}, flags...)...),
		"+ ok\nPulled the app a: 1 new, 0 changed, 0 removed, 0 unchanged.\n",
	)
	is.Equal(files(t, there), map[string]string{"ok": "x"})

	endless := answering(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"id": "a", "_links": {"next": {"href": "https://evil.example/?limit=1000"}}}`)
	})
	code, _, stderr := cli(t, "", append([]string{"app", "pull", t.TempDir(), "--app=a"}, endless...)...)
	is.Equal(code, 1)
	is.True(strings.Contains(stderr, "answered a list without end"))
}

// testAppCompareParts: more files than fit one comparison are compared in several.
func testAppCompareParts(t *testing.T, at *live) {
	is, s := is.New(t), newSite(t, at)
	id := field(t, s.api(t, "POST", "apps", `{"type": "report", "name": "Large"}`), "id")
	for _, path := range []string{"extra", "f00002", "other"} {
		s.api(t, "PUT", "apps/"+id+"/contents/"+path, "x")
	}
	s.seen()
	p := &push{appCommands: &appCommands{client: client{Server: s.url, Token: s.token}}}
	for i := range maxCompared + 3 {
		p.local = append(p.local, localFile{path: fmt.Sprintf("f%05d", i), sha256: strings.Repeat("0", 64)})
	}
	p.local = append(p.local, localFile{
		path:   "other",
		sha256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881",
	})
	c, err := p.compare(t.Context(), id)
	is.NoErr(err)
	is.Equal(len(c.Missing), maxCompared+2)
	is.Equal(c.Differs, []string{"f00002"})
	is.Equal(c.Extra, []string{"extra"})
	is.True(len(s.seen()) >= 2)
}
