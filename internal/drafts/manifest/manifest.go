// Package manifest reads the manifest of an app: the file informer.yaml or app.yaml in its library,
// which names the API calls and datasets that the app needs, its roles, agents, events and
// environment variables. docs/manifest.md describes the format.
//
// Package apps has names for its types. The command line reads manifests, too, to check a folder
// before it is pushed.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"github.com/tenantcontent/tenantcontent/errs"
)

// The most that a manifest may have.
const (
	MaxSize  = 256 << 10 // bytes
	MaxDepth = 32        // levels of lists and objects in each other
	MaxNodes = 10_000    // lists, objects, keys and texts in all
	MaxItems = 500       // rules, datasets, agents, events or variables
)

// Files returns the names of manifests. The first one that a library has counts.
func Files() []string { return []string{"informer.yaml", "app.yaml"} }

// Manifest is what an app declares. The zero Manifest is that of an app without one: it may make no
// API call.
type Manifest struct {
	EntryPoint string // path of the page in the library; "" if the manifest names none
	Access     []Rule
	Datasets   []Dataset
	Roles      []Role // at most shares.MaxRoles
	Agents     []Agent
	Events     []Event
	Env        []Variable

	limits [][]Rule // calls that Access allows are allowed only if each of these does, too
}

// Limited returns the manifest with no more calls than some rules allow, too.
func (m Manifest) Limited(to []Rule) Manifest {
	m.limits = append(slices.Clip(m.limits), to)
	return m
}

// HasRole reports whether a role has an id.
func (m Manifest) HasRole(id string) bool {
	return slices.ContainsFunc(m.Roles, func(r Role) bool { return r.ID == id })
}

// Rule is a set of API calls that the pages and handlers of an app may make.
type Rule struct {
	Methods     []string // GET, POST, PUT, PATCH and DELETE, each at most once, in this order; at least one
	Path        string   // a pattern below /api/, such as datasets/*
	Description string
}

// String returns the rule as it can stand in a manifest, without its description.
func (r Rule) String() string {
	text := ""
	for i, m := range r.Methods {
		if i > 0 {
			text += ","
		}
		text += m
	}
	return text + " " + r.Path
}

// ParseRule returns the rule that String has returned text for, and false for other texts.
func ParseRule(text string) (Rule, bool) {
	names, path, ok := strings.Cut(text, " ")
	r := Rule{Methods: strings.Split(names, ","), Path: path}
	return r, ok && r.String() == text && !slices.ContainsFunc(r.Methods, func(m string) bool {
		return !slices.Contains(methods, m)
	})
}

// Dataset is a dataset that an app needs: whoever installs the app binds one to the alias.
type Dataset struct {
	Alias       string // [A-Za-z][A-Za-z0-9_]{0,63}
	Description string
}

// Role is a role of an app. Shares grant roles to principals, and pages and handlers see which ones
// a viewer has.
type Role struct {
	ID          string // [A-Za-z0-9][A-Za-z0-9_.-]*, at most shares.MaxRole characters
	Name        string // for people; the ID if the manifest has none
	Description string
}

// Agent is an agent of an app, which events and a schedule start.
type Agent struct {
	Name         string // [A-Za-z0-9][A-Za-z0-9_.-]{0,127}
	Description  string
	Instructions string   // what it does, for the model
	Model        string   // "" for the default model
	Tools        []string // names of tools; nil for none
	On           []string // events that start it; nil for none
	Cron         []string // schedules that start it, five fields each; nil for none
	OnFailure    string   // the agent that is started when all tries have failed; "" for none
}

// Event is an event that the app's handlers emit.
type Event struct {
	Name        string // [A-Za-z0-9][A-Za-z0-9_.:-]{0,127}
	Description string
}

// Variable is an environment variable that handlers read. Its value is no part of the manifest.
type Variable struct {
	Name        string // [A-Za-z_][A-Za-z0-9_]{0,127}
	Description string
	Required    bool // the app does not work without it
}

// Reader reads manifests.
type Reader struct {
	// Closed returns what the calls of a rule grant if no app may make any of them, such as
	// "credentials", and "" if apps may make some. A manifest with such a rule is refused. The path
	// is a pattern; the method is "" for any. Nil: no rule is refused.
	Closed func(method, path string) string
}

// Read reads a manifest without refusing rules for calls that no app may make: see Reader.
func Read(file string, raw []byte) (Manifest, error) { return Reader{}.Read(file, raw) }

// Read reads a manifest; file is its name, for errors. A file that is empty or has only comments is
// the zero Manifest. Errors: errs.Invalid with the file, line, column and key, such as
// "informer.yaml:12:5: access[0]: …".
func (of Reader) Read(file string, raw []byte) (Manifest, error) {
	if len(raw) > MaxSize {
		return Manifest{}, errs.New(
			errs.Invalid, "%s: the manifest has %d bytes; the most is %d", file, len(raw), MaxSize,
		)
	}
	if at := unreadable(raw); at >= 0 {
		line, column := position(raw, at)
		return Manifest{}, errs.New(
			errs.Invalid, "%s:%d:%d: the manifest must be UTF-8 text without NUL", file, line, column,
		)
	}
	r := reader{of, file}
	root, err := r.load(raw)
	if err != nil || root == nil {
		return Manifest{}, err
	}
	return r.manifest(root)
}

// unreadable returns the index of the first byte that is NUL or not UTF-8, -1 for none.
func unreadable(raw []byte) int {
	for i := 0; i < len(raw); {
		c, n := utf8.DecodeRune(raw[i:])
		if c == 0 || c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// position returns the line and the column, in characters, of the byte at an index, both from 1.
func position(raw []byte, at int) (line, column int) {
	start := bytes.LastIndexByte(raw[:at], '\n') + 1
	return bytes.Count(raw[:at], []byte("\n")) + 1, utf8.RuneCount(raw[start:at]) + 1
}

// load parses the one document of a file; it returns nil for an empty file. The result has no
// aliases, so it is not larger than the file.
func (r reader) load(raw []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(
		bytes.NewReader(raw), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(MaxDepth))),
	)
	if err != nil {
		return nil, err
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, r.syntax(err)
	}
	if err := loader.Load(&more); err == nil {
		return nil, r.fail(&more, "", "the manifest must be one document: remove the line ---")
	} else if !errors.Is(err, io.EOF) {
		return nil, r.syntax(err)
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	left := MaxNodes
	return doc.Content[0], r.plain(doc.Content[0], &left)
}

// syntax returns the error for a file that is not YAML.
func (r reader) syntax(err error) error {
	at, message := yaml.Mark{Line: 1, Column: 1}, err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		message = e.Message
		if e.Mark.Line > 0 {
			at = e.Mark
		} else if e.ContextMark.Line > 0 {
			at = e.ContextMark
		}
		if e.ContextMsg != "" {
			message = e.ContextMsg + ": " + message
		}
	}
	return errs.Wrap(
		errs.Invalid, err, "%s:%d:%d: the manifest is not YAML that can be read: %s", r.file, at.Line,
		max(at.Column, 1), message,
	)
}

// fail returns the error for what stands at a node; key is "" for the whole file.
func (r reader) fail(n *yaml.Node, key, format string, args ...any) error {
	if key != "" {
		key += ": "
	}
	return errs.New(
		errs.Invalid, "%s:%d:%d: %s%s", r.file, max(n.Line, 1), max(n.Column, 1), key,
		fmt.Sprintf(format, args...),
	)
}
