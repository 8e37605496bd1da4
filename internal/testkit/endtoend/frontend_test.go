package endtoend_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
	"github.com/tenantcontent/tenantcontent/internal/testkit/needs"
)

var errNoNode = errors.New("no npm found: `make test` installs it, as does `apt-get install nodejs npm`")

// installed returns a copy of a folder with the npm packages of its package.json. They are
// installed once for all test runs on a machine, in the user's cache folder.
func installed(t *testing.T, folder string) string {
	t.Helper()
	is := is.New(t)
	dir := t.TempDir()
	is.NoErr(os.CopyFS(dir, os.DirFS(folder)))
	manifest, err := os.ReadFile(filepath.Join(dir, "package.json"))
	is.NoErr(err)
	caches, err := os.UserCacheDir()
	is.NoErr(err)
	caches = filepath.Join(caches, "tenantcontent-tests")
	kept := filepath.Join(caches, fmt.Sprintf("npm-%.8x", sha256.Sum256(manifest)))
	if _, err := os.Stat(kept); err != nil {
		is.NoErr(os.MkdirAll(caches, 0o755))
		fresh, err := os.MkdirTemp(caches, "installing-")
		is.NoErr(err)
		defer os.RemoveAll(fresh) // unless it was renamed
		is.NoErr(os.WriteFile(filepath.Join(fresh, "package.json"), manifest, 0o644))
		npm(
			t, fresh, "install", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts",
			"--prefer-offline", "--loglevel=error",
		)
		if err := os.Rename(fresh, kept); err != nil { // another process was first
			_, err = os.Stat(kept)
			is.NoErr(err)
		}
	}
	is.NoErr(os.Symlink(filepath.Join(kept, "node_modules"), filepath.Join(dir, "node_modules")))
	return dir
}

// npm runs npm in a folder.
func npm(t *testing.T, dir string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("npm")
	if err != nil {
		needs.Start(t, errNoNode, errNoNode)
	}
	c := exec.CommandContext(t.Context(), path, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("npm %s: %v\n%s", args[0], err, out)
	}
}

// built returns the files of the front end in testdata, as built by Vite.
func built(t *testing.T) map[string]string {
	t.Helper()
	is := is.New(t)
	dir := installed(t, "testdata/frontend")
	npm(t, dir, "exec", "--offline", "--", "vite", "build", "--base=./", "--target=es2022", "--logLevel=warn")
	files, dist := map[string]string{}, filepath.Join(dir, "dist")
	is.NoErr(filepath.WalkDir(dist, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dist, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return files
}

// withOrigins serves apps at separate origins of the same site as the service.
func withOrigins(c *tenantcontent.Config) {
	base, _ := url.Parse(c.BaseURL)
	c.BaseURL = "http://content.site.localhost:" + base.Port()
	c.AppOrigin = "http://{app}.apps.site.localhost:" + base.Port()
}

// TestBuiltFrontEnd: an ordinary bundled front end works in the sandbox, except for history,
// storage and cookies, and at a separate origin with all of them.
func TestBuiltFrontEnd(t *testing.T) {
	files := built(t)
	files["informer.yaml"] = "access: [colors]\n"
	both := map[string]string{
		"later": "later", "late style": "rgb(4, 5, 6)", "font": "loaded", "style": "rgb(1, 2, 3)",
		"image": "7", "user": "admin", "call": "1", "address": "200",
		"refused": "403", "hash": "#/one",
	}
	with := func(own map[string]string) map[string]string {
		for key, value := range both {
			own[key] = value
		}
		return own
	}
	t.Run("sandbox", func(t *testing.T) {
		is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite)
		w.admin.must(t, "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
		app := w.admin.app(t, "Front end", files)
		is.Equal(show(ctx, t, w.admin, "/api/apps/"+app+"/view"), with(map[string]string{
			"storage": "failed: SecurityError", "cookie": "failed: SecurityError",
		}))
	})
	t.Run("own origin", func(t *testing.T) {
		is, ctx, w := is.New(t), newBrowser(t), newWorld(t, dbtest.SQLite, withOrigins)
		w.admin.must(t, "PUT", "/api/colors/red", `{"color": "#ff0000"}`)
		app := w.admin.app(t, "Front end", files)
		// the cookie of the service is not visible
		own := map[string]string{"history": "/orders/5?x=1", "storage": "1", "cookie": "theme=dark"}
		is.Equal(show(ctx, t, w.admin, "/api/apps/"+app+"/view"), with(own))
		is.NoErr(chromedp.Do(ctx, chromedp.Reload())) // of a path that is not a file
		own["storage"] = "2"
		is.Equal(ended(ctx, t), own)
		at, err := chromedp.Run(ctx, chromedp.Evaluate[string]("location.href"))
		is.NoErr(err)
		is.True(strings.HasPrefix(at, "http://"+app+"-") && strings.HasSuffix(at, "/orders/5?x=1"))
		is.True(!strings.Contains(w.log.String(), "code="))
	})
}
