package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/internal/secure/subprocess"
	"github.com/tenantcontent/tenantcontent/internal/testkit/dbtest"
)

// runAll runs the bundles of a folder in Node.js, and writes their results.
const runAll = `import { readdirSync, writeFileSync } from 'node:fs'
const all = {}, [parts, languages, called] = process.argv.slice(2).map(Number)
setInterval(() => {}, 1000) // timers of AbortSignal do not keep Node.js running
for (const name of readdirSync('bundles')) {
  const { run } = await import('./bundles/' + name)
  for (let part = 0; part < (name.startsWith('intl') ? called : 1); part++) {
    all[name.replace('.mjs', '?part=' + part)] = JSON.stringify(await run(part, parts, languages))
  }
}
writeFileSync('all.json', JSON.stringify(all))
process.exit()
`

// TestPackages: npm packages that handlers need, bundled into one file, have the same results in a
// handler as in Node.js. The values that the files intl.js and web.js mark as their own are those
// of Node.js or, if something is not supported, an error that says so.
//
// The tables of intl*.js run in parts, because all their cases take longer than a call may. With
// the race detector, scripts are compiled and run fifty times slower. The test then runs only the
// first of many parts, for few languages and packages. .ci/test.sh runs it without the detector.
func TestPackages(t *testing.T) {
	is := is.New(t)
	parts, called, languages, pattern := 5, 5, 1000, "*.js"
	if subprocess.Instrumented {
		parts, called, languages, pattern = 97, 1, 3, "[iz]*.js"
	}
	dir := installed(t, "testdata/npm")
	usages, err := filepath.Glob(filepath.Join(dir, pattern))
	is.NoErr(err)
	files := map[string]string{"informer.yaml": "", "index.html": "x"}
	is.NoErr(os.Mkdir(filepath.Join(dir, "bundles"), 0o755))
	for _, file := range usages {
		name := filepath.Base(file)
		b := api.Build(api.BuildOptions{
			EntryPoints: []string{file}, AbsWorkingDir: dir,
			Bundle: true, Format: api.FormatESModule, Platform: api.PlatformBrowser,
			Target: api.ES2022, Charset: api.CharsetUTF8,
			MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		})
		if len(b.Errors) > 0 {
			t.Fatalf("%s: %s", name, b.Errors[0].Text)
		}
		is.NoErr(os.WriteFile(
			filepath.Join(dir, "bundles", strings.TrimSuffix(name, ".js")+".mjs"), b.OutputFiles[0].Contents,
			0o644,
		))
		files["lib/"+name] = string(b.OutputFiles[0].Contents)
		files["server/"+name] = "import { run } from '../lib/" + name +
			"'\nexport const config = { timeout: 120000 }\nexport const GET = async ({ request }) => ({ status: " +
			"200, body: JSON.stringify(await run(Number(request.query.part), " + fmt.Sprintf(
			"%d, %d", parts, languages,
		) + ")) })\n"
	}
	is.NoErr(os.WriteFile(filepath.Join(dir, "all.mjs"), []byte(runAll), 0o644))
	c := exec.CommandContext(
		t.Context(), "node", "all.mjs", fmt.Sprint(parts), fmt.Sprint(languages), fmt.Sprint(called),
	)
	c.Dir, c.Env = dir, append(os.Environ(), "TZ=UTC", "LC_ALL=en_US.UTF-8")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := os.ReadFile(filepath.Join(dir, "all.json"))
	is.NoErr(err)
	var want map[string]string
	is.NoErr(json.Unmarshal(out, &want))

	w := newWorld(t, dbtest.SQLite)
	app := w.admin.app(t, "Packages", files)
	w.admin.must(t, "POST", "/api/apps/"+app+"/_deploy", "")
	for name, value := range want {
		t.Run(name, func(t *testing.T) {
			a := w.admin.do(t, "GET", "/api/apps/"+app+"/view/api/_server/"+name, "")
			if a.status != 200 {
				t.Fatalf("%d %s\n%s", a.status, a.body, w.admin.do(t, "GET", "/api/apps/"+app+"/stats/api", "").body)
			}
			compare(t, value, a.body)
		})
	}
}

// compare compares JSON from Node.js with JSON from a handler. It ignores members whose value is
// "unsupported".
func compare(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	var w, g map[string]json.RawMessage
	if json.Unmarshal([]byte(want), &w) != nil || json.Unmarshal([]byte(got), &g) != nil {
		t.Fatalf("want %s\n got %s", want, got)
	}
	for name, value := range w {
		if string(g[name]) != `"unsupported"` && !bytes.Equal(g[name], value) {
			t.Errorf("%s:\nwant %s\n got %s", name, value, g[name])
		}
	}
}
