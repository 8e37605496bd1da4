package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/handlers/jsvm"
	"github.com/tenantcontent/tenantcontent/internal/limits/limiter"
)

// The bounds of a build.
const (
	maxRoutes  = 500      // files in the folders of handlers
	maxSources = 32 << 20 // bytes of all sources
	maxConfig  = 16 << 10 // bytes of the JSON of one config

	maxLoading = 20 * time.Second // in which a file is loaded, whatever else the machine does
)

// Build is what the files of an app are as handlers.
type Build struct {
	Routes []Route // ordered by area and path
	// Warnings are sentences about files that are no routes, each with its path.
	Warnings []string

	sources  map[string][]byte
	programs []Program
}

// own returns the routes with their programs, which are not stored.
func (b *Build) own() []Route {
	routes := slices.Clone(b.Routes)
	for i := range routes {
		for _, p := range b.programs {
			if p.Hash == routes[i].Hash {
				routes[i].program = &p.Program
			}
		}
	}
	return routes
}

// size returns about how many bytes of memory the programs need.
func (b *Build) size() (n int) {
	for _, p := range b.programs {
		n += programSize(&p.Program)
	}
	return n
}

func programSize(p *jsvm.Program) int { return len(p.Code) + len(p.Map) + 1<<10 }

// Build finds and compiles the handlers among the files of an app. A file that exports a function
// with the name of a method is a route; the others are for those to import. A program takes about
// 20 ms. The files of the folder tools are read with tools alone, which is for apps that have
// agents.
//
// It returns errs.Invalid, with the file, and the line where there is one, for what cannot be
// compiled, for a config that cannot be read, for two files of one route, and for the methods and
// names that a route cannot have; errs.Unavailable if too many scripts run.
func (s *Service) Build(ctx context.Context, app App, files fs.FS, tools bool) (*Build, error) {
	b := &Build{sources: map[string][]byte{}}
	src := &sources{files: files, read: map[string][]byte{}}
	areas := []Area{Server, Webhooks}
	if tools {
		areas = append(areas, Tools)
	}
	for _, area := range areas {
		names, err := scan(files, string(area))
		if err != nil {
			return nil, err
		}
		if len(names)+len(b.Routes) > maxRoutes {
			return nil, errs.New(
				errs.Invalid, "%s has more than %d files: an app can have %d handlers.", area, maxRoutes,
				maxRoutes,
			)
		}
		for _, name := range names {
			if err := s.add(ctx, b, app, src, area, name); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(b.Routes, func(x, y Route) int {
		return strings.Compare(string(x.Area)+x.Path, string(y.Area)+y.Path)
	})
	return b, nil
}

// scan returns the paths of the scripts in a folder, ordered.
func scan(files fs.FS, folder string) (names []string, err error) {
	err = fs.WalkDir(files, folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == folder:
			return nil
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case path.Ext(name) == ".js":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// add adds the route of a file to a build.
func (s *Service) add(ctx context.Context, b *Build, app App, src *sources, area Area, name string) error {
	pattern, err := patternOf(area, name)
	if area == Tools {
		pattern, err = toolPath(name)
	}
	if err != nil {
		return err
	}
	p, err := s.compile(ctx, app, src, name)
	if err != nil {
		return err
	}
	script, _ := src.content(name)
	r := Route{Area: area, Path: pattern, File: name, Hash: p.Hash}
	warnings, err := s.describe(ctx, app, p, script, &r)
	if err != nil {
		return err
	}
	b.Warnings = append(b.Warnings, warnings...)
	if len(r.Methods) == 0 && area == Tools {
		b.Warnings = append(b.Warnings, name+" exports no function as default, so it is no tool.")
		return nil
	}
	if len(r.Methods) == 0 {
		b.Warnings = append(b.Warnings, name+" exports no function "+orList(methodsOf[area])+", so it is no route.")
		return nil
	}
	for _, other := range b.Routes {
		if other.Area == area && area == Tools && other.Path == pattern {
			return errs.New(
				errs.Invalid, "%s:1:1: its name %s is that of %s: give one of the files another name.", name,
				r.ToolName(), other.File,
			)
		}
		if other.Area == area && sameRoute(other.Path, pattern) {
			return errs.New(
				errs.Invalid, "%s:1:1: its route %s is that of %s: remove one of the files.", name, pattern,
				other.File,
			)
		}
	}
	if s.o.Check != nil {
		if err := s.o.Check(r); err != nil {
			return err
		}
	}
	b.Routes = append(b.Routes, r)
	if !slices.ContainsFunc(b.programs, func(q Program) bool { return q.Hash == p.Hash }) {
		b.programs = append(b.programs, p)
	}
	for _, file := range p.Files {
		if content, ok := src.content(file); ok {
			b.sources[file] = content
		}
	}
	total := 0
	for _, content := range b.sources {
		total += len(content)
	}
	if total > maxSources {
		return errs.New(errs.Invalid, "The sources of the handlers have more than %d MiB together.", maxSources>>20)
	}
	return nil
}

var parameter = regexp.MustCompile(`^\[([A-Za-z_][A-Za-z0-9_]*)\]$`)

// patternOf returns the pattern of a file's route. Errors: errs.Invalid.
func patternOf(area Area, name string) (string, error) {
	rest := strings.TrimSuffix(strings.TrimPrefix(name, string(area)+"/"), ".js")
	segments := strings.Split(rest, "/")
	if segments[len(segments)-1] == "index" {
		segments = segments[:len(segments)-1]
	}
	seen := map[string]bool{}
	for i, segment := range segments {
		match := parameter.FindStringSubmatch(segment)
		switch {
		case match != nil && seen[match[1]]:
			return "", errs.New(
				errs.Invalid, "%s:1:1: the parameter %s is there twice: each needs a name of its own.", name,
				match[1],
			)
		case match != nil:
			seen[match[1]] = true
			segments[i] = ":" + match[1]
		case strings.ContainsAny(segment, "[]:") || segment == "":
			return "", errs.New(
				errs.Invalid,
				"%s:1:1: %q cannot be a part of a route: a parameter is a name in brackets, such as [id], and "+
					"others have no brackets or colons.",
				name, segment,
			)
		}
	}
	return "/" + strings.Join(segments, "/"), nil
}

// sameRoute reports whether two patterns fit the same paths.
func sameRoute(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.EqualFunc(x, y, func(x, y string) bool {
		return x == y || strings.HasPrefix(x, ":") && strings.HasPrefix(y, ":")
	})
}

func orList(all []string) string {
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

//go:embed entry.js
var entryText string

// EntryName is the name of the module that imports a handler's file, which a file of this name
// cannot replace.
const EntryName = "~handler.js"

// sources is the files of an app, and keeps what is read of them, with the module for one handler.
type sources struct {
	files fs.FS
	entry string

	mu   sync.Mutex
	read map[string][]byte
}

// of returns the sources with the module for a handler's file.
func (s *sources) of(name string) *sources {
	quoted, _ := json.Marshal("./" + name) // which is JavaScript, too
	s.entry = "import * as handler from " + string(quoted) + "\n" + entryText
	return s
}

// Open implements fs.FS.
func (s *sources) Open(name string) (fs.File, error) {
	if name == EntryName {
		return jsvm.Files{EntryName: s.entry}.Open(name)
	}
	content, ok := s.content(name)
	if ok {
		return jsvm.Files{name: string(content)}.Open(name)
	}
	f, err := s.files.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() || info.Size() > maxSources {
		return f, err
	}
	content, err = io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read[name] = content
	return jsvm.Files{name: string(content)}.Open(name)
}

// content returns a file that was read.
func (s *sources) content(name string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	content, ok := s.read[name]
	return content, ok
}

// compile compiles the program of a handler's file.
func (s *Service) compile(ctx context.Context, app App, src *sources, name string) (Program, error) {
	limiter.Yield(ctx) // a script takes as long as it wants to until it is loaded
	p, err := s.o.Runtime.Compile(ctx, jsvm.Source{
		Files:  src.of(name),
		Entry:  EntryName,
		Tenant: app.Tenant,
		Key:    app.ID,
	})
	if err != nil {
		return Program{}, err
	}
	digest := sha256.New()
	write := func(b []byte) {
		_ = binary.Write(digest, binary.BigEndian, uint64(len(b)))
		_, _ = digest.Write(b)
	}
	for _, file := range p.Files {
		content, _ := src.content(file)
		if file == EntryName {
			content = []byte(src.entry)
		}
		write([]byte(file))
		write(content)
	}
	return Program{Hash: hex.EncodeToString(digest.Sum(nil)), Program: *p}, nil
}

// describe sets the methods and the config of a route, and returns warnings of methods that no call
// of it has.
func (s *Service) describe(
	ctx context.Context, app App, p Program, script []byte, r *Route,
) (warnings []string, err error) {
	result, err := s.o.Runtime.Run(ctx, &p.Program, jsvm.Call{
		Function: "describe", Tenant: app.Tenant,
		Key: app.ID, Limits: jsvm.Limits{Time: MaxLoadTime, Active: maxLoading, Output: 4 * maxConfig},
	})
	if err != nil {
		return nil, err
	}
	if result.Outcome == jsvm.Canceled {
		return nil, context.Cause(ctx)
	}
	if result.Outcome == jsvm.Evicted {
		return nil, errs.New(errs.Unavailable, "%s", result.Error.Message)
	}
	if result.Outcome != jsvm.OK {
		return nil, errs.New(errs.Invalid, "%s", loadFailure(r.File, result))
	}
	var found struct {
		Config    json.RawMessage `json:"config"`
		Functions []string        `json:"functions"`
	}
	if err := json.Unmarshal(result.Value, &found); err != nil {
		return nil, err
	}
	r.Methods = []string{}
	if r.Area == Tools && slices.Contains(found.Functions, methodsOf[Tools][0]) {
		r.Methods = methodsOf[Tools]
	}
	for _, method := range methodsOf[Server] {
		switch {
		case r.Area == Tools:
		case !slices.Contains(found.Functions, method):
		case !slices.Contains(methodsOf[r.Area], method):
			warnings = append(
				warnings,
				fmt.Sprintf(
					"%s:%d:1: it exports %s, which no call of a webhook has: use %s.", r.File,
					lineOf(script, method), method, orList(methodsOf[r.Area]),
				),
			)
		default:
			r.Methods = append(r.Methods, method)
		}
	}
	if r.Config, err = s.config(r.File, lineOf(script, "config"), found.Config); err != nil {
		return nil, err
	}
	return warnings, nil
}

// lineOf returns the line of a script that exports a name, 1 if it is not found.
func lineOf(script []byte, name string) int {
	for i, line := range strings.Split(string(script), "\n") {
		if strings.Contains(line, "export") && strings.Contains(line, name) {
			return i + 1
		}
	}
	return 1
}

// config returns the config of a file, {} for none. Errors: errs.Invalid.
func (s *Service) config(file string, line int, raw json.RawMessage) (json.RawMessage, error) {
	refuse := func(format string, args ...any) (json.RawMessage, error) {
		return nil, errs.New(errs.Invalid, "%s:%d:1: config"+format, append([]any{file, line}, args...)...)
	}
	if raw == nil {
		return json.RawMessage("{}"), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return refuse(" must be an object, such as {timeout: 5000}")
	}
	if len(raw) > maxConfig {
		return refuse(" must have at most %d bytes of JSON", maxConfig)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value := members[name]
		switch name {
		case "timeout":
			var ms float64
			if json.Unmarshal(value, &ms) != nil || bytes.Equal(value, []byte("null")) || ms != math.Trunc(ms) ||
				ms < 1 || ms > float64(s.o.MaxTime/time.Millisecond) {
				return refuse(
					".timeout must be a number of milliseconds from 1 to %s",
					strconv.FormatInt(s.o.MaxTime.Milliseconds(), 10),
				)
			}
		case "roles":
			var roles []*string
			if json.Unmarshal(value, &roles) != nil || roles == nil || slices.Contains(roles, nil) {
				return refuse(".roles must be an array of ids of the manifest's roles")
			}
			if strings.HasPrefix(file, string(Webhooks)+"/") && len(roles) > 0 {
				return refuse(".roles is for server routes: a webhook has no viewer")
			}
			if strings.HasPrefix(file, string(Tools)+"/") && len(roles) > 0 {
				return refuse(".roles is for server routes: a tool has no viewer")
			}
		case "crossSite":
			var crossSite *bool
			if json.Unmarshal(value, &crossSite) != nil || crossSite == nil {
				return refuse(".crossSite must be true or false")
			}
			if !strings.HasPrefix(file, string(Server)+"/") {
				return refuse(".crossSite is for server routes: no browser adds a cookie to another call")
			}
		case "redirects":
			if !strings.HasPrefix(file, string(Server)+"/") {
				return refuse(".redirects is for server routes: no other answer is held to the app's own paths")
			}
			var hosts []string
			if json.Unmarshal(value, &hosts) != nil || hosts == nil || slices.ContainsFunc(hosts, func(h string) bool {
				return !isHost.MatchString(h)
			}) {
				return refuse(".redirects must be an array of hosts, such as [\"pay.example.com\", " +
					"\"localhost:3000\"], without https:// and paths")
			}
		case "description", "parameters":
			if why := badToolMember(name, value); why != "" && strings.HasPrefix(file, string(Tools)+"/") {
				return refuse(why)
			}
		}
	}
	return raw, nil
}

// isHost matches a host in config.redirects: a name or an address, and a port.
var isHost = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[1-9][0-9]{0,4})?$`)

var missingGlobal = regexp.MustCompile(`^'?([\p{L}_$][\p{L}\p{N}_$]*)'? is not defined$`)

// loadFailure returns why a file cannot be loaded or its config not be read, with its place.
func loadFailure(file string, result jsvm.Result) string {
	place, loads := placeOf(file, result.Error)
	switch e := result.Error; {
	case result.Outcome == jsvm.Timeout:
		return place + ": it takes too long to be loaded: what it does outside of its functions must end at once."
	case result.Outcome != jsvm.Thrown || e == nil || !loads:
		return place + ": its config cannot be read: " + describeError(result)
	case e.Name == "ReferenceError" && missingGlobal.MatchString(e.Message):
		return fmt.Sprintf("%s: there is no global %s, which the file uses when it is loaded: handlers have the "+
			"language and the globals that docs/javascript.md lists.",
			place, missingGlobal.FindStringSubmatch(e.Message)[1])
	}
	return place + ": it throws when it is loaded: " + describeError(result)
}

var stackPlace = regexp.MustCompile(`([^\s()]+\.[cm]?js(?:on)?):(\d+)(?::(\d+))?`)

// placeOf returns the place of an error in the sources, or the first line of a file and false.
func placeOf(file string, e *jsvm.Error) (place string, known bool) {
	if e != nil {
		for _, match := range stackPlace.FindAllStringSubmatch(e.Stack, -1) {
			if match[1] != EntryName {
				return match[0], true
			}
		}
	}
	return file + ":1:1", false
}

func describeError(r jsvm.Result) string {
	if r.Error == nil {
		return string(r.Outcome)
	}
	return strings.TrimSuffix(r.Error.Error(), ".") + "."
}
