package quickjs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

func contains(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Fatalf("%q does not contain %q", text, part)
	}
}

func (s *suite) compile(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	src := jsvm.Source{Entry: "webhooks/[action].js", Files: jsvm.Files{
		"webhooks/[action].js": `import a, { b as c } from "../lib/a"
import data from "../lib/data.json"
import * as folder from "../lib/folder"
const d = require("../lib/common.cjs")
export const config = { timeout: 500 }
export async function POST() { const { late } = await import("../lib/late.mjs"); return [a, c, data.n, folder.f, d.e, late] }
export { POST as PUT }
export default () => 'default'`,
		"lib/a.js":      "export default 'a'; export const b = 'b'",
		"lib/data.json": `{"n": 5}`, "lib/folder/index.js": "export const f = 'f'",
		"lib/common.cjs": "module.exports = {e: 'e'}",
		"lib/late.mjs":   "export const late = 'late'", "lib/unused.js": "syntax error here",
	}}
	p, err := rt.Compile(t.Context(), src)
	is.NoErr(err)
	is.Equal(p.Exports, []string{"POST", "PUT", "config", "default"})
	is.Equal(p.Files, []string{
		"lib/a.js", "lib/common.cjs", "lib/data.json", "lib/folder/index.js", "lib/late.mjs",
		"webhooks/[action].js",
	})
	is.Equal(p.Entry, src.Entry)
	is.Equal(string(run(t, rt, p, jsvm.Call{Function: "PUT"}).Value), `["a","b",5,"f","e","late"]`)
	is.Equal(string(run(t, rt, p, jsvm.Call{Function: "config"}).Value), `{"timeout":500}`)
	is.Equal(string(run(t, rt, p, jsvm.Call{Function: "default"}).Value), `"default"`)
	again, err := rt.Compile(t.Context(), src)
	is.NoErr(err)
	is.Equal(again.Hash, p.Hash) // the same files are the same program
}

func (s *suite) refused(t *testing.T) {
	rt := s.runtime(t, usual())
	for _, c := range []struct {
		name, source string
		want         []string
	}{
		{"syntax", "export const a = 1\nexport const b = = 2", []string{"main.js:2:"}},
		{"two errors", "const a = 1\nconst a = 2\nexport const a = 3", []string{"main.js:2:", "main.js:3:"}},
		{"syntax of an import", "import './lib/bad.js'", []string{"lib/bad.js:2:"}},
		{"regular expression", "const a = 1\n\nexport const b = /(/", []string{"main.js:3"}},
		{"package", "import x from 'lodash'", []string{"main.js:1:", "lodash", "packages cannot be imported"}},
		{"node", "import fs from 'node:fs'", []string{"main.js:1:", "node:fs"}},
		{
			"engine", "import * as os from 'os'; import * as std from 'std'",
			[]string{"main.js:1:", "packages cannot be imported"},
		},
		{"require", "require('fs')", []string{"main.js:1:", "fs"}},
		{"web", "import x from 'https://example.com/x.js'", []string{"main.js:1:", "https://example.com/x.js"}},
		{"data", "import x from 'data:text/javascript,1'", []string{"main.js:1:"}},
		{"absolute", "import x from '/etc/passwd'", []string{"main.js:1:", "absolute"}},
		{"above", "import x from '../secret.js'", []string{"main.js:1:", "../secret.js", "leaves"}},
		{"far above", "import x from './lib/../../../etc/passwd'", []string{"main.js:1:", "leaves"}},
		{"missing", "import x from './none.js'", []string{"main.js:1:", "none.js", "does not exist"}},
		{"missing export", "import { none } from './lib/good.js'; none()", []string{"main.js:1:", "none"}},
		{"other kind", "import x from './lib/image.png'", []string{"main.js:1:", "image.png"}},
		{"file with an error", "import x from './lib/locked.js'", []string{"main.js:1:"}},
		{"too large", "import './lib/large.js'", []string{"bytes together"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			is := is.New(t)
			files := failing{jsvm.Files{
				"main.js": c.source, "lib/bad.js": "\nlet x = }",
				"lib/good.js": "export const good = 1", "lib/image.png": "PNG",
				"lib/large.js": strings.Repeat("//\n", 2<<20),
			}}
			_, err := rt.Compile(t.Context(), jsvm.Source{Entry: "main.js", Files: files})
			is.Equal(errs.CodeOf(err), errs.Invalid)
			for _, w := range c.want {
				contains(t, errs.MessageOf(err), w)
			}
			is.True(len(errs.MessageOf(err)) < 64<<10)
		})
	}
	is := is.New(t)
	for _, entry := range []string{"none.js", "/main.js", "../main.js", "main.txt", "", "."} {
		_, err := rt.Compile(t.Context(), jsvm.Source{Entry: entry, Files: jsvm.Files{"main.js": "", "main.txt": ""}})
		is.Equal(errs.CodeOf(err), errs.Invalid)
	}
	many := jsvm.Files{"main.js": ""}
	for i := range 1500 {
		many[fmt.Sprintf("f%d.js", i)] = ""
		many["main.js"] += fmt.Sprintf("import './f%d.js'\n", i)
	}
	_, err := rt.Compile(t.Context(), jsvm.Source{Entry: "main.js", Files: many})
	is.Equal(errs.CodeOf(err), errs.Invalid)
	contains(t, errs.MessageOf(err), "files")
	is.Equal(value(t, rt, body("return 1")), `1`)
}

// compileAttacks checks sources that parsers recurse into: they end one way or the other.
func (s *suite) compileAttacks(t *testing.T) {
	is := is.New(t)
	rt := s.runtime(t, usual())
	for _, source := range []string{
		strings.Repeat("(", 100_000),
		strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000), "1" + strings.Repeat("+1", 100_000),
		strings.Repeat("()=>{", 1000) + strings.Repeat("}", 1000),
		"`" + strings.Repeat("${`", 20_000), "/" + strings.Repeat("(", 100_000) + "/",
	} {
		start := time.Now()
		_, err := rt.Compile(t.Context(), jsvm.Source{
			Entry: "main.js",
			Files: jsvm.Files{"main.js": "export const main = () => " + source},
		})
		is.True(err == nil || errs.CodeOf(err) == errs.Invalid)
		t.Logf("%.10s… of %d bytes in %s: %.100v", source, len(source), time.Since(start).Round(time.Millisecond), err)
	}
	is.Equal(value(t, rt, body("return 1")), `1`)
}
