package quickjs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
)

// Compile implements jsvm.Runtime. What the tenant wrote is read by a child alone: a script that is
// nested deeply enough overflows the stack of whoever parses it.
func (rt *Runtime) Compile(ctx context.Context, src jsvm.Source) (*jsvm.Program, error) {
	if !fs.ValidPath(src.Entry) || loaders[path.Ext(src.Entry)] == 0 {
		return nil, errs.New(errs.Invalid, "The entry %q is no path of a file that ends in .js or .mjs.", src.Entry)
	}
	task, child, done, err := rt.acquire(ctx, src.Tenant, src.Key, "")
	if err != nil {
		return nil, err
	}
	reusable := false
	defer func() { done(reusable) }()
	reader := &reader{rt: rt, files: src.Files}
	x := &exchange{
		rt: rt, task: task, process: child, compiled: &compiled{},
		limits: jsvm.Limits{
			Time: time.Hour, Active: rt.o.CompileTime, Calls: math.MaxInt32,
			CallBytes: 64 << 10, Output: 64 << 10, LogBytes: 0, LogLines: 0,
		},
		functions: map[string]jsvm.Function{readFunction: reader.read},
	}
	reusable = x.run(ctx, kindCompile, newEncoder(64).string(src.Entry))
	switch c := x.compiled; {
	case x.result.Outcome == jsvm.Canceled:
		return nil, context.Cause(ctx)
	case x.result.Outcome == jsvm.Evicted:
		return nil, errs.New(errs.Unavailable, busy)
	case x.result.Outcome == jsvm.Timeout:
		return nil, errs.New(errs.Invalid, "%s takes more than %s to compile.", src.Entry, rt.o.CompileTime)
	case x.result.Outcome != "":
		return nil, errs.New(errs.Invalid, "%s cannot be compiled: it is too large or nested too deeply.", src.Entry)
	case len(c.problems) > 0:
		return nil, errs.New(errs.Invalid, "%s", sentences(src.Entry, c))
	default:
		return &jsvm.Program{
			Engine: engineName(), Hash: programHash(c.code), Entry: src.Entry,
			Exports: c.exports, Files: c.files, Code: c.code, Map: c.sourceMap,
		}, nil
	}
}

// sentences returns the problems of a source, each with its place.
func sentences(entry string, c *compiled) string {
	lines := make([]string, len(c.problems))
	for i, p := range c.problems {
		if p.file == "" {
			lines[i] = fmt.Sprintf("%s: %s", entry, p.text)
		} else {
			lines[i] = fmt.Sprintf("%s:%d:%d: %s", p.file, p.line, p.column, p.text)
		}
	}
	return strings.ToValidUTF8(strings.Join(lines, "\n"), "\ufffd")
}

// reader reads the files of a Source for a child.
type reader struct {
	rt    *Runtime
	files fs.FS
	found int
	asked int
	bytes int
}

// lookups is how many paths are tried for each file that a script may import.
const lookups = 8

// read returns the content of the file that args names, nil if there is none. It is called once at
// a time.
func (r *reader) read(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
	name := string(args)
	if r.asked++; r.asked > lookups*r.rt.o.MaxFiles {
		return nil, errs.New(errs.Invalid, "The script imports more than %d files.", r.rt.o.MaxFiles)
	}
	if !fs.ValidPath(name) || r.files == nil {
		return nil, nil
	}
	f, err := r.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(r.rt.o.MaxSource-r.bytes)+1))
	r.found++
	r.bytes += len(content)
	switch {
	case err != nil:
		return nil, err
	case r.found > r.rt.o.MaxFiles:
		return nil, errs.New(errs.Invalid, "The script imports more than %d files.", r.rt.o.MaxFiles)
	case r.bytes > r.rt.o.MaxSource:
		return nil, errs.New(
			errs.Invalid, "The files of the script have more than %d bytes together.", r.rt.o.MaxSource,
		)
	case content == nil:
		content = []byte{}
	}
	return content, nil
}
