package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/julienschmidt/httprouter"

	"github.com/tenantcontent/tenantcontent/actor"
	"github.com/tenantcontent/tenantcontent/errs"
	"github.com/tenantcontent/tenantcontent/internal/rest/openapi"
)

// Route is one row of the route table.
type Route struct {
	Method  string
	Pattern string // httprouter's: /api/colors/:key, /api/libraries/:id/contents/*path
	Name    string // unique, such as putColor; limits, links and tests name the route by it
	kind    string // method and pattern with {key} for :key, for the Observer; of routes of a Router
	Summary string

	// Grants labels the rights beyond content that its callers can grant or get, for As.Check.
	Grants  Grants
	Public  bool // needs no credentials
	Foreign bool // forms of other origins may send to it
	// Permission is what the caller needs beside a session; the services check single rows.
	Permission actor.Permission
	Writes     Writes    // who begins the transaction of a write
	Heavy      heaviness // how much it computes, whatever the parameters
	// Row names the noun whose row a PUT or DELETE writes, for the stores that check its
	// conditions.
	Row string
	// AnyType marks a route whose answer is a file, a page, a redirect or empty, whatever media
	// types the client accepts.
	AnyType bool
	// Slashes marks a route whose catch-all may have empty segments: its handler decides.
	Slashes bool
	// Secret says that the answer is about a credential: no cache keeps it, and what is made has no
	// entity tag, as it is shown once.
	Secret bool
	// Query names the query parameters of a list or a write: another one is 400, and so is the same
	// one twice. Reads without it, as of single resources, take any.
	Query []string
	// Drops marks a write of which the specification says that unknown fields are dropped, or that
	// nothing is validated: members of the body that it does not know are left out. Any other write
	// refuses them.
	Drops bool
	// AnyQuery marks a write that accepts any query.
	AnyQuery bool
	// Options is a value of the struct of an action route's options, NoOptions for none. They may
	// stand in the query, in the JSON body and in form fields before the file; others are 400.
	Options any
	// File marks an action route that takes an archive: as the body, or as the form field file.
	File bool

	// Takes describes the body of the request. That of an action route follows from Options.
	Takes openapi.Body
	// Gives describes the answers of a request that succeeds, by their status.
	Gives openapi.Answers
	// Fails are the statuses of its own failures: see Describe.
	Fails []int
	// Reads names the query parameters that are read of a route that takes any.
	Reads []string

	// Handle returns what to answer. The other functions are optional, in the order of their calls.
	Handle func(r *Request) (Reply, error)
	// Begin sets headers that refusals have, too.
	Begin func(w *Response, r *Request)
	// Caller returns the caller, in place of Config.Authenticate.
	Caller func(r *Request) (actor.Actor, error)
	// Guard checks what else the caller needs, before the rest of the request is read.
	Guard func(r *Request) error
	// Ask returns the answer to a caller whom the error refuses, such as a form for logging in. ok
	// is false where the error is the answer.
	Ask func(r *Request, err error) (answer Reply, ok bool)
	// Admit checks whether what the request brings can be taken, before it is read.
	Admit func(r *Request) error
	// Resolve spells parameters of the path as the rows do, and reports whether that has changed
	// one. For a read it is called when nothing was found, which is then tried again.
	Resolve func(r *Request) (changed bool, err error)
	// Failed returns the answer to a failure; ok is false for the usual one.
	Failed func(w *Response, r *http.Request, status int, message string, err error) (answer Reply, ok bool)
}

// Writes says who begins the transaction of a route that writes, and when.
type Writes int

const (
	// Unbound routes read, or their service writes step by step: a failed log-in is counted.
	Unbound Writes = iota
	// InTx routes run in one transaction. It begins when the body has been read and one of the
	// slots for writes of the caller's tenant is free.
	InTx
	// InSlot routes wait for such a slot, too: their handler does, with Request.Slot, when it has
	// checked its input. Their service begins the transaction itself. A conditional write is InTx.
	InSlot
	// ByService routes are like InSlot ones without a slot: their service bounds how many run at
	// once.
	ByService
)

// Router finds the route of a request on its escaped path, so that a %2F in a parameter parts
// nothing.
//
// httprouter cannot hold a literal beside a parameter (/api/apps/drafts and /api/apps/:id). So each
// route is registered under its shape, in which such a literal is the parameter too, and lookups
// tell the routes of one shape apart by their literals.
type Router struct {
	tree    *httprouter.Router
	methods []string // in the order of Allow
}

// found receives the route of a lookup from the leaf of the tree.
type found struct {
	http.ResponseWriter
	route  *Route
	params httprouter.Params
}

// literal is a segment of a pattern that is a parameter in its shape.
type literal struct {
	place int // among the shape's parameters
	text  string
}

// candidate is one route of a shape, with the literals that the shape has as parameters.
type candidate struct {
	route    *Route
	literals []literal
}

// braced returns a pattern with its parameters in braces, such as /api/colors/{key}, as
// OpenTelemetry has them.
func braced(pattern string) string {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if name := strings.TrimLeft(p, ":*"); name != p {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

// NewRouter returns a Router of routes. It fails for two that cannot be told apart.
func NewRouter(routes []Route) (*Router, error) {
	shapes, err := shapesOf(routes)
	if err != nil {
		return nil, err
	}
	rt := &Router{tree: httprouter.New()}
	leaves, all := map[string][]candidate{}, map[string][]candidate{} // of a method and a shape, and of a shape
	for i := range routes {
		routes[i].kind = routes[i].Method + " " + braced(routes[i].Pattern)
		shape := strings.Join(shapes[i], "/")
		leaf, c := routes[i].Method+" "+shape, candidate{&routes[i], literals(routes[i].Pattern, shapes[i])}
		leaves[leaf], all[shape] = append(leaves[leaf], c), append(all[shape], c)
		if !slices.Contains(rt.methods, routes[i].Method) {
			rt.methods = append(rt.methods, routes[i].Method)
		}
	}
	slices.Sort(rt.methods)
	for leaf, candidates := range leaves {
		slices.SortFunc(candidates, func(a, b candidate) int { return len(b.literals) - len(a.literals) })
		method, shape, _ := strings.Cut(leaf, " ")
		rt.tree.Handle(method, shape, func(w http.ResponseWriter, _ *http.Request, p httprouter.Params) {
			w.(*found).choose(candidates, all[shape], p)
		})
	}
	return rt, nil
}

// choose sets the first candidate whose literals match the path. A path that is a literal's with
// another method, of which all has the route, is not that of a parameter: PUT /api/apps/drafts is
// not PUT /api/apps/:id.
func (f *found) choose(candidates, all []candidate, p httprouter.Params) {
	most := 0
	for _, c := range all {
		if c.fits(p) {
			most = max(most, len(c.literals))
		}
	}
	for _, c := range candidates {
		if len(c.literals) == most && c.fits(p) && (c.route.Slashes || !hasGap(c.route.Pattern, p)) {
			f.route, f.params = c.route, p
			return
		}
	}
}

// fits reports whether the literals of a candidate match the path.
func (c candidate) fits(p httprouter.Params) bool {
	for _, l := range c.literals {
		if p[l.place].Value != l.text {
			return false
		}
	}
	return true
}

// hasGap reports whether a catch-all stands for an empty segment: /contents/, /contents//x and
// /contents/x/ are no routes, as with a parameter. httprouter gives its value with the slash before
// it, and always last.
func hasGap(pattern string, p httprouter.Params) bool {
	if !strings.Contains(pattern, "/*") {
		return false
	}
	value := p[len(p)-1].Value
	return strings.HasSuffix(value, "/") || strings.Contains(value, "//")
}

func (rt *Router) lookup(method, path string) *found {
	handle, params, _ := rt.tree.Lookup(method, path)
	if handle == nil {
		return nil
	}
	f := &found{}
	handle(f, nil, params)
	if f.route == nil {
		return nil
	}
	return f
}

// Find returns the route of an escaped path and its parameters, unescaped once. Errors:
// errs.NotFound, a NotAllowed.
func (rt *Router) Find(method, path string) (*Route, httprouter.Params, error) {
	looked := method
	if method == http.MethodHead {
		looked = http.MethodGet // net/http leaves the body out
	}
	f := rt.lookup(looked, path)
	if f == nil {
		return nil, nil, rt.missing(method, path)
	}
	for i, p := range f.params {
		value := strings.TrimPrefix(p.Value, "/") // a catch-all begins with one
		if strings.Contains(value, "%") {
			var err error
			if value, err = url.PathUnescape(value); err != nil {
				return nil, nil, errs.New(errs.Invalid, "The path is not properly escaped.")
			}
		}
		f.params[i].Value = value
	}
	return f.route, f.params, nil
}

// missing returns errs.NotFound for an unknown path, or a NotAllowed with the methods of a known
// one.
func (rt *Router) missing(method, path string) error {
	var allow []string
	for _, m := range rt.methods {
		if rt.lookup(m, path) != nil {
			allow = append(allow, m)
			if m == http.MethodGet {
				allow = append(allow, http.MethodHead)
			}
		}
	}
	if len(allow) == 0 {
		return errs.New(errs.NotFound, "There is no such route.")
	}
	refused := NotAllowed{Methods: strings.Join(allow, ", ")}
	if f := rt.lookup(method, path+"/x"); f != nil && strings.Contains(f.route.Pattern, "/*") {
		refused.instead = method + " " + TemplateOf(f.route.Pattern)
	}
	return refused
}

// NotAllowed is the error of a request with a method that its path does not have.
type NotAllowed struct {
	Methods string // those that the path has, as the header Allow names them
	instead string // the route of a file below the path that has the method, "" for none
}

// Allow returns the header Allow.
func (n NotAllowed) Allow() string { return n.Methods }

// Error implements error.
func (n NotAllowed) Error() string {
	text := "This route has the methods " + n.Methods + "."
	if n.instead != "" {
		text += " A file has its path in the address: " + n.instead + "."
	}
	return text
}

// TemplateOf returns a pattern as it is written for people: /api/apps/{id}/contents/{path}.
func TemplateOf(pattern string) string {
	segments := strings.Split(pattern, "/")
	for i, s := range segments {
		if IsParam(s) || IsCatchAll(s) {
			segments[i] = "{" + s[1:] + "}"
		}
	}
	return strings.Join(segments, "/")
}

// shapesOf returns the segments of each route's shape. Routes with one pattern share them.
func shapesOf(routes []Route) ([][]string, error) {
	shapes, byPattern := make([][]string, len(routes)), map[string][]string{}
	var distinct [][]string
	for i, r := range routes {
		if byPattern[r.Pattern] == nil {
			byPattern[r.Pattern] = strings.Split(r.Pattern, "/")
			distinct = append(distinct, byPattern[r.Pattern])
		}
		shapes[i] = byPattern[r.Pattern]
	}
	return shapes, widen(distinct, 0)
}

// widen replaces the literals of shapes where another one, the same up to there, has a parameter by
// that parameter. All are the same before depth.
func widen(shapes [][]string, depth int) error {
	shapes = slices.DeleteFunc(shapes, func(s []string) bool { return len(s) <= depth })
	if len(shapes) < 2 {
		return nil
	}
	param, first := "", shapes[0][depth]
	for _, s := range shapes {
		switch segment := s[depth]; {
		case segment != first && (IsCatchAll(segment) || IsCatchAll(first)):
			return errs.New(
				errs.Invalid, "routes part at %s and %s: nothing can stand beside a catch-all", first, segment,
			)
		case !IsParam(segment) || segment == param:
		case param != "":
			return errs.New(errs.Invalid, "routes name one place %s and %s", param, segment)
		default:
			param = segment
		}
	}
	var segments []string
	below := map[string][][]string{}
	for _, s := range shapes {
		if param != "" {
			s[depth] = param
		}
		if below[s[depth]] == nil {
			segments = append(segments, s[depth])
		}
		below[s[depth]] = append(below[s[depth]], s)
	}
	for _, segment := range segments {
		if err := widen(below[segment], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// IsParam reports whether a segment of a path template stands for one segment.
func IsParam(segment string) bool { return strings.HasPrefix(segment, ":") }

// IsCatchAll reports whether a segment of a path template stands for all that follow.
func IsCatchAll(segment string) bool { return strings.HasPrefix(segment, "*") }

func literals(pattern string, shape []string) (out []literal) {
	place := 0
	for i, s := range strings.Split(pattern, "/") {
		if !IsParam(shape[i]) && !IsCatchAll(shape[i]) {
			continue
		}
		if s != shape[i] {
			out = append(out, literal{place, s})
		}
		place++
	}
	return out
}

// Grants is the rights beyond content that callers of a route can grant or get.
type Grants string
