package quickjs

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// namespace keeps esbuild from looking at files by itself.
const namespace = "app"

// loaders are how files are read, by the end of their names.
var loaders = map[string]api.Loader{
	".js":   api.LoaderJS,
	".mjs":  api.LoaderJS,
	".cjs":  api.LoaderJS,
	".json": api.LoaderJSON,
}

// bundler finds and reads the files of a script for esbuild.
type bundler struct {
	entry string
	fetch func(name string) (string, error)

	mu    sync.Mutex // esbuild loads files in parallel
	files map[string]string
	none  map[string]bool
}

// bundle bundles the entry with what it imports into one module. fetch returns the content of a
// file, or errNoFile.
func bundle(entry string, fetch func(name string) (string, error)) *compiled {
	b := &bundler{entry: entry, fetch: fetch, files: map[string]string{}, none: map[string]bool{}}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, AbsWorkingDir: "/", Outfile: "/bundle.js",
		Bundle: true, Format: api.FormatESModule,
		Platform: api.PlatformNeutral, Target: api.ES2023, Charset: api.CharsetUTF8,
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude, LegalComments: api.LegalCommentsNone,
		Metafile: true, LogLevel: api.LogLevelSilent, TreeShaking: api.TreeShakingTrue,
		Plugins: []api.Plugin{{Name: namespace, Setup: func(p api.PluginBuild) {
			p.OnResolve(api.OnResolveOptions{Filter: ".*"}, b.resolve)
			p.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: namespace}, b.load)
		}}},
	})
	done := &compiled{}
	for _, m := range result.Errors[:min(len(result.Errors), maxProblems)] {
		p := problem{text: m.Text}
		if m.Location != nil {
			p.file, p.line, p.column = strings.TrimPrefix(
				m.Location.File, namespace+":",
			), m.Location.Line, m.Location.Column+1
		}
		if p.file != "" && m.Location != nil && b.isTypeScript(p.file) {
			p.text += typeScript
		}
		done.problems = append(done.problems, p)
	}
	if len(done.problems) > 0 {
		return done
	}
	for _, f := range result.OutputFiles {
		if strings.HasSuffix(f.Path, ".map") {
			done.sourceMap = f.Contents
		} else {
			done.code = f.Contents
		}
	}
	done.exports = exports(result.Metafile)
	for name := range b.files {
		done.files = append(done.files, name)
	}
	slices.Sort(done.files)
	return done
}

// typeScript is added to the errors of a file that would be right if it were TypeScript.
const typeScript = ". This looks like TypeScript: the file must be JavaScript, as tsc or esbuild make it of .ts " +
	"files, or without types"

// isTypeScript reports whether a file of JavaScript, which is none, is TypeScript.
func (b *bundler) isTypeScript(name string) bool {
	b.mu.Lock()
	content, ok := b.files[name]
	b.mu.Unlock()
	if !ok || loaders[path.Ext(name)] != api.LoaderJS {
		return false
	}
	for _, loader := range []api.Loader{api.LoaderTS, api.LoaderTSX} {
		if r := api.Transform(
			content, api.TransformOptions{Loader: loader, LogLevel: api.LogLevelSilent},
		); len(r.Errors) == 0 {
			return len(api.Transform(
				content, api.TransformOptions{Loader: api.LoaderJSX, LogLevel: api.LogLevelSilent},
			).Errors) > 0
		}
	}
	return false
}

// exports returns the names that the bundle exports, sorted.
func exports(metafile string) (names []string) {
	var meta struct {
		Outputs map[string]struct {
			Exports    []string `json:"exports"`
			EntryPoint string   `json:"entryPoint"`
		} `json:"outputs"`
	}
	if json.Unmarshal([]byte(metafile), &meta) != nil {
		return nil
	}
	for _, out := range meta.Outputs {
		if out.EntryPoint != "" {
			names = append(names, out.Exports...)
		}
	}
	slices.Sort(names)
	return names
}

// resolve finds the file that an import names. Only relative paths within the files of the script
// are followed.
func (b *bundler) resolve(args api.OnResolveArgs) (api.OnResolveResult, error) {
	name := args.Path
	switch {
	case args.Kind == api.ResolveEntryPoint:
		name = path.Clean(name)
	case strings.HasPrefix(name, "/"):
		return refuse("the import of " + name + " is absolute: import files by a path that begins with ./ or ../")
	case !strings.HasPrefix(name, "./") && !strings.HasPrefix(name, "../") && name != "." && name != "..":
		return refuse("the import of " + name +
			" is no relative path: packages cannot be imported, only files by a path that begins with ./ or ../")
	default:
		if name = path.Join("/"+path.Dir(args.Importer), name); escapes(args.Importer, args.Path) {
			return refuse("the import of " + args.Path + " leaves the folder of the files")
		}
		name = strings.TrimPrefix(name, "/")
	}
	for _, candidate := range []string{name, name + ".js", name + ".mjs", name + ".json", path.Join(name, "index.js")} {
		switch found, err := b.has(candidate); {
		case err != nil:
			return refuse(err.Error())
		case !found:
		case loaders[path.Ext(candidate)] == api.LoaderNone:
			return refuse(candidate + " cannot be imported: only files whose names end in .js, .mjs, .cjs or .json can")
		default:
			return api.OnResolveResult{Path: candidate, Namespace: namespace}, nil
		}
	}
	return refuse("the file " + name + " does not exist")
}

func refuse(text string) (api.OnResolveResult, error) {
	return api.OnResolveResult{}, errors.New(text)
}

// escapes reports whether a relative path leads above the root.
func escapes(importer, relative string) bool {
	return strings.HasPrefix(path.Join(path.Dir(importer), relative)+"/", "../")
}

func (b *bundler) load(args api.OnLoadArgs) (api.OnLoadResult, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	contents := b.files[args.Path]
	return api.OnLoadResult{Contents: &contents, Loader: loaders[path.Ext(args.Path)]}, nil
}

// has reports whether there is a file, and keeps its content.
func (b *bundler) has(name string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.files[name]; ok {
		return true, nil
	}
	if b.none[name] {
		return false, nil
	}
	content, err := b.fetch(name)
	if errors.Is(err, errNoFile) {
		b.none[name] = true
		return false, nil
	}
	if err == nil {
		b.files[name] = content
	}
	return err == nil, err
}
